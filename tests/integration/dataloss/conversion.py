"""Converts GeoJSON to a Shapefile by both ways that the service has, and reads the result without GDAL."""

import json
import tempfile
from pathlib import Path

import msgspec

from service.engine.convert import Engine
from service.formats.detect import detect
from service.formats.plan import Plan, can_go_direct, plan_conversion
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.geojson.findings import Scan
from service.usecases.inspect_source import normalized, scan_document
from tests.integration.dataloss.shapefile import Shapefile, read_archive
from tests.integration.formats.pipeline import run_plainly


class Result(msgspec.Struct, frozen=True):
    """A conversion: what the scan found, what was planned, and what is in the archive."""

    scan: Scan
    plan: Plan
    files: dict[str, Shapefile]


async def convert_both_ways(engine: Engine, document: bytes) -> list[Result]:
    """Convert through the work file, straight from the upload where the plan allows it, and as lines of features."""
    with tempfile.TemporaryDirectory() as folder:
        ways = [await _convert(engine, document, Path(folder), direct=False)]
        straight = await _convert(engine, document, Path(folder), direct=True)
        lines = await _convert(engine, _as_lines(document), Path(folder), direct=False)
        return [way for way in (*ways, straight, lines) if way is not None]


def _as_lines(document: bytes) -> bytes:
    """The features of a collection one a line, and that under the same name."""
    return b"".join(json.dumps(feature).encode() + b"\n" for feature in json.loads(document)["features"])


async def _convert(engine: Engine, document: bytes, folder: Path, *, direct: bool) -> Result | None:
    upload = folder / "upload.geojson"
    upload.write_bytes(document)
    directory = Path(tempfile.mkdtemp(dir=folder))
    received = detect(upload, "upload.geojson", directory / "unpacked")
    target = find_output("Shapefile")
    found = await scan_document(engine, run_plainly, received)
    source = await normalized(engine, run_plainly, received, found)
    facts = found.facts(source.stem)
    if not direct:
        facts = await engine.inspect(run_plainly, source, directory)
    elif not can_go_direct(source, target, facts):
        return None
    plan = plan_conversion(source, target, facts, ConversionRequest(), engine.catalogue)
    await engine.convert(run_plainly, source, plan, directory)
    output = await engine.collect(plan, directory)
    return Result(found, plan, read_archive(output.path))
