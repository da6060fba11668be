"""Types that a shapefile declares: of geometries that are not there, of measures that are none, of true and false."""

import json
import re
import struct
import zipfile
from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.format import reading_of
from service.formats.request import ConversionRequest
from service.formats.table.drawings import SHAPEFILE
from service.formats.verify import ReadBack, VerifiedLayer, compare
from tests.integration.formats import readers
from tests.integration.formats.editing import edited, replace_in
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_dbf_columns import shapefile
from tests.integration.formats.test_losses import table

POINT, POLYGON_Z = 1, 15
MEASURE, ABSENT = struct.pack("<d", 777), struct.pack("<d", -1e39)
TYPES = {POINT: ("POINT", 0), POLYGON_Z: ("POLYGON", 1)}


async def _empty(pipeline: Pipeline, folder: Path, kind: int, system: int = 4326) -> Path:
    """A zipped shapefile that declares a type of geometry and a column, without any record."""
    made = await pipeline.to("Shapefile", write_geojson(folder / "a.geojson", [point(7, 50, n=1)]), target_epsg=system)
    header = struct.pack(">7i", 9994, 0, 0, 0, 0, 0, 50) + struct.pack("<2i", 1000, kind) + bytes(64)
    with zipfile.ZipFile(made.path) as former, zipfile.ZipFile(folder / "a.zip", "w") as packed:
        dbf = former.read("a.dbf")
        (size,) = struct.unpack_from("<H", dbf, 8)
        packed.writestr("a.dbf", dbf[:4] + bytes(4) + dbf[8:size])
        packed.writestr("a.prj", former.read("a.prj"))
        for name in ("a.shp", "a.shx"):
            packed.writestr(name, header)
    return folder / "a.zip"


@pytest.mark.parametrize("kind", TYPES)
async def test_an_empty_layer_keeps_its_type_and_gets_the_system(either: Pipeline, tmp_path: Path, kind: int) -> None:
    """Features can be added to it in the programs for which it was made."""
    done = await either.to("GeoPackage", await _empty(either, tmp_path, kind), target_epsg=3857)
    with edited(done.path) as connection:
        columns = connection.execute("SELECT geometry_type_name, z, srs_id FROM gpkg_geometry_columns").fetchall()
    assert columns == [(*TYPES[kind], 3857)]
    assert (done.plan.output_epsg, done.output.warnings) == (3857, ())


@pytest.mark.parametrize("target", ["SpatiaLite", "OpenFileGdb", "GeoParquet"])
async def test_an_empty_layer_is_one_of_geometries_in_each_format_that_declares_them(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    path = await _empty(either, tmp_path, POINT)
    done = await either.convert(path, ConversionRequest(output=target), verifies=True)
    assert (done.plan.output_epsg, done.output.warnings, done.differences) == (4326, (), ())
    assert {dataset.geometry_type for dataset in done.plan.datasets} == {"Point"}


@pytest.mark.parametrize("kind", ["GeoJson", "Csv"])
async def test_an_empty_layer_has_no_system_where_nothing_declares_one(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    done = await either.to(kind, await _empty(either, tmp_path, POINT))
    assert done.plan.output_epsg is None


async def _measured(pipeline: Pipeline, folder: Path, *geometries: str) -> Path:
    """A zipped shapefile of `geometries`, whose measures of 777 stand for none."""
    made = await pipeline.to("Shapefile", table(folder / "b.csv", *geometries), source_epsg=4326)
    replace_in(made.path, folder / "a.zip", MEASURE, ABSENT)
    return folder / "a.zip"


async def test_measures_that_stand_for_none_are_left_out(either: Pipeline, tmp_path: Path) -> None:
    """A geometry without any other has none; beside others, they are no numbers."""
    lines = "LINESTRING M (1 2 3,3 4 777,5 6 7)", "LINESTRING M (1 2 777,3 4 777)"
    done = await either.to("Wkt", await _measured(either, tmp_path, *lines))
    assert done.path.read_text().splitlines() == ["LINESTRING M (1 2 3,3 4 nan,5 6 7)", "LINESTRING (1 2,3 4)"]
    done = await either.to("GeoJson", await _measured(either, tmp_path, lines[1]))
    assert done.output.warnings == ()


@pytest.mark.parametrize("line", ["LINESTRING Z (0 0 1,1 1 2)", "LINESTRING (0 0,1 1)"])
async def test_measures_are_not_missed_where_no_feature_of_a_dataset_has_any(
    either: Pipeline, tmp_path: Path, line: str
) -> None:
    """The layer has some, of which the points are a dataset of their own."""
    path = table(tmp_path / "a.csv", line, "POINT M (1 2 3)")
    done = await either.convert(path, ConversionRequest(output="Shapefile", source_epsg=4326), verifies=True)
    assert not done.differences
    lacking = {dataset.name: VerifiedLayer(features=1, geometries=1, has_m=False) for dataset in done.plan.datasets}
    assert len([told for told in compare(done.plan, ReadBack(lacking)) if "they were lost" in told]) == 2


async def test_measures_that_stand_for_none_leave_elevations(either: Pipeline, tmp_path: Path) -> None:
    points = "POINT ZM (1 2 3 777)", "POINT ZM (1 2 3 5)"
    path = await _measured(either, tmp_path, *points)
    done = await either.to("Csv", path)
    assert [row["WKT"] for row in readers.table(done.path)] == ["POINT Z (1 2 3)", points[1]]
    done = await either.to("OpenFileGdb", path)
    told = "OpenFileGDB stores measures for all features of a layer or for none; 1 without got 0."
    assert done.output.warnings == (told,)


async def test_a_missing_measure_within_a_line_is_refused_by_its_name(either: Pipeline, tmp_path: Path) -> None:
    path = await _measured(either, tmp_path, "LINESTRING M (1 2 3,3 4 777,5 6 7)")
    with pytest.raises(Rejection, match=r"a coordinate or measure \(M\) of the file that is missing"):
        await either.to("OpenFileGdb", path)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["T", "f", "?"], [True, False, None]),
        (["?"], [None]),
        (["t", "n", "Y", "F", "y", "?"], [True, False, True, False, True, None]),
    ],
)
async def test_logical_columns_are_boolean(
    either: Pipeline, tmp_path: Path, cells: list[str], values: list[object]
) -> None:
    path = await shapefile(either, tmp_path, "L", [cell.encode() for cell in cells])
    done = await either.to("GeoJson", path)
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"c": value} for value in values]
    assert done.output.warnings == ()


