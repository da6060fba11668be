"""Collections that contain Multi geometries and other collections."""

import json
from pathlib import Path

import pyogrio.raw
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson


def collection(*parts: Json) -> Json:
    return {"type": "GeometryCollection", "geometries": list(parts)}


POINTS, LINE = geometry("MultiPoint", [[1, 1], [2, 2]]), geometry("LineString", [[0, 0], [1, 1]])
HIGH = geometry("MultiPoint", [[1, 1, 5], [2, 2, 6]])
NESTED: dict[str, Json] = {
    "points": collection(POINTS, LINE),
    "points with elevations": collection(HIGH, LINE),
    "points in an inner collection": collection(LINE, collection(POINTS)),
}


def points_and_lines(path: Path) -> tuple[int, int]:
    _, _, geometries, _ = pyogrio.raw.read(path)
    codes = [int.from_bytes(wkb[1:3], "little") % 1000 for wkb in geometries]
    return codes.count(1), codes.count(2)


@pytest.mark.parametrize("what", NESTED)
async def test_points_in_collections_become_points_of_a_drawing(either: Pipeline, tmp_path: Path, what: str) -> None:
    """The driver refuses Multi geometries of points, and takes only the outermost collection apart."""
    path = tmp_path / "a.csv"
    path.write_text(f'n,g\n1,"{json.dumps(NESTED[what]).replace(chr(34), chr(34) * 2)}"\n2,"{{}}"\n')
    done = await either.to("Dxf", path, source_epsg=4326)
    assert points_and_lines(done.path) == (2, 1)
    assert any("those of 1 feature were split into their parts" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("what", NESTED)
async def test_points_in_collections_of_geojson_become_points_of_a_drawing(
    either: Pipeline, tmp_path: Path, what: str
) -> None:
    """Such a document is not converted as it is."""
    directory, source = either.receive(write_geojson(tmp_path / "a.geojson", [feature(NESTED[what], n=1)]))
    target = choose_target(source.format, "Dxf")
    async with either.engine.session(either.run, target) as run:
        look = await inspect_source(either.engine, run, source, target, directory)
        plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), either.engine.catalogue)
        await either.engine.convert(run, look.source, plan, directory)
    assert points_and_lines((await either.engine.collect(plan, directory)).path) == (2, 1)
