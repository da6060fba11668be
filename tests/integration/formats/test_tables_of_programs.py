"""What other programs write into tables: kept, or told with the values that become others."""

import datetime as dt
import json
import math
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.errors import Rejection
from service.formats.request import ConversionRequest
from tests.integration.formats import readers
from tests.integration.formats.editing import replace_in
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

POINT = struct.pack("<BIdd", 1, 1, 1, 2)
LINE = struct.pack("<BII4d", 1, 2, 2, 1, 2, 3, 4)


def write_parquet(path: Path, table: pa.Table, geometry: dict[str, object] | None, **columns: object) -> Path:
    """A Parquet file, with a geometry column described by `geometry` unless that is None."""
    described = {"geometry": {"encoding": "WKB", "geometry_types": [], **(geometry or {})}, **columns}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": described}
    known = table.schema.metadata or {}
    pq.write_table(
        table.replace_schema_metadata(
            {**known, **({"geo": json.dumps(geo)} if "geometry" in table.column_names else {})}
        ),
        path,
    )
    return path


def rows_of(path: Path) -> list[dict[str, object]]:
    """The attributes of the only layer of a GeoPackage."""
    ((_, rows),) = readers.geopackage(path).items()
    return [{name: value for name, value in row.items() if name not in {"fid", "geom"}} for row in rows]


@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
async def test_whole_numbers_of_workbooks_beyond_64_bits_become_decimals(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """Some programs write all digits of such numbers, of which drivers made the largest number of 64 bits."""
    written = await either.to(kind, write_geojson(tmp_path / "a.geojson", [point(1, 2, n=n) for n in (12, 123454)]))
    path = tmp_path / f"a{written.path.suffix}"
    for number, is_told in {"12345678901234567000": True, "-9223372036854775809": True, str(2**64): False}.items():
        replace_in(written.path, path, rb"123454", number.encode())
        done = await either.to("GeoPackage", path, source_epsg=4326)
        assert [row["n"] for row in rows_of(done.path)] == [12.0, float(number)]
        told = ["Whole numbers with more digits than a floating-point number has (1) lost the last ones"] * is_told
        assert [warning[: len(told[0])] if told else warning for warning in done.output.warnings] == told
    for whole in (2**63 - 1, -(2**63), 1234567890123456789):
        replace_in(written.path, path, rb"123454", str(whole).encode())
        done = await either.to("GeoPackage", path, source_epsg=4326)
        assert [row["n"] for row in rows_of(done.path)] == [12, whole]
        assert [field.type for field in done.facts.layers[0].fields] == ["integer"]
        assert done.output.warnings == ()


@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
@pytest.mark.parametrize("number", ["12345678901234567", "-123456789012345678901", "12345678901234568", "1E+20"])
async def test_whole_numbers_beside_decimals_that_lose_digits_are_told(
    either: Pipeline, tmp_path: Path, kind: str, number: str
) -> None:
    """A column of both holds floating-point numbers, of which some are the number that was written."""
    rows = [point(1, 2, n=n) for n in (1.5, 123454.25)]
    written = await either.to(kind, write_geojson(tmp_path / "a.geojson", rows))
    path = tmp_path / f"a{written.path.suffix}"
    replace_in(written.path, path, rb"123454\.250*", number.encode())
    done = await either.to("GeoPackage", path, source_epsg=4326)
    assert [row["n"] for row in rows_of(done.path)] == [1.5, float(number)]
    told = (
        "Whole numbers with more digits than a floating-point number has (1) lost the last ones in columns of "
        "decimals: 'n'. The first is in row 3 of its sheet. Store them as texts to keep them."
    )
    assert done.output.warnings == ((told,) if number.endswith(("567", "901")) else ())
    replace_in(written.path, path, rb"1\.50*(?=[\"<])", b"12")
    replace_in(path, tmp_path / f"b{path.suffix}", rb"123454\.250*", b"12345678901234567")
    assert (await either.to("GeoPackage", tmp_path / f"b{path.suffix}", source_epsg=4326)).output.warnings == ()


async def test_such_numbers_are_told_whatever_their_quotation_marks(either: Pipeline, tmp_path: Path) -> None:
    """In XML, either will do."""
    rows = [point(1, 2, n=n) for n in (1.5, 123454.25)]
    written = await either.to("Ods", write_geojson(tmp_path / "a.geojson", rows))
    replace_in(written.path, tmp_path / "a.ods", rb'"123454\.250*"', b"'12345678901234567'")
    (told,) = (await either.to("GeoPackage", tmp_path / "a.ods", source_epsg=4326)).output.warnings
    assert told.startswith("Whole numbers with more digits than a floating-point number has (1) lost the last ones")


@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
async def test_numbers_of_workbooks_that_become_infinite_are_told(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """They became missing in the work file, without a word."""
    rows = [point(1, 2, n=n) for n in (1.5, 123454.25)]
    written = await either.to(kind, write_geojson(tmp_path / "a.geojson", rows))
    path = tmp_path / f"a{written.path.suffix}"
    replace_in(written.path, path, rb"123454\.250*", b"-1E400")
    done = await either.to("GeoPackage", path, source_epsg=4326)
    assert [row["n"] for row in rows_of(done.path)] == [1.5, -math.inf]
    (told,) = done.output.warnings
    assert "numbers from 1.8e308 on, or infinite ones; 1 value of 'n' became infinite" in told


@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
async def test_sheets_without_a_header_say_so(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """Their driver names no columns if the first row is empty or the only one, so that none can be coordinates."""
    written = await either.to(kind, write_geojson(tmp_path / "a.geojson", [point(1, 2, name="oak", kind="b")]))
    path = tmp_path / f"a{written.path.suffix}"
    replace_in(written.path, path, rb"(?<=>)(X|Y|name|kind)(?=<)", b"")
    done = await either.to("GeoPackage", path)
    (told,) = done.output.warnings
    assert told.startswith("The first row of 'a' is empty or the only row")
    with pytest.raises(Rejection, match="The first row of 'a' is empty or the only row"):
        await either.to("GeoPackage", path, source_epsg=4326)


@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
async def test_texts_with_commas_stay_texts_in_columns_that_begin_empty(
    either: Pipeline, tmp_path: Path, kind: str
) -> None:
    """Their driver tells numbers as texts there, too, but with points."""
    rows = [point(1, 2, t=None, n=None, name="a"), point(3, 4, t="1,5", n=2.5, name="b")]
    written = await either.to(kind, write_geojson(tmp_path / "a.geojson", rows))
    done = await either.to("GeoPackage", written.path, source_epsg=4326)
    assert rows_of(done.path)[1] == {"t": "1,5", "n": 2.5, "name": "b"}


async def test_texts_of_parquet_files_stay_texts(pipeline: Pipeline, tmp_path: Path) -> None:
    """Even if they are like numbers, and the first value is missing: the file declares the types."""
    table = pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0], "code": [None, "1.50"], "day": [None, "2020-01-01"]})
    path = write_parquet(tmp_path / "a.parquet", table, None)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    [_, second] = json.loads(done.path.read_bytes())["features"]
    assert second["properties"] == {"code": "1.50", "day": "2020-01-01"}


