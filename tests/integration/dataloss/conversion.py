"""Converts GeoJSON to a Shapefile in both of the service's ways, and reads the result without GDAL."""

import json

import msgspec

from service.formats.detect import detect
from service.formats.plan import ConversionPlan, can_go_direct, plan_conversion
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.geojson.findings import Scan
from service.usecases.inspect_source import normalized, scan_document
from tests.integration.dataloss.shapefile import Shapefile, read_archive
from tests.support.converters import Converters


class Result(msgspec.Struct, frozen=True):
    """A conversion: what the scan found, the plan, and the archive's content."""

    scan: Scan
    plan: ConversionPlan
    files: dict[str, Shapefile]


async def convert_both_ways(converters: Converters, document: bytes) -> list[Result]:
    """Convert through the work file, directly if the plan allows it, and as newline-delimited GeoJSON."""
    ways = (
        await _convert(converters, document, direct=False),
        await _convert(converters, document, direct=True),
        await _convert(converters, _as_lines(document), direct=False),
    )
    return [way for way in ways if way is not None]


def _as_lines(document: bytes) -> bytes:
    """The features of a collection, one per line, as a file of the same name."""
    return b"".join(json.dumps(feature).encode() + b"\n" for feature in json.loads(document)["features"])


async def _convert(converters: Converters, document: bytes, *, direct: bool) -> Result | None:
    engine, directory = converters.engine, converters.new_directory()
    upload = directory / "upload.geojson"
    upload.write_bytes(document)
    received = detect(upload, "upload.geojson", directory / "unpacked")
    target = find_output("Shapefile")
    found = await scan_document(engine, converters.run, received, copies=True)
    source = await normalized(received, found)
    facts = found.facts(source.stem)
    if not direct:
        facts = await engine.inspect(converters.run, source, directory)
    elif not can_go_direct(source, target, facts):
        return None
    plan = plan_conversion(source, target, facts, ConversionRequest(), engine.catalogue)
    await engine.convert(converters.run, source, plan, directory)
    output = await engine.collect(plan, directory)
    return Result(found, plan, read_archive(output.path))
