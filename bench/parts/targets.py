"""The cost of converting a large GeoJSON document to every target, or to some.

    python -m bench.parts.targets [TARGET …] [--megabytes 100]

The engine runs as in the service, in the sandbox with every isolation layer that the host supports, and reads its
results back. Peak memory is that of the largest run.
"""

import argparse
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from bench.load.documents import document, write_document
from bench.measure.meter import MEGABYTE
from sandbox.command import Command, Limits
from sandbox.pool import Pool
from sandbox.verdict import Verdict
from service.app.converters import WORK, look_at_host, make_engine, open_converters
from service.engine.convert import Engine
from service.errors import Rejection
from service.formats.detect import detect
from service.formats.format import Format
from service.formats.plan import plan_conversion
from service.formats.registry import OUTPUT_NAMES, find_output
from service.formats.request import ConversionRequest
from service.settings import Settings
from service.usecases.inspect_source import inspect_source
from service.usecases.verify_output import verify_output

SECONDS = 300


@asynccontextmanager
async def open_engine(limits: Limits) -> AsyncIterator[tuple[Engine, Pool, Path]]:
    """Yield an engine with these limits, its sandbox, and a work directory for the sources."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 -- runs of other users pass through it; nothing else runs in this loop
        settings = Settings(data_dir=name)
        work = settings.data_path / WORK
        work.mkdir(mode=0o711)
        capabilities = await look_at_host(settings)
        async with open_converters(settings, capabilities) as pool:
            has_sessions = make_engine(settings, capabilities, pool).has_sessions
            yield Engine(capabilities, limits, has_sessions=has_sessions), pool, work


async def convert(engine: Engine, pool: Pool, path: Path, target: Format, source_epsg: int | None = None) -> str:
    """Convert once; return a line of figures, or the rejection."""
    verdicts: list[Verdict] = []
    since = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        directory = Path(name)
        os.link(path, directory / "upload")
        source = detect(directory / "upload", path.name, directory / "unpacked")
        async with pool.lease("bench") as converter:

            async def run(command: Command) -> Verdict:
                verdicts.append(await converter.run(command))
                return verdicts[-1]

            try:
                request = ConversionRequest(output=target.name, source_epsg=source_epsg)
                async with engine.session(run, target) as held:
                    look = await inspect_source(engine, held, source, target, directory, request=request)
                    plan = plan_conversion(look.source, target, look.facts, request, engine.catalogue)
                    astray = await engine.convert(held, look.source, plan, directory)
                    await verify_output(engine, held, look.source, plan, directory, astray=astray)
                output = await engine.collect(plan, directory)
                result = f"{output.size_bytes >> 20} MB"
            except Rejection as rejection:
                result = rejection.message
    seconds = time.perf_counter() - since
    cpu_seconds = sum(verdict.cpu_seconds for verdict in verdicts)
    peak_bytes = max((verdict.peak_memory_bytes for verdict in verdicts), default=0)
    figures = f"{seconds:6.1f} s, CPU {cpu_seconds:5.1f} s, peak {peak_bytes >> 20:4} MB, {len(verdicts)} runs"
    return f"{target.name:12} {figures}  {result}"


async def main(names: Sequence[str], megabytes: int) -> None:
    """Convert to the targets in turn."""
    async with open_engine(Limits(wall_seconds=SECONDS, cpu_seconds=SECONDS)) as (engine, pool, work):
        content = document(megabytes * MEGABYTE)
        source = await anyio.to_thread.run_sync(write_document, work, content, "points.geojson")
        points = content.count(b'"Point"')
        print(f"{megabytes} MB, {points} points")
        for name in names:
            print(await convert(engine, pool, source, find_output(name)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    others = [name for name in OUTPUT_NAMES if name != "GeoJson"]
    parser.add_argument("targets", nargs="*", default=others, metavar="TARGET")
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    anyio.run(main, options.targets, options.megabytes)