async def test_sheets_without_any_cell_say_nothing_of_their_header(either: Pipeline, tmp_path: Path) -> None:
    """A new workbook of some programs has three sheets, of which two stay empty: nothing of them is lost."""
    written = await either.to("Xlsx", write_geojson(tmp_path / "a.geojson", [point(1, 2, name="oak")]))
    replace_in(written.path, tmp_path / "a.xlsx", rb"(?s)<sheetData>.*</sheetData>", b"<sheetData/>")
    assert (await either.to("GeoPackage", tmp_path / "a.xlsx")).output.warnings == ()


@pytest.mark.parametrize("column", ["oak", "\u6771\u4eac"])
async def test_readings_of_texts_are_no_part_of_them(either: Pipeline, tmp_path: Path, column: str) -> None:
    """Excel writes how Japanese texts are pronounced behind them, in headers too; drivers add it to the texts."""
    written = await either.to("Xlsx", write_geojson(tmp_path / "a.geojson", [point(1, 2, **{column: "plane"})] * 2))
    read = b"</t><rPh sb=\"0\" eb=\"1\"><t>x &amp; y</t></rPh><rPh sb='1' eb='2'>\n<t/></rPh><phoneticPr fontId='1'/>"
    for number, text in enumerate((column.encode(), b"plane")):
        replace_in(
            written.path if not number else tmp_path / "0.xlsx",
            tmp_path / f"{number}.xlsx",
            text + b"</t>",
            text + read,
        )
    done = await either.to("GeoPackage", tmp_path / "1.xlsx", source_epsg=4326)
    assert rows_of(done.path) == [{column: "plane"}] * 2
    (told,) = done.output.warnings
    assert told == "Phonetic guides of texts (furigana, 4) were left out."


