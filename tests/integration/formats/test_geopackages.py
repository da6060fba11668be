"""GeoPackages of other programs, which follow the standard less strictly than ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_losses import database, table, wkt

UNDEFINED = {
    "VARCHAR(80)": ("ab", "ab"),
    "BIGINT": (2**53 + 1, str(2**53 + 1)),
    "DECIMAL(10,2)": (12.25, "12.25"),
    "TIMESTAMP": ("2024-01-02 03:04:05", "2024-01-02 03:04:05"),
    "INTERVAL": ("5 days", "5 days"),
    "TINYTEXT": ("ab", "ab"),
    "POINT": (b"\x01\xff", "01FF"),
    "GEOMETRY": (b"\x01\xff", "01FF"),
    "UUID": (None, ""),
    "INTEGER": (7, "7"),
}
"""Types of columns, all but the last defined for no attribute; a value, and how a CSV file writes it."""


@pytest.mark.parametrize("kind", UNDEFINED)
async def test_a_column_of_an_undefined_type_is_kept(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """The driver takes it for a geometry and leaves it out, or reads its texts as 0."""
    value, text = UNDEFINED[kind]
    path = await database(either, tmp_path, [f"c {kind}", "n INTEGER"], (value, 7), (value, None))
    done = await either.to("Csv", path)
    rows = [(row["X"], row["c"], row["n"]) for row in readers.table(done.path)]
    assert rows == [("1", text, "7"), ("1", text, "")]


async def test_numbers_beside_texts_keep_all_of_their_digits(either: Pipeline, tmp_path: Path) -> None:
    """A column that holds both becomes one of texts, as which SQLite writes 15 digits."""
    path = await database(either, tmp_path, ["c DECIMAL(10,2)", "n INTEGER"], (0.1 + 0.2, 7), ("a", None))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == ["0.30000000000000004", "a"]


async def test_a_table_is_made_anew_beside_whatever_else_a_file_defines(either: Pipeline, tmp_path: Path) -> None:
    """Triggers see nothing of it, and no name is needed that a view may have."""
    path = await database(either, tmp_path, ["c VARCHAR(80)", "n INTEGER"], ("ab", 7))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(f'CREATE VIEW __geomill_former AS SELECT * FROM "{table}"')  # noqa: S608 -- ours
        for at in ("BEFORE DELETE", "AFTER INSERT"):
            connection.execute(f'CREATE TRIGGER "{at}" {at} ON "{table}" BEGIN SELECT RAISE(ABORT, \'no\'); END')
    done = await either.to("Csv", path)
    assert [(row["c"], row["n"]) for row in readers.table(done.path)] == [("ab", "7")]


@pytest.mark.parametrize("target", ["FlatGeobuf", "SpatiaLite", "GeoParquet"])
async def test_geometries_of_other_types_than_a_layer_declares_are_kept(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    """Formats that hold any type must not inherit the declared one."""
    geometries = ["POINT (1 2)", "LINESTRING (1 2,3 4)"]
    path = (await either.to("GeoPackage", table(tmp_path / "a.csv", *geometries), source_epsg=4326)).path
    with edited(path) as connection:
        connection.execute("UPDATE gpkg_geometry_columns SET geometry_type_name = 'POINT'")
    done = await either.to(target, path)
    assert done.output.warnings == ()
    assert sorted(await wkt(either, done)) == sorted(geometries)


async def test_a_layer_is_read_although_its_system_cannot_be(either: Pipeline, tmp_path: Path) -> None:
    """The driver complains while it reads the columns, which `ogr2ogr` takes for a failure since GDAL 3.13.2."""
    path = await database(either, tmp_path, ["n INTEGER"], (7,))
    with edited(path) as connection:
        connection.execute("INSERT INTO gpkg_spatial_ref_sys VALUES ('odd', 70000, 'NONE', 70000, 'no system', NULL)")
        connection.execute("UPDATE gpkg_geometry_columns SET srs_id = 70000")
    done = await either.to("Csv", path, source_epsg=4326)
    assert [(row["X"], row["n"]) for row in readers.table(done.path)] == [("1", "7")]


async def test_no_values_are_told_of_tables_that_are_no_layers(either: Pipeline, tmp_path: Path) -> None:
    """If a GeoPackage lists tables without geometry, its driver reads no others, of which there may be thousands."""
    path = await database(either, tmp_path, ["c VARCHAR(80)", "n INTEGER"], ("a", 7))
    with edited(path) as connection:
        for number in range(1200):
            connection.execute(f"CREATE TABLE other{number} (k INTEGER PRIMARY KEY, v DATE)")
            connection.execute(f"INSERT INTO other{number} VALUES (1, 'no date')")  # noqa: S608 -- ours
        connection.execute("CREATE TABLE listed (k INTEGER PRIMARY KEY, v VARCHAR(8))")
        connection.execute("INSERT INTO listed VALUES (1, 'x')")
        connection.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) VALUES ('listed', 'attributes', 'listed')"
        )
    done = await either.to("Xlsx", path)
    (told,) = done.output.warnings
    assert told.startswith("Tables that gpkg_contents does not list (1,200) were left out.")
    assert [layer.name for layer in done.facts.layers][1:] == ["listed"]


@pytest.mark.parametrize("kind", ["attributes", "aspatial"])
async def test_tables_are_told_that_a_file_does_not_list_as_it_declares(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """GDAL before 2.2 declared that it lists all tables, by an extension of its own; values of the others count."""
    path = await database(either, tmp_path, ["c TEXT"], ("a",))
    with edited(path) as connection:
        for name in ("listed", "other"):
            connection.execute(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, v VARCHAR(8), d DATE)")
            connection.execute(f"INSERT INTO {name} VALUES (1, '{name}', 'no date')")  # noqa: S608 -- ours
        connection.execute("INSERT INTO gpkg_contents (table_name, data_type) VALUES ('listed', ?)", (kind,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS gpkg_extensions (table_name, column_name, extension_name, definition, scope)"
        )
        connection.execute("INSERT INTO gpkg_extensions VALUES (NULL, NULL, 'gdal_aspatial', 'gdal.org', 'read-write')")
    done = await either.to("Csv", path, layer="listed")
    assert readers.table(done.path) == [{"v": "listed", "d": "no date"}]
    told = [warning for warning in done.output.warnings if "gpkg_contents" in warning or "other types" in warning]
    assert len(told) == 2
    assert "does not list (1)" in told[0]
    assert "(1 value of 'd')" in told[1]


async def test_a_table_without_numbers_of_rows_is_refused_as_such(either: Pipeline, tmp_path: Path) -> None:
    """It was called damaged; with the key that the refusal advises, it is read."""
    path = await database(either, tmp_path, ["c TEXT"], ("ab",))
    with edited(path) as connection:
        (name, geometry) = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        for key in (
            "id TEXT PRIMARY KEY, {} POINT, c TEXT) WITHOUT ROWID",
            "id INTEGER PRIMARY KEY, {} POINT, c TEXT)",
        ):
            connection.execute(f'CREATE TABLE "{key[:7]}" ({key.format(geometry)}')
            connection.execute(f'INSERT INTO "{key[:7]}" SELECT 1, "{geometry}", c FROM "{name}"')  # noqa: S608 -- ours
        connection.execute(f'DROP TABLE "{name}"')
        connection.execute(f'ALTER TABLE "id TEXT" RENAME TO "{name}"')
    with pytest.raises(Rejection, match=r"\(WITHOUT ROWID\).* INTEGER PRIMARY KEY\."):
        await either.to("Csv", path)
    with edited(path) as connection:
        connection.execute(f'DROP TABLE "{name}"')
        connection.execute(f'ALTER TABLE "id INTE" RENAME TO "{name}"')
    assert [row["c"] for row in readers.table((await either.to("Csv", path)).path)] == ["ab"]


@pytest.mark.parametrize("declared", ["TEXT", "VARCHAR"])
async def test_a_geopackage_of_nothing_but_attributes_needs_no_list_of_geometries(
    either: Pipeline, tmp_path: Path, declared: str
) -> None:
    """The standard requires that table of one with features; of another, its driver reads nothing without it."""
    path = await database(either, tmp_path, ["c TEXT"], ("a",))
    with edited(path) as connection:
        connection.execute(f"CREATE TABLE listed (k INTEGER PRIMARY KEY, v {declared})")
        connection.execute("INSERT INTO listed VALUES (1, 'b')")
        connection.execute("INSERT INTO gpkg_contents (table_name, data_type) VALUES ('listed', 'attributes')")
        connection.execute("DROP TABLE gpkg_geometry_columns")
    assert readers.table((await either.to("Csv", path, layer="listed")).path) == [{"v": "b"}]
    with edited(path) as connection:
        connection.execute("DELETE FROM gpkg_contents WHERE table_name = 'listed'")
    with pytest.raises(Rejection, match="does not say which columns have the geometries"):
        await either.to("Csv", path)


VIEWS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "fid, geom, n * 0.5 AS half, n || '!' AS said": [{"half": 2.5, "said": "5!"}, {"half": 3.5, "said": "7!"}],
    "n, geom": [{"n": 5}, {"n": 7}],
    "geom, CAST(n AS INTEGER) AS c, 7 AS fid": [{"c": 5, "fid": 7}, {"c": 7, "fid": 7}],
    "geom, n + 0 AS OGC_FID, date('2024-01-02') AS day": [{"day": "2024-01-02"}, {"day": "2024-01-02"}],
}
"""What views of a table with the numbers 5 and 7 in `n` select, and what a result has of it."""


def shows(path: Path, selected: str) -> None:
    """Make a view the only layer of a GeoPackage instead of its table."""
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(f'CREATE VIEW seen AS SELECT {selected} FROM "{table}"')  # noqa: S608 -- ours
        for listing in ("gpkg_contents", "gpkg_geometry_columns"):
            connection.execute(f"UPDATE {listing} SET table_name = 'seen'")  # noqa: S608 -- ours


@pytest.mark.parametrize("selected", VIEWS)
async def test_what_a_view_selects_and_computes_is_kept(either: Pipeline, tmp_path: Path, selected: str) -> None:
    """The driver makes texts of what it computes, and leaves out the first column of integers."""
    path = await database(either, tmp_path, ["n INTEGER"], (5,), (7,))
    shows(path, selected)
    done = await either.to("GeoJson", path)
    assert [feature["properties"] for feature in readers.geojson(done.path)] == VIEWS[selected]
    gaps = [warning for warning in done.output.warnings if "'OGC_FID' numbers the rows" in warning]
    assert len(gaps) == ("OGC_FID" in selected)


async def test_a_view_that_is_listed_as_aspatial_is_kept_like_others(either: Pipeline, tmp_path: Path) -> None:
    """As GDAL listed tables without geometry before the standard had a word for them, and reads them."""
    path = await database(either, tmp_path, ["n INTEGER"], (5,), (7,))
    with edited(path) as connection:
        [(table,)] = connection.execute("SELECT table_name FROM gpkg_contents")
        connection.execute(f'CREATE VIEW seen AS SELECT n, n + 1 AS more FROM "{table}"')  # noqa: S608 -- ours
        connection.execute("INSERT INTO gpkg_contents (table_name, data_type) VALUES ('seen', 'aspatial')")
    done = await either.to("GeoJson", path, layer="seen")
    assert [feature["properties"] for feature in readers.geojson(done.path)] == [
        {"n": 5, "more": 6},
        {"n": 7, "more": 8},
    ]


async def test_a_view_with_functions_of_other_programs_is_told(either: Pipeline, tmp_path: Path) -> None:
    """SQLite alone cannot say what it selects."""
    path = await database(either, tmp_path, ["n INTEGER"], (5,))
    shows(path, "geom, ST_MinX(geom) AS x")
    done = await either.to("GeoJson", path)
    assert any("functions of other programs ('seen')" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("selected", ["geom, gone", "geom, (SELECT n FROM gone) AS n"])
async def test_a_view_of_what_is_not_there_is_named_as_the_reason(
    either: Pipeline, tmp_path: Path, selected: str
) -> None:
    """The file was called damaged or cut off."""
    path = await database(either, tmp_path, ["n INTEGER"], (5,))
    shows(path, selected)
    with pytest.raises(Rejection, match="A view of the GeoPackage cannot be computed"):
        await either.to("GeoJson", path)
