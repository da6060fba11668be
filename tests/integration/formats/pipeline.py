"""The whole engine on real files with the host's ogr2ogr, its commands run as plain processes."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sandbox.command import Command
from sandbox.verdict import Ending, Verdict
from service.engine.capabilities import Capabilities, probe
from service.engine.convert import Engine, Output
from service.engine.workspace import Run
from service.formats.detect import Source, detect
from service.formats.facts import Facts
from service.formats.plan import Plan, can_go_direct, plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target

Json = Mapping[str, object]


def host_capabilities(data_dir: Path) -> Capabilities:
    found = shutil.which("ogr2ogr")
    assert found is not None, "these tests need ogr2ogr"
    return probe(Path(found), data_dir, {})


async def run_plainly(command: Command) -> Verdict:
    """Run a command without a jail, and judge it as simply as tests need."""
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command.argv,
        cwd=command.directory,
        env=dict(command.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, messages = await process.communicate()
    ending = Ending.OK if process.returncode == 0 else Ending.EXIT
    return Verdict(
        ending=ending,
        exit_code=process.returncode,
        wall_seconds=time.monotonic() - started,
        untrusted_stderr=messages[: command.limits.stderr_bytes],
    )


class Converted(msgspec.Struct, frozen=True):
    """Everything that one conversion went through."""

    source: Source
    facts: Facts
    plan: Plan
    output: Output

    @property
    def path(self) -> Path:
        """The output under the name that a client gets."""
        named = self.output.path.parent / self.output.download_name
        if not named.exists():
            os.link(self.output.path, named)
        return named


class Pipeline:
    """Detect, inspect, plan and convert, each file in a directory of its own."""

    def __init__(self, host: Capabilities, root: Path, run: Run = run_plainly) -> None:
        self.engine = Engine(host)
        self._run = run
        self._root = root
        self._jobs = 0

    async def convert(self, path: Path, request: ConversionRequest, name: str | None = None) -> Converted:
        """Convert the file at `path`, uploaded as `name`."""
        directory, source = self.receive(path, name)
        target = choose_target(source.format, request.output)
        facts = await self.engine.inspect(self._run, source, directory, request)
        plan = plan_conversion(source, target, facts, request, self.engine.catalogue)
        await self.engine.convert(self._run, source, plan, directory)
        return Converted(source, facts, plan, await self.engine.collect(plan, directory))

    async def convert_directly(self, path: Path, output: str, known: Facts) -> Converted | None:
        """Convert without the work file, as after a scan of the text; None where that is not possible."""
        directory, source = self.receive(path)
        target = choose_target(source.format, output)
        facts = msgspec.structs.replace(known, in_work_file=False)
        if not can_go_direct(source, target, facts):
            return None
        plan = plan_conversion(source, target, facts, ConversionRequest(), self.engine.catalogue)
        assert plan.direct
        await self.engine.convert(self._run, source, plan, directory)
        done = Converted(source, facts, plan, await self.engine.collect(plan, directory))
        assert not (directory / "convert" / "work.gpkg").exists()
        return done

    async def to(self, output: str, path: Path, **wishes: object) -> Converted:
        """Convert the file at `path` to the format `output`."""
        return await self.convert(path, msgspec.convert({"output": output, **wishes}, ConversionRequest))

    def receive(self, path: Path, name: str | None = None) -> tuple[Path, Source]:
        self._jobs += 1
        directory = self._root / f"job{self._jobs}"
        directory.mkdir()
        return directory, detect(path, name or path.name, directory / "unpacked")


def feature(geometry: Json | None, /, **properties: object) -> Json:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def geometry(kind: str, coordinates: object) -> Json:
    return {"type": kind, "coordinates": coordinates}


def write_geojson(path: Path, features: Sequence[Json], **members: object) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", **members, "features": features}, ensure_ascii=False))
    return path
