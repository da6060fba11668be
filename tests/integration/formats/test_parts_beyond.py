"""Parts of geometries beyond the date line, in formats whose longitudes end there."""

import json
from pathlib import Path

import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson

FAR, NEAR = [[187, 3], [186, 2], [186, 1], [187, 3]], [[6, 1], [7, 2], [6, 2], [6, 1]]
MOVED = [[-173, 3], [-174, 2], [-174, 1], [-173, 3]]
WEST, MOVED_EAST = [[-187, 3], [-186, 2]], [[173, 3], [174, 2]]
HIGH, MOVED_HIGH = [[187, 3, 7], [186, 2, 8]], [[-173, 3, 7], [-174, 2, 8]]
PARTS: dict[str, tuple[Json, Json]] = {
    "lines": (
        geometry("MultiLineString", [FAR, NEAR[:2], WEST]),
        geometry("MultiLineString", [MOVED, NEAR[:2], MOVED_EAST]),
    ),
    "elevations": (geometry("MultiLineString", [HIGH, HIGH]), geometry("MultiLineString", [MOVED_HIGH, MOVED_HIGH])),
    "areas": (geometry("MultiPolygon", [[FAR], [NEAR]]), geometry("MultiPolygon", [[MOVED], [NEAR]])),
    "across": (
        geometry("MultiLineString", [[[178, 3], [182, 2]], FAR]),
        geometry("MultiLineString", [[[178, 3], [180, 2.5]], [[-180, 2.5], [-178, 2]], MOVED]),
    ),
    "collections": (
        {"type": "GeometryCollection", "geometries": [geometry("Polygon", [FAR]), geometry("LineString", NEAR)]},
        {"type": "GeometryCollection", "geometries": [geometry("Polygon", [MOVED]), geometry("LineString", NEAR)]},
    ),
}


@pytest.mark.parametrize("what", PARTS)
async def test_parts_beyond_the_date_line_are_moved(either: Pipeline, tmp_path: Path, what: str) -> None:
    """The driver added an empty part for each, and elevations to lines without any."""
    shape, expected = PARTS[what]
    path = tmp_path / "a.csv"
    path.write_text(f'n,g\n1,"{json.dumps(shape).replace(chr(34), chr(34) * 2)}"\n')
    done = await either.to("GeoJson", path, source_epsg=4326)
    (found,) = readers.geojson(done.path)
    assert json.loads(json.dumps(found["geometry"])) == expected
    assert done.output.warnings == ()


@pytest.mark.parametrize("output", ["GeoJsonSeq", "Kml"])
async def test_parts_beyond_the_date_line_in_geojson_are_moved(either: Pipeline, tmp_path: Path, output: str) -> None:
    """Such a document is not written as it is."""
    path = write_geojson(tmp_path / "a.geojson", [feature(PARTS["lines"][0], n=1)])
    directory, source = either.receive(path)
    target = choose_target(source.format, output)
    async with either.engine.session(either.run, target) as run:
        look = await inspect_source(either.engine, run, source, target, directory)
        plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), either.engine.catalogue)
        await either.engine.convert(run, look.source, plan, directory)
    text = (await either.engine.collect(plan, directory)).path.read_text()
    if output == "Kml":
        assert text.count("<coordinates>-173,3") == text.count("<coordinates>173,3") == 1
        assert "<coordinates></coordinates>" not in text
    else:
        assert json.loads(text)["geometry"] == PARTS["lines"][1]


async def test_numbers_that_are_no_degrees_are_not_moved(either: Pipeline, tmp_path: Path) -> None:
    """Meters may be as large."""
    path = tmp_path / "a.csv"
    path.write_text('n,g\n1,"MULTIPOINT ((200 300), (1 2))"\n')
    done = await either.to("GeoJson", path, source_epsg=3857)
    (found,) = readers.geojson(done.path)
    assert isinstance(found["geometry"], dict)
    assert found["geometry"]["coordinates"] == [[0.0017966, 0.0026949], [0.000009, 0.000018]]