@pytest.mark.parametrize(
    ("cells", "kept", "read"),
    [
        (["T", "f", "?", ""], [True, False, None, None], [True, False, None, False]),
        (["", "?"], [None, None], [False, None]),
        (["T", "x", "F"], ["T", "x", "F"], [True, False, False]),
        (["yes", "x", ""], ["yes", "x", None], [True, False, False]),
    ],
)
async def test_logical_values_that_say_nothing_are_kept_or_told(
    either: Pipeline, tmp_path: Path, cells: list[str], kept: list[object], read: list[object]
) -> None:
    """A column with something else is text, where the driver does not read it as false."""
    path = await shapefile(either, tmp_path, "L", [cell.encode() for cell in cells])
    done = await either.to("GeoJson", path)
    is_read = either.engine.capabilities.is_of(reading_of(SHAPEFILE).reads_logical)
    values = read if is_read else kept
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"c": value} for value in values]
    number = sum(cell.strip()[:1] not in tuple("TtYyFfNn?") for cell in cells)
    told = f"Values of 'c' in 'a' that are neither true nor false ({number}, first "
    assert [warning.startswith(told) for warning in done.output.warnings] == [True] * is_read


OUTER, HOLE = [(0, 0), (0, 10), (10, 10), (10, 0), (0, 0)], [(2, 2), (4, 2), (4, 4), (2, 4), (2, 2)]


def _ring(places: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack("<2d", *place) for place in places)


@pytest.mark.parametrize("is_reversed", [True, False])
async def test_holes_that_the_direction_of_rings_makes_areas_are_told(
    either: Pipeline, tmp_path: Path, *, is_reversed: bool
) -> None:
    """The driver takes rings against the clock for holes, wherever they are; the area of this one was negative."""
    rings = (", ".join(f"{x} {y}" for x, y in ring) for ring in (OUTER, HOLE))
    wkt = f"POLYGON (({'), ('.join(rings)}))"
    path = (await either.to("Shapefile", table(tmp_path / "b.csv", wkt), source_epsg=4326)).path
    for number, ring in enumerate((OUTER, HOLE) * is_reversed):
        replace_in(path, tmp_path / f"{number}.zip", re.escape(_ring(ring)), _ring(ring[::-1]))
        path = tmp_path / f"{number}.zip"
    told = [words for words in (await either.to("GeoJson", path)).output.warnings if "Holes lie outside" in words]
    assert ["in 1 feature:" in words for words in told] == [True] * is_reversed


BESIDE = [(20, 0), (20, 3), (23, 3), (23, 0), (20, 0)]


@pytest.mark.parametrize(
    ("rings", "reversed_rings", "told"),
    [
        ((OUTER, HOLE), (OUTER,), True),
        ((OUTER, HOLE, BESIDE), (OUTER, BESIDE), True),
        ((OUTER, HOLE), (), False),
        ((OUTER, BESIDE), (OUTER, BESIDE), False),
    ],
)
async def test_holes_that_become_areas_since_no_ring_has_the_direction_of_outer_ones_are_told(
    either: Pipeline,
    tmp_path: Path,
    rings: tuple[list[tuple[int, int]], ...],
    reversed_rings: tuple[list[tuple[int, int]], ...],
    *,
    told: bool,
) -> None:
    """Drivers make areas of all rings then, newer ones only of some. Areas with nothing inside stay what they were."""
    outer = ["(" + ", ".join(f"{x} {y}" for x, y in ring) + ")" for ring in rings]
    parts = [", ".join(outer[:2]), *outer[2:]] if HOLE in rings else outer
    wkt = f"MULTIPOLYGON ({', '.join(f'({part})' for part in parts)})"
    path = (await either.to("Shapefile", table(tmp_path / "b.csv", wkt), source_epsg=4326)).path
    for number, ring in enumerate(reversed_rings):
        replace_in(path, tmp_path / f"{number}.zip", re.escape(_ring(ring)), _ring(ring[::-1]))
        path = tmp_path / f"{number}.zip"
    done = await either.to("GeoJson", path)
    (made,) = (row["geometry"] for row in json.loads(done.path.read_text())["features"])
    areas = made["coordinates"] if made["type"] == "MultiPolygon" else [made["coordinates"]]
    has_hole = any(len(area) > 1 for area in areas)
    assert [words[:38] for words in done.output.warnings] == ["Rings have the wrong direction in 1 fe"] * (
        told and not has_hole
    )
