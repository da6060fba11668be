"""Databases, which hold values of any type in any column, and have keys that their drivers do not read as columns."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_losses import database
from tests.support.converters import Converters

LARGE = 1 << 40
MISTYPED = "Columns with values of other types than the database declares (1 value of 'c')"


def written(path: Path, definition: str, *rows: Sequence[object]) -> Path:
    """An SQLite database with a table of `definition` and `rows`."""
    with edited(path) as connection:
        connection.execute(f"CREATE TABLE a ({definition})")
        connection.executemany(f"INSERT INTO a VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608 -- ours
    return path


def with_key(path: Path, ids: Sequence[int], name: str) -> Path:
    """The GeoPackage at `path`, with these ids of features in the column `name`."""
    with edited(path) as connection:
        ((table, key),) = connection.execute(
            "SELECT table_name, name FROM gpkg_contents, pragma_table_info(table_name) WHERE pk"
        )
        connection.execute(f'UPDATE "{table}" SET "{key}" = "{key}" + 1000000')  # noqa: S608 -- ours
        order = [number for (number,) in connection.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]  # noqa: S608 -- ours
        for old, new in zip(order, ids, strict=True):
            connection.execute(f'UPDATE "{table}" SET "{key}" = ? WHERE rowid = ?', (new, old))  # noqa: S608 -- ours
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{key}" TO "{name}"')
    return path


def number(text: str) -> float:
    """The number in a cell, an integer with all its digits."""
    return float(text) if "." in text else int(text)


MIXED_NUMBERS: dict[str, list[float]] = {
    "INTEGER": [1, LARGE, -1],
    "INT": [1, LARGE, -1],
    "SMALLINT": [1, LARGE, -1],
    "BIGINT": [1, LARGE, -1],
    "DECIMAL(10,2)": [1, 2.25, LARGE],
    "MONEY": [1, 2.25, LARGE],
    "INT(11)": [1, LARGE, 7],
    "": [1, LARGE, 2.5],
    "NUMERIC": [1, 2, (1 << 53) + 1],
    "DATETIME": [1700000000, 1700000000123, 5],
    "BOOLEAN": [0, 1, 2],
    "JSON": [1, 2.5, 3],
}
"""Declared types, and values of which the driver, which goes by the first one, would change others."""


@pytest.mark.parametrize("kind", MIXED_NUMBERS)
async def test_numbers_of_a_database_are_kept_whatever_their_column_declares(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """Integers beyond 32 bits became 2147483647, and 2.25 became 2 behind a 1."""
    values = MIXED_NUMBERS[kind]
    path = written(tmp_path / "a.sqlite", f'"v" {kind}, t TEXT', *((value, "x") for value in values))
    done = await either.to("Csv", path)
    assert [number(row["v"]) for row in readers.table(done.path)] == values
    assert done.output.warnings == ()


async def test_whole_numbers_too_large_beside_decimals_become_texts(either: Pipeline, tmp_path: Path) -> None:
    """A floating-point number would change their last digits."""
    path = written(tmp_path / "a.sqlite", "v NUMERIC, t TEXT", (0.5, "x"), ((1 << 53) + 1, "x"))
    done = await either.to("Csv", path)
    assert [row["v"] for row in readers.table(done.path)] == ["0.5", str((1 << 53) + 1)]


@pytest.mark.parametrize("kind", ["", "TEXT", "BLOB", "VARCHAR(80)", "INTEGER"])
@pytest.mark.parametrize("values", [("text", b"\x00\xff"), (b"\x00\xff", "text")])
async def test_binary_values_beside_texts_become_texts_in_sqlite(
    either: Pipeline, tmp_path: Path, kind: str, values: tuple[object, object]
) -> None:
    """Either became empty or the bytes of a text, without a warning."""
    path = written(tmp_path / "a.sqlite", f"v {kind}, t TEXT", *((value, "x") for value in values))
    done = await either.to("Csv", path)
    assert {row["v"] for row in readers.table(done.path)} == {"text", "00FF"}
    assert sum("Binary values beside others (1 value of 'v')" in warning for warning in done.output.warnings) == 1


@pytest.mark.parametrize("kind", ["TEXT", "BLOB", "VARCHAR(80)", "DECIMAL(10,2)"])
async def test_binary_values_beside_texts_become_texts_in_a_geopackage(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """However it is read."""
    path = await database(either, tmp_path, [f"c {kind}", "n INTEGER"], ("text", 7), (b"\x00\xff", None))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == ["text", "00FF"]
    assert sum("Binary values beside others (1 value of 'c')" in warning for warning in done.output.warnings) == 1


@pytest.mark.parametrize("kind", ["NUMERIC", "DECIMAL", "DECIMAL(10,2)", "DOUBLE", "INTEGER"])
async def test_texts_in_columns_of_numbers_are_kept_however_a_geopackage_is_read(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """The warning is the same, too."""
    path = await database(either, tmp_path, [f"c {kind}", "n INTEGER"], (3, 7), ("n/a", None))
    done = await either.to("Csv", path)
    assert [float(row["c"]) if row["c"] != "n/a" else None for row in readers.table(done.path)] == [3, None]
    assert [warning.partition(" became")[0] for warning in done.output.warnings] == [MISTYPED]


KEPT = {
    ("DATE", "2024-01-02", "2024-01-02T05:06:07Z"): ["2024-01-02", "2024-01-02T05:06:07Z"],
    ("DATE", "2024-01-02", "2024-01-03T00:00:00Z"): ["2024/01/02", "2024/01/03"],
    ("MEDIUMINT", 1, LARGE): ["1", str(LARGE)],
    ("MEDIUMINT", LARGE, LARGE): [str(LARGE), str(LARGE)],
    ("INTEGER", LARGE, LARGE): [str(LARGE), str(LARGE)],
}
"""Declared types and values, and how a CSV file writes them."""


@pytest.mark.parametrize("declared", KEPT)
async def test_dates_with_times_and_large_integers_of_a_geopackage_are_kept(
    either: Pipeline, tmp_path: Path, declared: tuple[str, object, object]
) -> None:
    """In columns of dates and of small integers, the driver leaves out times, and makes others of the integers."""
    kind, *values = declared
    path = await database(either, tmp_path, [f"c {kind}", "e TEXT"], *((value, "x") for value in values))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == KEPT[declared]


WIDER = (
    ("SMALLINT", [1, 40000, -70000]),
    ("FLOAT", [0.5, 16777217, 0.1]),
    ("FLOAT", [0.5, 1e300, -1]),
    ("TINYINT", [1, 200, 300]),
)
"""Types of fewer bits, and values that these cannot hold."""


@pytest.mark.parametrize(("kind", "values"), WIDER)
async def test_numbers_wider_than_a_geopackage_declares_are_kept(
    either: Pipeline, tmp_path: Path, kind: str, values: Sequence[float]
) -> None:
    """FlatGeobuf has types of 16 and 32 bits, too; 40000 became -25536, and 1e300 infinite."""
    path = await database(either, tmp_path, [f'"{{c}}" {kind}'], *((value,) for value in values))
    flat = await either.to("FlatGeobuf", path)
    done = await either.to("Csv", flat.path)
    assert sorted(float(row["{c}"]) for row in readers.table(done.path)) == sorted(values)
    assert flat.output.warnings == ()


@pytest.mark.parametrize(("kind", "value"), [("INTEGER_INT16", 40000), ("INTEGER_BOOLEAN", 2)])
async def test_numbers_wider_than_programs_declare_them_in_a_database_are_kept(
    either: Pipeline, tmp_path: Path, kind: str, value: int
) -> None:
    """So GDAL calls the types of fewer bits, of which it keeps no more."""
    path = written(tmp_path / "a.sqlite", f"v {kind}, WKT_GEOMETRY TEXT", (1, "POINT (1 2)"), (value, "POINT (3 4)"))
    flat = await either.to("OpenFileGdb", path)
    done = await either.to("Csv", flat.path)
    assert [number(row["v"]) for row in readers.table(done.path)] == [1, value]


@pytest.mark.parametrize("ids", [[4711, 4712], [1, 3], [-5, LARGE]])
@pytest.mark.parametrize("target", ["Csv", "SpatiaLite", "GeoJson"])
async def test_a_key_of_a_geopackage_with_own_values_is_kept(
    either: Pipeline, tmp_path: Path, ids: list[int], target: str
) -> None:
    """It became 1, 2, 3 or nothing, without a warning."""
    path = with_key(await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"), ("b", "x")), ids, "station")
    done = await either.to(target, path)
    back = done if target == "Csv" else await either.to("Csv", done.path)
    assert [(int(row["station"]), row["c"]) for row in readers.table(back.path)] == list(zip(ids, "ab", strict=True))
    assert done.output.warnings == ()


@pytest.mark.parametrize("ids", [[1, 2], [0, 1]])
async def test_a_key_that_only_numbers_features_is_no_column(either: Pipeline, tmp_path: Path, ids: list[int]) -> None:
    """Most programs make one."""
    path = with_key(await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"), ("b", "x")), ids, "station")
    done = await either.to("Csv", path)
    assert "station" not in readers.table(done.path)[0]
    assert done.output.warnings == ()


@pytest.mark.parametrize("kind", ["TEXT", "VARCHAR(80)"])
@pytest.mark.parametrize("name", ["fid", "OGC_FID"])
async def test_a_key_that_numbers_features_with_gaps_is_left_out_and_told(
    either: Pipeline, tmp_path: Path, kind: str, name: str
) -> None:
    """Deleting a feature leaves a gap, so most of these numbers mean nothing, but others may refer to them."""
    path = with_key(await database(either, tmp_path, [f"c {kind}", "e TEXT"], ("a", "x"), ("b", "x")), [1, 3], name)
    done = await either.to("Csv", path)
    rows = readers.table(done.path)
    assert [row["c"] for row in rows] == ["a", "b"]
    assert name not in rows[0]
    assert sum(f"'{name}' numbers the rows" in text for text in done.output.warnings) == 1


@pytest.mark.parametrize("ids", [[4711, 4712], [1, 2]])
async def test_a_key_of_a_database_is_kept_if_it_has_own_values(
    either: Pipeline, tmp_path: Path, ids: list[int]
) -> None:
    """Such as the numbers of stations; a table without a key has none, whatever its rows are called inside."""
    path = written(tmp_path / "a.sqlite", "id INTEGER PRIMARY KEY, t TEXT", (ids[0], "a"), (ids[1], "b"))
    rows = readers.table((await either.to("Csv", path)).path)
    assert [row.get("id") for row in rows] == ([None, None] if ids == [1, 2] else [str(number) for number in ids])


async def test_a_key_that_every_reader_hides_is_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver of SQLite takes a column of this name for the numbers of rows whether it is a key or not."""
    path = written(tmp_path / "a.sqlite", "ogc_fid INTEGER PRIMARY KEY, t TEXT", (4711, "a"), (4712, "b"))
    done = await either.to("Csv", path)
    assert sum("'ogc_fid' numbers the rows" in warning for warning in done.output.warnings) == 1


