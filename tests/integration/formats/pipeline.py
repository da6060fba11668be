"""The engine on real files with the host's ogr2ogr; its commands run in the jail."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from service.engine.output import Output
from service.engine.workspace import Run
from service.formats.detect import detect
from service.formats.facts import Facts
from service.formats.plan import ConversionPlan, can_go_direct, plan_conversion
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.target import choose_target
from service.usecases.verify_output import verify_output
from tests.support.converters import Converters

Json = Mapping[str, object]


class Converted(msgspec.Struct, frozen=True):
    """All records of one conversion."""

    source: Source
    facts: Facts
    plan: ConversionPlan
    output: Output
    differences: tuple[str, ...] = ()
    """What reading the result back has told, if it was read."""

    @property
    def path(self) -> Path:
        """The output under the client's name for it."""
        named = self.output.path.parent / f"{self.plan.stem}{self.output.extension}"
        if not named.exists():
            os.link(self.output.path, named)
        return named


class Pipeline:
    """Detect, inspect, plan and convert; each file has its own directory."""

    def __init__(self, converters: Converters, run: Run | None = None, *, has_sessions: bool = False) -> None:
        self.engine = converters.engines[has_sessions]
        self.run = run or converters.run
        self._converters = converters

    async def convert(
        self, path: Path, request: ConversionRequest, name: str | None = None, *, verifies: bool = False
    ) -> Converted:
        """Convert the file at `path`, uploaded as `name`, and read the result back if asked to."""
        directory, source = self.receive(path, name)
        target = choose_target(source.format, request.output)
        differences: tuple[str, ...] = ()
        async with self.engine.session(self.run, target) as run:
            facts = await self.engine.inspect(run, source, directory, request)
            plan = plan_conversion(source, target, facts, request, self.engine.catalogue)
            astray = await self.engine.convert(run, source, plan, directory)
            if verifies:
                differences = await verify_output(self.engine, run, source, plan, directory, astray=astray)
        return Converted(source, facts, plan, await self.engine.collect(plan, directory), differences)

    async def convert_directly(self, path: Path, output: str, known: Facts) -> Converted | None:
        """Convert without the work file, as after a scan of the text; None if that is not possible."""
        directory, source = self.receive(path)
        target = choose_target(source.format, output)
        facts = msgspec.structs.replace(known, in_work_file=False)
        if not can_go_direct(source, target, facts):
            return None
        plan = plan_conversion(source, target, facts, ConversionRequest(), self.engine.catalogue)
        assert plan.direct
        await self.engine.convert(self.run, source, plan, directory)
        done = Converted(source, facts, plan, await self.engine.collect(plan, directory))
        assert not (directory / "convert" / "work.gpkg").exists()
        return done

    async def to(self, output: str, path: Path, **wishes: object) -> Converted:
        """Convert the file at `path` to the format `output`."""
        return await self.convert(path, msgspec.convert({"output": output, **wishes}, ConversionRequest))

    def receive(self, path: Path, name: str | None = None) -> tuple[Path, Source]:
        directory = self._converters.new_directory()
        source = detect(path, name or path.name, directory / "unpacked")
        return directory, source


def feature(geometry: Json | None, /, **properties: object) -> Json:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def geometry(kind: str, coordinates: object) -> Json:
    return {"type": kind, "coordinates": coordinates}


def write_geojson(path: Path, features: Sequence[Json], **members: object) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", **members, "features": features}, ensure_ascii=False))
    return path
