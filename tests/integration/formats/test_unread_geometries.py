"""What drivers leave out of databases: values that are no geometries, further geometries of a row, and views."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_losses import database

WKB = struct.pack("<BIdd", 1, 1, 7, 47)
SPATIALITE = struct.pack("<BBi4dB", 0, 1, 4326, 7, 47, 7, 47, 0x7C) + WKB[1:] + b"\xfe"
LEFT_OUT = (
    "Geometries that are not stored as this format does, such as texts or plain WKB ({} of 'geom'), were left out."
)


def spatialite(path: Path, *rows: tuple[object, object]) -> Path:
    """An SQLite database as SpatiaLite 3 makes it: a table with two geometry columns and `rows` of their values."""
    with edited(path) as connection:
        connection.executescript(
            """
            CREATE TABLE spatial_ref_sys (srid INTEGER PRIMARY KEY, auth_name, auth_srid INTEGER, proj4text);
            INSERT INTO spatial_ref_sys VALUES (4326, 'epsg', 4326, '+proj=longlat +datum=WGS84 +no_defs');
            CREATE TABLE geometry_columns (
                f_table_name, f_geometry_column, type, coord_dimension, srid INTEGER, spatial_index_enabled INTEGER
            );
            INSERT INTO geometry_columns VALUES ('a', 'at', 'POINT', 'XY', 4326, 0);
            INSERT INTO geometry_columns VALUES ('a', 'geom', 'POINT', 'XY', 4326, 0);
            CREATE TABLE a (name TEXT, geom BLOB, at BLOB);
            """
        )
        connection.executemany("INSERT INTO a VALUES ('x', ?, ?)", rows)
    return path


@pytest.mark.parametrize("value", [WKB, "POINT (7 47)", b"GP\0\x01"], ids=["WKB", "WKT", "cut off"])
async def test_values_of_a_geopackage_that_are_no_geometries_are_told(
    either: Pipeline, tmp_path: Path, value: object
) -> None:
    path = await database(either, tmp_path, ["c TEXT", "n INTEGER"], ("a", 7), ("b", 8), ("c", 9))
    with edited(path) as connection:
        table, column = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE n = 7', (value,))  # noqa: S608 -- ours
        connection.execute(f'UPDATE "{table}" SET "{column}" = x\'\' WHERE n = 8')  # noqa: S608 -- ours
    done = await either.to("Csv", path)
    assert [row["X"] for row in readers.table(done.path)] == ["", "", "1"]
    (told,) = done.output.warnings
    assert told.startswith(LEFT_OUT.format("1 value"))


async def test_geometries_of_spatialite_in_a_geopackage_are_read(either: Pipeline, tmp_path: Path) -> None:
    path = await database(either, tmp_path, ["c TEXT", "n VARCHAR(8)"], ("a", "7"))
    with edited(path) as connection:
        table, column = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (SPATIALITE,))  # noqa: S608 -- ours
    done = await either.to("Csv", path)
    assert [row["X"] for row in readers.table(done.path)] == ["7"]
    assert done.output.warnings == ()


async def test_values_of_a_spatialite_table_that_are_no_geometries_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    path = spatialite(tmp_path / "a.sqlite", (SPATIALITE, None), (WKB, None), ("POINT (7 47)", None), (None, None))
    done = await pipeline.to("Csv", path)
    assert [row["WKT"] for row in readers.table(done.path)] == ["POINT (7 47)", "", "", ""]
    (told,) = done.output.warnings
    assert told.startswith(LEFT_OUT.format("2 values"))


WRONG = ("PINT (1 2)", "POINT (1", "POINT (a b)", "POINT", WKB)
RIGHT = ("POINT (7. 8.)", " multilinestring z((1 2 3,4 5 6))", "POINT EMPTY", "LINESTRING(-1e1 .5,\n3 4)", "")


async def test_values_of_a_table_of_wkt_that_are_no_geometries_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """An SQLite database as GDAL makes it names the format of the column."""
    path = spatialite(tmp_path / "a.sqlite", *((value, None) for value in (*WRONG, *RIGHT, None)))
    with edited(path) as connection:
        connection.executescript(
            """
            DROP TABLE geometry_columns;
            DROP TABLE spatial_ref_sys;
            CREATE TABLE spatial_ref_sys (srid INTEGER PRIMARY KEY, auth_name, auth_srid INTEGER, srtext);
            CREATE TABLE geometry_columns (
                f_table_name, f_geometry_column, geometry_type INTEGER, coord_dimension INTEGER, srid INTEGER,
                geometry_format
            );
            INSERT INTO geometry_columns VALUES ('a', 'geom', 0, 2, 4326, 'WKT');
            """
        )
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    told, empty = done.output.warnings
    assert told.startswith(LEFT_OUT.format(f"{len(WRONG)} values"))
    assert empty == "Geometries without any position, such as POINT EMPTY (1), became missing."


async def test_further_geometries_of_a_row_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """The first one is that of the column which the table declares first, in whatever order they are registered."""
    other = SPATIALITE.replace(struct.pack("<d", 47), struct.pack("<d", 48))
    path = spatialite(tmp_path / "a.sqlite", (SPATIALITE, other), (SPATIALITE, None))
    done = await pipeline.to("Csv", path)
    assert [row["WKT"] for row in readers.table(done.path)] == ["POINT (7 47)", "POINT (7 47)"]
    told = "Geometries after the first one of a row (1 value of 'at') were left out."
    assert done.output.warnings == (told,)


@pytest.mark.parametrize("is_usual", [True, False])
async def test_views_and_virtual_tables_are_told_but_not_those_of_spatialite(
    pipeline: Pipeline, tmp_path: Path, *, is_usual: bool
) -> None:
    path = spatialite(tmp_path / "a.sqlite", (SPATIALITE, None))
    with edited(path) as connection:
        connection.execute("CREATE VIRTUAL TABLE idx_a_geom USING rtree (pkid, xmin, xmax, ymin, ymax)")
        connection.execute("CREATE VIEW vector_layers AS SELECT * FROM geometry_columns")
        if not is_usual:
            connection.execute("CREATE VIEW v AS SELECT 2 AS two FROM a")
            connection.execute("CREATE VIRTUAL TABLE words USING fts4 (body)")
    done = await pipeline.to("Csv", path)
    told = "Views and virtual tables were left out: 'v', 'words'."
    assert done.output.warnings == (() if is_usual else (told,))


SYSTEMS = {
    "its own": (struct.pack("<Bi", 1, 4326), 4326, 0),
    "its own, big endian": (struct.pack(">Bi", 0, 4326), 4326, 0),
    "none": (struct.pack("<Bi", 1, 0), 4326, 0),
    "none on Earth": (struct.pack("<Bi", 1, -1), 4326, 0),
    "another number for it": (struct.pack("<Bi", 1, 4326), 70000, 0),
    "another": (struct.pack("<Bi", 1, 4258), 4326, 1),
    "another, big endian": (struct.pack(">Bi", 0, 4258), 4326, 1),
    "one where the table names none": (struct.pack("<Bi", 1, 4258), 0, 0),
}
"""What geometries say of their system: their bytes, the number of the system of their table, and how many are told."""


@pytest.mark.parametrize("says", SYSTEMS)
async def test_geometries_that_name_another_system_than_their_table_are_told(
    either: Pipeline, tmp_path: Path, says: str
) -> None:
    """The driver ignores what they name."""
    system, of_table, told = SYSTEMS[says]
    path = await database(either, tmp_path, ["n INTEGER"], (7,), (8,))
    with edited(path) as connection:
        table, column = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        connection.execute(
            "INSERT INTO gpkg_spatial_ref_sys SELECT srs_name, 70000, 'epsg', 4326, definition, description "
            "FROM gpkg_spatial_ref_sys WHERE srs_id = 4326"
        )
        connection.execute("UPDATE gpkg_geometry_columns SET srs_id = ?", (of_table,))
        named = (b"GP\0" + system + WKB,)
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE n = 8', named)  # noqa: S608 -- ours
    done = await either.to("Csv", path, **({} if of_table else {"source_epsg": 4326}))
    assert [row["X"] for row in readers.table(done.path)] == ["1", "7"]
    warnings = [warning for warning in done.output.warnings if "another coordinate system than their table" in warning]
    assert len(warnings) == told
    assert all("(1 value of 'geom')" in warning for warning in warnings)


def fdo(path: Path, kind: str, rows: Sequence[object], srid: int = 4326) -> Path:
    """An SQLite database as GDAL makes it, which stores the geometries of `rows` in the format `kind`."""
    with edited(path) as connection:
        connection.executescript(
            """
            CREATE TABLE spatial_ref_sys (srid INTEGER UNIQUE, auth_name TEXT, auth_srid TEXT, srtext TEXT);
            CREATE TABLE geometry_columns (
                f_table_name, f_geometry_column, geometry_type INTEGER, coord_dimension INTEGER, srid INTEGER,
                geometry_format
            );
            CREATE TABLE a (name TEXT, geom);
            """
        )
        systems = [(4326, "EPSG", "4326", WGS_84), (7, "epsg", "4326", WGS_84), (9, "epsg", "4258", WGS_84)]
        connection.executemany("INSERT INTO spatial_ref_sys VALUES (?, ?, ?, ?)", systems)
        connection.execute("INSERT INTO geometry_columns VALUES ('a', 'geom', 1, 2, ?, ?)", (srid, kind))
        connection.executemany("INSERT INTO a VALUES ('x', ?)", [(row,) for row in rows])
    return path


WGS_84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
    'UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'
)


def _extended(srid: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}BIIdd", order == "<", 0x20000001, srid, 7, 47)


NAMES: Mapping[str, Sequence[str | bytes]] = {
    "WKT": [f"SRID={srid};POINT (7 47)" for srid in (4326, 7, 9, 4258, 0)] + ["POINT (7 47)", "srid=9;POINT (7 47)"],
    "WKB": [*map(_extended, (4326, 7, 9, 4258, 0)), WKB, _extended(9, ">"), _extended(7, ">")],
    "SpatiaLite": [
        SPATIALITE[:2] + struct.pack("<i", srid) + SPATIALITE[6:] for srid in (4326, 7, 9, 4258, 0, -1, 25832)
    ],
}
"""Geometries by their format, three of which name another system than 4326 and 7, which is the same."""


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("srid", [4326, 7])
async def test_geometries_of_sqlite_that_name_another_system_than_their_table_are_told(
    either: Pipeline, tmp_path: Path, kind: str, srid: int
) -> None:
    """In each format that the driver reads; it ignores what they name."""
    done = await either.to("GeoPackage", fdo(tmp_path / "a.sqlite", kind, NAMES[kind], srid))
    (told,) = done.output.warnings
    assert told.startswith("Geometries that name another coordinate system than their table (3 values of 'geom')")


@pytest.mark.parametrize("kind", NAMES)
async def test_geometries_of_sqlite_that_name_the_system_of_their_table_are_not_told(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    done = await either.to("GeoPackage", fdo(tmp_path / "a.sqlite", kind, NAMES[kind][:2]))
    assert done.output.warnings == ()