@pytest.mark.parametrize("kind", ["GeoPackage", "SQLite"])
async def test_a_column_whose_name_is_not_utf8_is_refused(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """The driver took other names, and no values."""
    if kind == "SQLite":
        path = written(tmp_path / "a.sqlite", "zzzz TEXT, t TEXT", ("a", "b"))
    else:
        path = await database(either, tmp_path, ["zzzz TEXT", "t TEXT"], ("a", "b"))
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xe4zz"))
    with pytest.raises(Rejection, match="Texts or names in the file are not UTF-8 text"):
        await either.to("Csv", path)


@pytest.mark.parametrize("kind", ["GeoPackage", "SQLite"])
async def test_a_damaged_schema_that_is_not_utf8_is_refused(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """SQLite quotes it in the message of its error."""
    if kind == "SQLite":
        path = written(tmp_path / "a.sqlite", "t TEXT", ("a",))
    else:
        path = await database(either, tmp_path, ["t TEXT"], ("a",))
    with edited(path) as connection:
        connection.execute("CREATE TABLE damaged (x)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = CAST(x'435245415445ff' AS TEXT) WHERE name = 'damaged'")
    with pytest.raises(Rejection, match="damaged"):
        await either.to("Csv", path)


HOSTILE = [
    '"TEXT, more TEXT"',
    '"INTEGER) AS SELECT 1 --"',
    "[TEXT CHECK (0)]",
    '"X""Y"',
    "'TEXT PRIMARY KEY'",
    "`TEXT GENERATED ALWAYS AS (1)`",
]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
async def test_a_declared_type_is_never_taken_for_sql(
    converters: Converters, tmp_path: Path, hostile: str, extension: str
) -> None:
    """The copy of the table declares types of ours."""
    pipeline = Pipeline(converters, has_sessions=False)
    if extension == "gpkg":
        path = await database(pipeline, tmp_path, [f"c {hostile}", "d VARCHAR(80)"], ("ab", "cd"))
    else:
        path = written(tmp_path / "a.sqlite", f"c {hostile}, d INTEGER", ("ab", "cd"))
    done = await pipeline.to("Csv", path)
    assert [(row["c"], row["d"]) for row in readers.table(done.path)] == [("ab", "cd")]


async def test_the_declared_type_of_a_geometry_is_never_taken_for_sql(converters: Converters, tmp_path: Path) -> None:
    """Its column is found by its name."""
    pipeline = Pipeline(converters, has_sessions=False)
    path = await database(pipeline, tmp_path, ["c VARCHAR(80)", "d TEXT"], ("ab", "cd"))
    with edited(path) as connection:
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE sql LIKE '%VARCHAR%'").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        hostile = sql.replace('"geom" POINT', '"geom" "POINT, more TEXT"')
        assert hostile != sql
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE sql = ?", (hostile, sql))
    done = await pipeline.to("Csv", path)
    assert [(row["X"], row["c"], row["d"]) for row in readers.table(done.path)] == [("1", "ab", "cd")]


async def test_a_table_with_geometries_keeps_them_when_it_is_made_anew(either: Pipeline, tmp_path: Path) -> None:
    """Beside a column that the driver would change."""
    path = (await either.to("SpatiaLite", await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x")))).path
    with edited(path) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        ((table,),) = connection.execute("SELECT f_table_name FROM geometry_columns")
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN v INTEGER')
        connection.execute(f"UPDATE \"{table}\" SET v = 'n/a'")  # noqa: S608 -- ours
    done = await either.to("Csv", path)
    assert [(row["X"], row["Y"], row["c"], row["v"]) for row in readers.table(done.path)] == [("1", "2", "a", "n/a")]


ON_LINES = ["VARCHAR\n(80)", "INTEGER\n", '"it\'s"', "DOUBLE\n PRECISION"]


@pytest.mark.parametrize("kind", ON_LINES)
@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
async def test_a_declared_type_may_have_line_ends_and_quotation_marks(
    either: Pipeline, tmp_path: Path, kind: str, extension: str
) -> None:
    """As SQL allows: it ended the conversion, or the column was left out."""
    if extension == "gpkg":
        path = await database(either, tmp_path, [f"c {kind}", "d TEXT"], (7, "x"), (8, "y"))
    else:
        path = written(tmp_path / "a.sqlite", f"c {kind}, d TEXT", (7, "x"), (8, "y"))
    done = await either.to("Csv", path)
    assert [float(row["c"]) for row in readers.table(done.path)] == [7, 8]
    assert done.output.warnings == ()


async def test_a_type_of_integers_with_more_behind_it_is_never_taken_for_sql(either: Pipeline, tmp_path: Path) -> None:
    """The driver reads such columns, so the copy could repeat them."""
    path = written(tmp_path / "a.sqlite", 'c "INTEGER CHECK (0)", d INTEGER', (1, "x"), (2, "y"))
    done = await either.to("Csv", path)
    assert [(row["c"], row["d"]) for row in readers.table(done.path)] == [("1", "x"), ("2", "y")]


NO_MOMENTS = [
    ("DATE", "2024-99-99"),
    ("DATE", "2024-02-30"),
    ("DATE", "0000-00-00"),
    ("DATETIME", "2024-01-02T25:00:00.000Z"),
    ("DATETIME", "2023-02-29T10:00:00.000Z"),
    ("DATETIME", "2024-01-02T10:61:00.000Z"),
    ("DATETIME", "2024-01-02 10:00:00 PM"),
]


@pytest.mark.parametrize(("kind", "value"), NO_MOMENTS)
@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
async def test_dates_that_no_calendar_has_are_kept_as_texts(
    either: Pipeline, tmp_path: Path, kind: str, value: str, extension: str
) -> None:
    """They became empty, or another day, without a warning."""
    if extension == "gpkg":
        path = await database(either, tmp_path, [f"c {kind}", "d TEXT"], ("2024-02-29", "x"), (value, "y"))
    else:
        path = written(tmp_path / "a.sqlite", f"c {kind}, d TEXT", ("2024-02-29", "x"), (value, "y"))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == ["2024-02-29", value]
    assert [warning.partition(" became")[0] for warning in done.output.warnings] == [MISTYPED]


MOMENTS = [
    ("DATE", "2024-02-29", "2024/02/29"),
    ("DATE", "2023/12/31", "2023/12/31"),
    ("DATETIME", "2024-01-31 10:00", "2024/01/31 10:00:00"),
    ("DATETIME", "2016-12-31T23:59:60Z", "2016/12/31 23:59:60+00"),
    ("DATETIME", "2024-01-31T23:59:59.5+01:00", "2024/01/31 23:59:59.500+01"),
    ("DATETIME", "2024-01-31", "2024/01/31 00:00:00"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), MOMENTS)
async def test_dates_of_a_database_stay_dates_in_all_notations(
    either: Pipeline, tmp_path: Path, kind: str, value: str, expected: str
) -> None:
    """Nothing is told of them."""
    path = written(tmp_path / "a.sqlite", f"c {kind}, d TEXT", (value, "x"))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == [expected]
    assert done.output.warnings == ()


@pytest.mark.parametrize("kind", ["TEXT", "VARCHAR(80)"])
@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
async def test_texts_are_not_cut_at_a_byte_of_zeros(
    either: Pipeline, tmp_path: Path, kind: str, extension: str
) -> None:
    """The rest of the text was lost without a warning."""
    if extension == "gpkg":
        path = await database(either, tmp_path, [f"c {kind}", "d TEXT"], ("a\0b\0\0ü", "x"), ("c", "y"))
    else:
        path = written(tmp_path / "a.sqlite", f"c {kind}, d TEXT", ("a\0b\0\0ü", "x"), ("c", "y"))
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == ["abü", "c"]
    assert [warning.partition(" were")[0] for warning in done.output.warnings] == [
        "Zero bytes (NUL) within texts (1 value of 'c')"
    ]


async def test_texts_of_a_database_in_utf16_lose_only_their_zeros(either: Pipeline, tmp_path: Path) -> None:
    """Half the bytes of most of its letters are zeros."""
    path = tmp_path / "a.sqlite"
    with edited(path) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'")  # which the first table makes that of the file
        connection.execute("CREATE TABLE a (c TEXT, d TEXT)")
        connection.execute("INSERT INTO a VALUES (?, ?)", ("a\0b", "ü"))
    assert "ü".encode("utf-16-le") in path.read_bytes()
    done = await either.to("Csv", path)
    assert [(row["c"], row["d"]) for row in readers.table(done.path)] == [("ab", "ü")]


@pytest.mark.parametrize("name", ["rowid", "_rowid_", "OGC_FID"])
@pytest.mark.parametrize("kind", ["TEXT", "INTEGER"])
async def test_columns_with_names_of_keys_are_kept_if_they_are_none(
    either: Pipeline, tmp_path: Path, name: str, kind: str
) -> None:
    """The driver of SQLite took them for the numbers of rows and left them out."""
    path = written(tmp_path / "a.sqlite", f"{name} {kind}, t TEXT", ("7", "a"), ("9", "b"))
    done = await either.to("Csv", path)
    assert [(row[name], row["t"]) for row in readers.table(done.path)] == [("7", "a"), ("9", "b")]
    assert done.output.warnings == ()


FINE = ["2024-01-02 03:04:05.123456", "2024-01-02 03:04:05.0000001", "2024-01-02T03:04:05.123400+05:30"]
COARSE = ["2024-01-02 03:04:05.123000", "2024-01-02T03:04:05.5+05:45", "2024-01-02T03:04:05+05:45", "2024-01-02", None]


@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
async def test_digits_beyond_milliseconds_are_told_of_databases(
    either: Pipeline, tmp_path: Path, extension: str
) -> None:
    """Python's and other programs' times have six, of which three were lost without a warning."""
    values = [(value, "x") for value in (*FINE, *COARSE)]
    if extension == "gpkg":
        path = await database(either, tmp_path, ["c DATETIME", "d TEXT"], *values)
    else:
        path = written(tmp_path / "a.sqlite", "c DATETIME, d TEXT", *values)
    done = await either.to("Csv", path)
    assert [warning.partition(" lost digits")[0] for warning in done.output.warnings] == ["3 values of 'c'"]


async def test_digits_beyond_milliseconds_are_told_of_times_of_day(converters: Converters, tmp_path: Path) -> None:
    """They were lost without a warning, other than those of times with a date."""
    values = [("10:00:00.123456",), ("10:00:00.120000",), ("10:00",), ("10:00:00.0001",), (None,)]
    done = await Pipeline(converters).to("Csv", written(tmp_path / "a.sqlite", "c TIME", *values))
    assert [warning.partition(" lost digits")[0] for warning in done.output.warnings] == ["2 values of 'c'"]


LIKE_SYSTEM = (
    "layer_roads",
    "se_regions",
    "wms_sources",
    "stored_goods",
    "idx_2020",
    "rtree_of_life",
    "vector_layers_2",
    "TGE_1",
)
SYSTEM = (
    "layer_statistics",
    "views_layer_statistics",
    "virts_layer_statistics",
    "layer_styles",
    "SE_fonts",
    "spatial_ref_sys",
)


@pytest.mark.parametrize("beside", ["", "CREATE VIRTUAL TABLE docs USING fts4 (text)"])
async def test_tables_called_like_those_of_programs_are_read(either: Pipeline, tmp_path: Path, beside: str) -> None:
    """Only whole names tell tables of SpatiaLite and QGIS from data, which would be lost in silence."""
    with edited(tmp_path / "a.sqlite") as connection:
        connection.execute(beside or "SELECT 1")
        for table in (*LIKE_SYSTEM, *SYSTEM, "docs_archive"):
            connection.execute(f"CREATE TABLE {table} (name TEXT)")
            connection.execute(f"INSERT INTO {table} VALUES ('a')")  # noqa: S608 -- ours
    done = await either.to("GeoPackage", tmp_path / "a.sqlite")
    assert [layer.name for layer in done.facts.layers] == [*LIKE_SYSTEM, "docs_archive"]
    told = ["Views and virtual tables were left out: 'docs'."] * bool(beside)
    assert [warning for warning in done.output.warnings if "docs" in warning] == told
