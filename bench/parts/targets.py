"""What a large GeoJSON document takes on its way to every target: `python -m bench.parts.targets [--megabytes 100]`.

The engine runs as in the service, in the jail with every layer that the host has; peak memory is the largest run's.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import anyio

from sandbox.command import Command, Limits
from sandbox.pool import Pool
from sandbox.verdict import Verdict
from service.app import WORK, look_at_host, open_converters
from service.engine.convert import Engine
from service.errors import Rejection
from service.formats.detect import detect
from service.formats.format import Format
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.table import FORMATS
from service.settings import Settings
from service.usecases.inspect_source import inspect_source

SECONDS = 300
_FEATURE = (
    '{"type":"Feature","properties":{"n":%d,"name":"place number %d","height":%.2f,"kind":"lake"},'
    '"geometry":{"type":"Point","coordinates":[%.6f,%.6f]}}'
)


def write_document(path: Path, megabytes: int) -> int:
    """Write a document of that size; return its number of features."""
    count = 0
    with path.open("w", encoding="ascii") as file:
        file.write('{"type":"FeatureCollection","features":[\n')
        while file.tell() < megabytes << 20:
            numbers = range(count, count + 1000)
            rows = (_FEATURE % (n, n, n * 0.37, n % 360 - 180 + 0.1234, n % 170 - 85 + 0.4321) for n in numbers)
            file.write((",\n" if count else "") + ",\n".join(rows))
            count += 1000
        file.write("]}")
    return count


class _Measured:
    """Runs commands and keeps what they used."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.cpu_seconds = 0.0

    def add(self, verdict: Verdict) -> Verdict:
        self.peak_bytes = max(self.peak_bytes, verdict.peak_memory_bytes)
        self.cpu_seconds += verdict.cpu_seconds
        return verdict


async def convert(engine: Engine, pool: Pool, document: Path, target: Format, source_epsg: int | None = None) -> str:
    """Convert once; return a line of figures, or the refusal."""
    measured, since = _Measured(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=document.parent) as name:
        directory = Path(name)
        os.link(document, directory / "upload")
        source = detect(directory / "upload", document.name, directory / "unpacked")
        async with pool.lease("bench") as worker:

            async def run(command: Command) -> Verdict:
                return measured.add(await worker.run(command))

            try:
                look = await inspect_source(engine, run, source, target, directory)
                request = ConversionRequest(output=target.name, source_epsg=source_epsg)
                plan = plan_conversion(look.source, target, look.facts, request, engine.catalogue)
                await engine.convert(run, look.source, plan, directory)
                output = await engine.collect(plan, directory)
                result = f"{output.size_bytes >> 20} MB"
            except Rejection as rejection:
                result = rejection.message
    seconds = time.perf_counter() - since
    figures = f"{seconds:6.1f} s, CPU {measured.cpu_seconds:5.1f} s, peak {measured.peak_bytes >> 20:4} MB"
    return f"{target.name:12} {figures}  {result}"


async def main(megabytes: int) -> None:
    """Convert to every target in turn."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 -- the jail passes through it; nothing else runs in this loop
        settings = Settings(data_dir=name)
        work = settings.data_path / WORK
        work.mkdir(mode=0o711)
        document = work / "points.geojson"
        print(f"{megabytes} MB, {await anyio.to_thread.run_sync(write_document, document, megabytes)} points")
        capabilities = await look_at_host(settings)
        engine = Engine(capabilities, Limits(wall_seconds=SECONDS, cpu_seconds=SECONDS))
        async with open_converters(settings, capabilities) as pool:
            for target in FORMATS:
                if target.writing is not None and target.token != "geojson":  # noqa: S105 -- a format's short name
                    print(await convert(engine, pool, document, target), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    anyio.run(main, parser.parse_args().megabytes)