async def test_what_reading_a_csv_file_changes_in_cells_is_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver makes line feeds of carriage returns; what is no number is no elevation."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'lon,lat,z,note\r\n1,2,3,"a\r\nb"\r\n1,2,,c\r\n1,2,high,"d\r\ne"\r\n')
    done = await either.to("GeoPackage", path, source_epsg=4326)
    assert [row["note"] for row in rows_of(done.path)] == ["a\nb", "c", "d\ne"]
    assert done.output.warnings == (
        "Carriage returns in 2 values of 'note' became line feeds.",
        "Elevations that are not decimal numbers (1 value of 'z') were left out. Write 12.5 for 12.5 m.",
    )
    path.write_bytes(b"lon,lat,z,note\r\n1,2,3,a\r\n1,2,,c\r\n")
    assert (await either.to("GeoPackage", path, source_epsg=4326)).output.warnings == ()


@pytest.mark.parametrize("geometry", [{"geometry": [POINT]}, {}])
async def test_columns_of_parquet_files_whose_names_collide_are_renamed(
    pipeline: Pipeline, tmp_path: Path, geometry: dict[str, list[bytes]]
) -> None:
    """A work file takes letters of both cases for the same; the geometry column makes room for others."""
    names = ["a", "A", "a", "", "GEOMETRY", "ä", *geometry]
    table = pa.table([pa.array([number]) for number in range(6)] + [*map(pa.array, geometry.values())], names=names)
    done = await pipeline.to("GeoPackage", write_parquet(tmp_path / "a.parquet", table, {}))
    told, *others = done.output.warnings
    assert told.endswith(": 'A' became 'A_2', 'a' became 'a_3', '' became 'field_4'.")
    (row,) = rows_of(done.path)
    assert [*row] == ["a", "A_2", "a_3", "field_4", "GEOMETRY", "ä"]
    assert [*row.values()] == [*range(6)]
    assert others == []


async def test_an_index_that_pandas_only_describes_is_kept(pipeline: Pipeline, tmp_path: Path) -> None:
    """It is not stored if its numbers are at equal distances; one without a name says nothing."""
    for name, rows, expected in (("id", 2, [10, 20]), (None, 2, []), ("id", 3, [])):
        index = {"kind": "range", "name": name, "start": 10, "stop": 10 * rows + 10, "step": 10}
        table = pa.table({"a": ["x", "y"]}).replace_schema_metadata({"pandas": json.dumps({"index_columns": [index]})})
        done = await pipeline.to("GeoPackage", write_parquet(tmp_path / "a.parquet", table, {}))
        assert [row["id"] for row in rows_of(done.path) if "id" in row] == expected
        assert done.output.warnings == ()


