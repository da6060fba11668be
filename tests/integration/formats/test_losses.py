"""What targets cannot hold of geometries and values, kept where they can and told where they cannot."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from service.dataloss.rules import report
from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from tests.integration.formats.pipeline import Converted, Pipeline

ARC = "CIRCULARSTRING Z (0 0 5,1 1 5,2 0 5)"
CURVES = {
    ARC: "LINESTRING Z",
    f"COMPOUNDCURVE Z ({ARC},(2 0 5,3 3 5))": "LINESTRING Z",
    "CURVEPOLYGON Z (CIRCULARSTRING Z (0 0 5,1 1 5,2 0 5,1 -1 5,0 0 5))": "POLYGON Z",
    f"MULTICURVE Z ({ARC},(5 5 5,6 6 5))": "MULTILINESTRING Z",
    "CIRCULARSTRING ZM (0 0 5 1,1 1 5 2,2 0 5 3)": "LINESTRING Z",
}


def table(path: Path, *geometries: str) -> Path:
    rows = "".join(f'{number},"{geometry}"\n' for number, geometry in enumerate(geometries))
    path.write_text(f"id,WKT\n{rows}", encoding="utf-8")
    return path


async def wkt(pipeline: Pipeline, done: Converted) -> list[str]:
    """The geometries of an output as WKT, by way of a second conversion."""
    return (await pipeline.to("Wkt", done.path)).path.read_text().splitlines()


@pytest.mark.parametrize("target", ["GeoJson", "Shapefile", "Kml"])
@pytest.mark.parametrize("curve", CURVES)
async def test_curves_with_elevations_become_lines(pipeline: Pipeline, tmp_path: Path, curve: str, target: str) -> None:
    """The converter would make null geometries of them."""
    done = await pipeline.to(target, table(tmp_path / "a.csv", curve), source_epsg=4326)
    assert any("curves" in warning for warning in done.output.warnings)
    (found,) = await wkt(pipeline, done)
    assert found.startswith((CURVES[curve], CURVES[curve].removeprefix("MULTI")))
    assert found.count(" 5") > 40


@pytest.mark.parametrize("target", ["GeoPackage", "Shapefile", "FlatGeobuf", "SpatiaLite"])
@pytest.mark.parametrize(
    "geometry",
    ["POINT ZM (1 2 3 4)", "POINT M (1 2 4)", "LINESTRING M (0 0 5,1 1 6)", "LINESTRING ZM (0 0 5 7,1 1 6 8)"],
)
async def test_measures_are_kept_where_the_target_has_them(
    pipeline: Pipeline, tmp_path: Path, geometry: str, target: str
) -> None:
    """With and without elevations."""
    done = await pipeline.to(target, table(tmp_path / "a.csv", geometry), source_epsg=4326)
    assert await wkt(pipeline, done) == [geometry]
    assert not any("measures" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("target", ["GeoJson", "Kml", "Gml", "GeoParquet", "Dxf", "MapInfo"])
async def test_measures_are_told_where_the_target_has_none(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """Elevations stay where they were."""
    done = await pipeline.to(target, table(tmp_path / "a.csv", "POINT ZM (1 2 3 4)"), source_epsg=4326)
    assert any("stores no measures (M)" in warning for warning in done.output.warnings)


async def database(pipeline: Pipeline, folder: Path, columns: Sequence[str], *rows: Sequence[object]) -> Path:
    """A GeoPackage with a point and the `columns`, each a name and a type, in every row."""
    path = (
        await pipeline.to("GeoPackage", table(folder / "a.csv", *["POINT (1 2)"] * len(rows)), source_epsg=4326)
    ).path
    with closing(sqlite3.connect(path)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')  # they call functions that SQLite alone does not have
        (name,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        for column in columns:
            connection.execute(f'ALTER TABLE "{name}" ADD COLUMN {column}')
        names = ", ".join(f"{column.split()[0]} = ?" for column in columns)
        for number, row in enumerate(rows):
            connection.execute(f'UPDATE "{name}" SET {names} WHERE id = ?', (*row, number))  # noqa: S608 -- ours
    return path


COLUMNS = ("big INTEGER", "inf REAL", "bytes BLOB", "at DATETIME", "day DATE", "code TEXT")
ROW = (9007199254740993, float("inf"), b"\x00\xff", "2024-01-02T03:04:05.678Z", "2024-01-02", "00501")
EMPTY = (1, 1.0, None, None, None, None)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("GeoJson", ["infinite"]),
        ("Xlsx", ["infinite", "53 bits"]),
        ("Ods", ["infinite", "53 bits"]),
        ("FlatGeobuf", ["midnight"]),
        ("MapInfo", ["binary", "32 bits", "missing"]),
        ("OpenFileGdb", ["53 bits", "fractions", "time zones", "midnight"]),
        ("Gml", ["leading zeros"]),
        ("Shapefile", ["binary"]),
        ("GeoPackage", []),
    ],
)
async def test_values_that_a_target_changes_are_told(
    pipeline: Pipeline, tmp_path: Path, target: str, told: list[str]
) -> None:
    """Each kind once, with its columns and how many values; nothing is told of what is kept."""
    path = await database(pipeline, tmp_path, COLUMNS, ROW, EMPTY)
    if target == "GeoPackage":
        path = (await pipeline.to("SpatiaLite", path)).path
    warnings = (await pipeline.to(target, path)).output.warnings
    for words in told:
        assert sum(words in warning for warning in warnings) == 1, (words, warnings)
    if not told:
        assert not warnings


async def test_the_report_of_a_shapefile_covers_every_input(pipeline: Pipeline, tmp_path: Path) -> None:
    """From the tables that were read it says what a scan of the same as GeoJSON would."""
    columns = ("huge REAL", "empty TEXT", "trail TEXT", "population_2020 TEXT", "population_2021 TEXT", "inf REAL")
    path = await database(pipeline, tmp_path, columns, (1e300, "", "x  ", "y" * 300, "z", float("inf")))
    done = await pipeline.to("Shapefile", path)
    found = findings_of(done.plan.converted)
    told = report(found)
    assert told.applicable
    assert told.has_data_loss
    assert [entry.fields for entry in told.field_name_collisions] == [("population_2020", "population_2021")]
    assert [entry.affected_features for entry in told.value_truncations] == [1]
    sentences = "\n".join(extra_warnings(found))
    for words in ("1 value in huge: numbers with more digits", "1 value in empty", "1 value in trail", "infinite"):
        assert words in sentences