@pytest.mark.parametrize("geometry", [{"geometry": [POINT] * 3}, {}])
async def test_dates_of_parquet_files_that_no_other_format_has_are_told(
    pipeline: Pipeline, tmp_path: Path, geometry: dict[str, list[bytes]]
) -> None:
    """Such as the infinite ones of databases; the last second of the year 9999 is kept."""
    last = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    columns = {
        "day": pa.array([2**31 - 1, 0, -719_163], pa.int32()).cast(pa.date32()),
        "at": pa.array([2**62, int(last.timestamp()) * 10**6, -(2**62)], pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
    done = await pipeline.to("GeoPackage", write_parquet(tmp_path / "a.parquet", pa.table({**columns, **geometry}), {}))
    (told,) = done.output.warnings
    assert told == (
        "Dates before the year 1 or after 9999, and infinite ones (4 values of 'day', 'at'), became missing."
    )
    gone, (day, at), also_gone = [(row["day"], row["at"]) for row in rows_of(done.path)]
    assert gone == also_gone == (None, None)
    assert (day, dt.datetime.fromisoformat(str(at))) == ("1970-01-01", last)  # newer drivers write no milliseconds of 0


async def test_what_geoparquet_says_of_geometries_and_no_target_holds_is_told(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Edges that are no straight lines, which points do not have, and the geometries of further columns."""
    table = pa.table({"geometry": [POINT, LINE, None], "center": [POINT, None, POINT]})
    path = write_parquet(tmp_path / "a.parquet", table, {"edges": "spherical"}, center={"encoding": "WKB"})
    curved, second = (await pipeline.to("GeoPackage", path)).output.warnings
    assert curved.startswith(
        "Edges that follow the curvature of the Earth, as the file says (edges; 1 value of 'geometry')"
    )
    assert second.startswith("Further geometries (2 values of 'center')")
    write_parquet(path, table.select(["geometry"]).slice(0, 1), {"epoch": 2030.5})
    (epoch,) = (await pipeline.to("GeoPackage", path)).output.warnings
    assert epoch.startswith("The epoch of the coordinates")
    write_parquet(path, table.select(["geometry"]).slice(0, 1), {"edges": "spherical"})
    assert (await pipeline.to("GeoPackage", path)).output.warnings == ()


class Shapes(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """Geometries that pyarrow writes as a type of Parquet itself."""

    def __init__(self, crs: str) -> None:
        self._crs = crs
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"crs": self._crs} if self._crs else {}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> "Shapes":
        return cls(json.loads(serialized).get("crs", ""))


GEOMETRY_TYPES = {
    "": [1.0, 2.0],
    "EPSG:3857": [9e-6, 1.8e-5],
    "srid:3857": [9e-6, 1.8e-5],
    "projjson:mine": [9e-6, 1.8e-5],
    "srid:0": None,
}
"""The systems that columns of Parquet's own types name, and where a point at 1, 2 in it is; None if it is unknown."""


@pytest.mark.parametrize("crs", GEOMETRY_TYPES)
async def test_geometry_types_of_parquet_itself_are_read(pipeline: Pipeline, tmp_path: Path, crs: str) -> None:
    """They need no metadata of GeoParquet, whose default system is theirs."""
    path = tmp_path / "a.parquet"
    shapes = pa.ExtensionArray.from_storage(Shapes(crs), pa.array([POINT], pa.binary()))
    mine = json.dumps({"type": "ProjectedCRS", "id": {"authority": "EPSG", "code": 3857}})
    table = pa.table({"n": [1], "shape": shapes})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"mine": mine})
    if GEOMETRY_TYPES[crs] is None:
        with pytest.raises(Rejection, match="does not record the coordinate system"):
            await pipeline.to("GeoJson", path)
        return
    (found,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert found["geometry"] == {"type": "Point", "coordinates": GEOMETRY_TYPES[crs]}


async def test_days_that_no_calendar_has_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Programs read them as others; a leap day is one that there is."""
    rows = [point(1, 2, at=at, on=at[:10]) for at in ("2024-02-29T01:02:03", "2024-02-28T01:02:03")]
    written = await either.to("Ods", write_geojson(tmp_path / "a.geojson", rows))
    path = tmp_path / "a.ods"
    replace_in(written.path, path, rb"2024-02-28", b"2024-02-30")
    done = await either.to("GeoPackage", path, source_epsg=4326)
    (told,) = done.output.warnings
    assert told.endswith("programs will read 2 values of 'at', 'on' as others, or as missing. The first is feature 2.")
    assert (await either.to("GeoPackage", written.path, source_epsg=4326)).output.warnings == ()


ODS_ROW = (
    b"<table:table-row><table:table-cell office:value-type='string'><text:p>%b</text:p></table:table-cell>"
    b"</table:table-row>"
)
BLANK_ROWS = {
    "Xlsx": (
        b"</sheetData>",
        b"<row r='3'><c r='A3' s='1'/></row>%b<row r='7'><c t='str'><f>A1</f><v/></c></row><row r='9'/></sheetData>",
        b"<row r='5'><c r='A5' t='inlineStr'><is><t>ash</t></is></c></row>",
    ),
    "Ods": (
        b"</table:table>",
        b"<table:table-row table:number-rows-repeated='2'><table:table-cell/></table:table-row>%b"
        + ODS_ROW % b""
        + b"</table:table>",
        ODS_ROW % b"ash",
    ),
}
"""How a sheet ends, the same with rows below it that have no value, and a row among these that has one."""


@pytest.mark.parametrize("kind", BLANK_ROWS)
@pytest.mark.parametrize("is_between", [False, True])
async def test_rows_below_the_last_value_are_no_records(
    either: Pipeline, tmp_path: Path, kind: str, *, is_between: bool
) -> None:
    """Rows that only have a format, or formulas that result in nothing, became records; those between others are."""
    end, below, row = BLANK_ROWS[kind]
    written = await either.to(
        kind, write_geojson(tmp_path / "a.geojson", [{**point(1, 2, name="oak"), "geometry": None}])
    )
    path = tmp_path / f"a{written.path.suffix}"
    replace_in(written.path, path, end, below.replace(b"%b", row * is_between))
    done = await either.convert(path, ConversionRequest(output="Csv"), verifies=True)
    assert [line["name"] for line in readers.table(done.path)] == (["oak", "", "", "ash"] if is_between else ["oak"])
    assert (done.facts.feature_count, done.differences) == (4 if is_between else 1, ())
