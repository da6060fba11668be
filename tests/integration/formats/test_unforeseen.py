"""Content whose loss only generated files revealed: kept where the target can hold it, told where it cannot."""

import json
import re
import sqlite3
import struct
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.errors import Rejection
from service.formats.facts import Field
from service.formats.losses import UNPLACED
from service.formats.request import ConversionRequest
from tests.integration.formats import readers
from tests.integration.formats.editing import edited, replace_in
from tests.integration.formats.pipeline import Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_losses import database, table, wkt
from tests.support.converters import Converters


def ring_at(*heights: float) -> list[list[float]]:
    """A triangle with corners at these heights."""
    corners = [[0, 0, heights[0]], [1, 0, heights[1]], [1, 1, heights[2]]]
    return [*corners, corners[0]]


TEXTS = {
    "lead": "  blanks",
    "windows": "two\r\nlines",
    "control": "a\x01b",
    "json": '{"a": [1]}',
    "markup": " <b>bold</b>",
    "formula": "of:=1",
    "lead_formula": " of:=1",
    "behind": "blank ",
    "line": "two\nlines",
    "ended": "a line\n",
    "apart": "two  blanks",
    "tab": "a\ttab",
}
AROUND = {"leading_blanks", "space_around", "uneven_space"}
COUNTS = {
    "lead": AROUND,
    "windows": {"carriage_returns", "uneven_space"},
    "control": {"control"},
    "json": {"like_json"},
    "markup": {"like_markup"} | AROUND,
    "formula": {"like_formulas"},
    "lead_formula": {"like_formulas"} | AROUND,
    "behind": {"trailing_blanks", "space_around", "uneven_space"},
    "line": {"uneven_space"},
    "ended": {"space_around", "uneven_space"},
    "apart": {"uneven_space"},
    "tab": {"uneven_space"},
}
TOLD = {
    "Gml": {"lead", "windows", "control", "markup", "lead_formula"},
    "Kml": {"lead", "windows", "control", "markup", "lead_formula", "behind"},
    "Gpx": {"windows", "control", "markup"},
    "Xlsx": {"lead", "windows", "control", "markup", "lead_formula", "behind", "ended"},
    "Ods": set(TEXTS) - {"json"},
    "GeoJson": {"json"},
    "GeoJsonSeq": {"json"},
    "Csv": set(),
    "FlatGeobuf": set(),
    "GeoParquet": set(),
    "SpatiaLite": set(),
}
"""The columns of TEXTS of which a target changes something."""


IN_BRACES = (
    "{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", "{name}", "{", "[object Object]", "[n]", "[see below]",
    "{}", '{"a": 1}', "{'a': 1}", '{ "a": 1}', "{\t}", "[]", "[1, 2]", "[-1]", '["a"]', "[[1]]", '[{"a": 1}]', "[ 1]",
    "[true]", "[False]", "[null]", "[NaN]",
)  # fmt: skip


@pytest.mark.parametrize("source", ["a.gpkg", "a.geojson"])
async def test_only_texts_that_become_objects_and_arrays_are_told(
    either: Pipeline, tmp_path: Path, source: str
) -> None:
    """Identifiers in braces and words in brackets stay texts."""
    if source == "a.gpkg":
        path = await database(either, tmp_path, ["t TEXT"], *((text,) for text in IN_BRACES))
    else:
        path = write_geojson(tmp_path / source, [point(1, 2, t=text) for text in IN_BRACES])
    done = await either.to("GeoJsonSeq", path)
    lines = done.path.read_text(encoding="utf-8").replace("\x1e", "").splitlines()
    changed = [line for line in lines if not isinstance(json.loads(line)["properties"]["t"], str)]
    told = f"objects or arrays ({len(changed)} values of 't') are stored"
    assert len(changed) == len(IN_BRACES) - 6
    assert any(told in warning for warning in done.output.warnings), done.output.warnings


@pytest.mark.parametrize("target", TOLD)
async def test_texts_that_a_target_changes_are_told(either: Pipeline, tmp_path: Path, target: str) -> None:
    """Whichever way they were read; each with its column."""
    columns = [f"{name} TEXT" for name in TEXTS]
    path = await database(either, tmp_path, columns, tuple(TEXTS.values()), ("x",) * len(TEXTS))
    warnings = (await either.to(target, path)).output.warnings
    assert {name for name in TEXTS for warning in warnings if repr(name) in warning} == TOLD[target], warnings


async def test_a_scan_a_session_and_a_work_file_count_the_same(either: Pipeline, tmp_path: Path) -> None:
    """They decide together what is told."""
    path = await database(either, tmp_path, [f"{name} TEXT" for name in TEXTS], tuple(TEXTS.values()))
    facts = (await either.to("GeoJson", path)).facts
    fields = {field.name: field for field in facts.layers[0].fields}
    assert {name: _counted(fields[name]) for name in TEXTS} == COUNTS


def _counted(field: Field) -> set[str]:
    return {count for count in set().union(*COUNTS.values()) if getattr(field, count)}


async def test_texts_of_a_document_are_told_without_reading_it_twice(pipeline: Pipeline, tmp_path: Path) -> None:
    """The texts of a GeoJSON document take the direct way, whose warnings follow from its scan."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **TEXTS), point(1, 2)])
    warnings = (await pipeline.to("Kml", path)).output.warnings
    assert {name for name in TEXTS for warning in warnings if repr(name) in warning} == TOLD["Kml"], warnings


async def test_a_text_that_looks_like_markup_leaves_the_document_well_formed(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """The driver would write it as elements, with a prefix that nothing declares."""
    path = await database(pipeline, tmp_path, ["a_b TEXT"], ("<b>bold</b>",))
    done = await pipeline.to("Gpx", path)
    texts = [element.text for element in ET.parse(done.path).iter() if element.tag.endswith("a_b")]  # noqa: S314 -- ours
    assert texts == ["'<b>bold</b>"]


@pytest.mark.parametrize("target", ["Csv", "Xlsx", "Ods"])
async def test_columns_of_tables_may_have_numbers_as_names(either: Pipeline, tmp_path: Path, target: str) -> None:
    """The driver of CSV, by way of which workbooks are written and read, would take the header for data."""
    rows = [{"2020": 5, "country": "a", "7.5": "b"}, {"2020": 6, "country": "c", "7.5": "d"}]
    source = write_geojson(tmp_path / "a.geojson", [feature(None, **row) for row in rows])
    written = await either.to(target, source)
    assert written.output.warnings == ()
    if target == "Csv":
        assert readers.table(written.path)[0] == {"2020": "5", "country": "a", "7.5": "b"}
        return
    for output in ("GeoJson", "Csv", "GeoPackage"):
        done = await either.to(output, written.path)
        assert (done.facts.feature_count, [field.name for field in done.facts.layers[0].fields]) == (2, list(rows[0]))


@pytest.mark.parametrize("output", ["Xlsx", "Ods"])
async def test_rows_above_the_header_of_a_sheet_are_told(either: Pipeline, tmp_path: Path, output: str) -> None:
    """The driver takes the first row for the header, also a title or an empty one."""
    path = tmp_path / "a.csv"
    path.write_text("Trees of 2024,second,third\nname,kind,age\noak,a,7\n", encoding="utf-8")
    sheet = (await either.to(output, path)).path
    titled = tmp_path / f"titled{sheet.suffix}"
    assert (await either.to("GeoPackage", sheet)).output.warnings == (UNPLACED,)
    replace_in(sheet, titled, rb"second|third", b"")
    (told,) = (await either.to("GeoPackage", titled)).output.warnings
    assert "does not seem to name all columns: 'Field2', 'Field3'. If the header is in a lower row" in told
    replace_in(sheet, titled, rb"Trees of 2024", b"")
    numbered = await either.to("GeoPackage", titled)
    assert numbered.output.warnings == (UNPLACED,)
    assert [field.name for field in numbered.facts.layers[0].fields] == ["Field1", "second", "third"]


HEADERS = {
    "1,2,3\n2,4,6\n": "'1', '2', '3'",
    "oak,52.5,-3\nelm,1,2\n": "'52.5', '-3'",
    "1990,1995\n1,2\n": "",
    "tree,1990,2000\noak,1,2\n": "",
    "0,first,second\n1,oak,elm\n": "",
    "tree,girth2\noak,1\n": "",
}
"""Tables in CSV whose first row becomes the first one of a sheet, and the names that are told."""


@pytest.mark.parametrize("output", ["Xlsx", "Ods"])
@pytest.mark.parametrize("text", HEADERS)
async def test_numbers_in_the_first_row_of_a_sheet_are_told(
    either: Pipeline, tmp_path: Path, text: str, output: str
) -> None:
    """The first row of a sheet is taken for the header even if it is data, which would be missing in silence."""
    first, second = (line.split(",") for line in text.split())
    path = write_geojson(tmp_path / "a.geojson", [feature(None, **dict(zip(first, second, strict=True)))])
    done = await either.to("GeoPackage", (await either.to(output, path)).path)
    told = [warning for warning in done.output.warnings if "was read as names of columns" in warning]
    expected = (
        f"The first row of 'a' was read as names of columns, although it holds numbers, such as {HEADERS[text]}. If"
    )
    assert [warning.startswith(expected) for warning in told] == [True] * bool(HEADERS[text])


TITLED = {
    "Report 2024,,\nname,kind,age\noak,a,7\n": "'field_2', 'field_3'",
    "Report 2024;;\n\nname;kind;age\noak;a;7\n": "'field_2', 'field_3'",
    "Report 2024,,\n,,\nname,kind,age\noak,a,7\n": "'field_2', 'field_3'",
    "Report 2024\nname;kind;age\noak;a;7\n": "'field_2', 'field_3'",
    "Report\nname;kind;age\noak;a;7\n": "'field_2', 'field_3'",
    "Report\n\nname;girth\noak;7,5\nelm;8,5\n": "'field_2'",
    "tags\noak;a\nelm;\n": "",
    "tags\n1;2\n3;4\n": "",
    "Report 2024\n\nname|kind\noak|a\n": "'field_2'",
    "names\noak; a\nelm\n": "",
    "tags\noak;a\nelm;b\n": "",
    "\ntags\noak|a\nelm|b\n": "",
    "Trees, all of them\nname,kind,age\noak,a,7\n": "'field_3'",
    ",,\nname,kind,age\noak,a,7\n": "'field_1', 'field_2', 'field_3'",
    "name,kind\noak,a,7\n": "'field_3'",
    ",kind,age\n1,a,7\n": "",
    ",,kind,age\noak,1,a,7\noak,2,b,8\n": "",
    ",,My,Title\nid,name,lat,lon\n1,a,50,7\n2,b,51,8\n": "'field_1', 'field_2'",
    ",,kind\noak,1,a\n": "'field_1', 'field_2'",
    ",kind,,age\noak,a,1,7\n": "'field_1', 'field_3'",
    "name,kind,age,,\noak,a,7,,\nelm,b,8,,\n": "",
    "field_1,Field2,field_3\noak,a,7\n": "",
}
"""Tables in CSV, and the columns without a name that are told."""


@pytest.mark.parametrize("text", TITLED)
async def test_rows_above_the_header_of_a_csv_file_are_told(either: Pipeline, tmp_path: Path, text: str) -> None:
    """They name fewer columns than there are; empty columns, and the numbers of rows, need no name."""
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    done = await either.to("GeoPackage", path)
    told = [warning for warning in done.output.warnings if "not seem to name all columns" in warning]
    expected = (
        f"The first row of the file does not seem to name all columns: {TITLED[text]}. If the header is in a lower row"
    )
    assert [warning.startswith(expected) for warning in told] == [True] * bool(TITLED[text])


async def test_years_as_names_of_workbooks_with_coordinates(pipeline: Pipeline, tmp_path: Path) -> None:
    """Also if some coordinates cannot be read, so that a program of ours has to look."""
    rows = [point(1, 2, **{"2019": 5, "name": "a"}), feature(None, **{"2019": 6, "name": "b"})]
    written = await pipeline.to("Xlsx", write_geojson(tmp_path / "a.geojson", rows))
    done = await pipeline.to("GeoJson", written.path, source_epsg=4326)
    assert [row["properties"] for row in readers.geojson(done.path)] == [row["properties"] for row in rows]


ODD = "a\x01b\ufffec\uffffd"


@pytest.mark.parametrize("target", ["Kml", "Kmz", "Gml", "Gpx", "Xlsx", "Ods"])
@pytest.mark.parametrize("source", ["GeoJson", "FlatGeobuf"])
async def test_characters_that_xml_lacks_leave_the_document_well_formed(
    either: Pipeline, tmp_path: Path, source: str, target: str
) -> None:
    """Drivers leave out some of them; the service leaves out the others, and tells of all."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, first=ODD, second="\uffff "), point(1, 2, first="x")])
    done = await either.to(target, path if source == "GeoJson" else (await either.to(source, path)).path)
    told = [warning for warning in done.output.warnings if "2 values of 'first', 'second'" in warning]
    assert len(told) == 1, done.output.warnings
    texts = {element.text for document in _documents(done.path) for element in document.iter()}
    assert "abcd" in texts, texts


NAMES = [" lead", "trail ", "two\nlines", "odd\x01\uffff", "last"]


@pytest.mark.parametrize("target", ["Xlsx", "Ods"])
async def test_columns_of_workbooks_whose_names_no_cell_can_hold_are_renamed(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    """A line end in a name would end the header, and drop all columns that follow."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{name: name.strip() for name in NAMES})])
    done = await either.to(target, (await either.to("FlatGeobuf", path)).path)
    assert [
        warning for warning in done.output.warnings if warning.startswith("Columns were renamed: ' lead' to 'lead'")
    ]
    texts = {element.text for document in _documents(done.path) for element in document.iter()}
    assert texts > {"lead", "trail", "two_lines", "odd__", "last"}, texts


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
async def test_line_ends_in_the_header_of_a_table_do_not_end_it(either: Pipeline, tmp_path: Path, name: str) -> None:
    """Spreadsheets have them in narrow columns."""
    path = tmp_path / name
    header = '"id","first\nname","x","y","last"' if name.endswith(".csv") else "id,first_name,x,y,last"
    path.with_suffix(".csv").write_text(f"{header}\n1,a,1,2,b\n2,c,3,4,d\n", encoding="utf-8")
    if name.endswith(".xlsx"):
        written = await either.to("Xlsx", path.with_suffix(".csv"), source_epsg=4326)
        replace_in(written.path, path, b"first_name", b"first&#10;name")
    done = await either.to("GeoJson", path, source_epsg=4326)
    rows = [feature["properties"] for feature in readers.geojson(done.path)]
    assert rows == [{"id": 1, "first name": "a", "last": "b"}, {"id": 2, "first name": "c", "last": "d"}]
    assert any("'first?name' became 'first name'" in warning for warning in done.output.warnings), done.output.warnings


def _documents(path: Path) -> list[ET.Element]:
    """All XML in a file, or in its members if it is a ZIP."""
    if not zipfile.is_zipfile(path):
        return [ET.parse(path).getroot()]  # noqa: S314 -- ours
    with zipfile.ZipFile(path) as packed:
        names = [name for name in packed.namelist() if name.endswith((".xml", ".kml"))]
        return [ET.fromstring(packed.read(name)) for name in names]  # noqa: S314 -- ours


@pytest.mark.parametrize("target", ["GeoJson", "Csv", "Kml", "Gml", "Xlsx", "Ods", "Gpx"])
async def test_binary_values_that_become_texts_are_told(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """With their number."""
    path = await database(pipeline, tmp_path, ["bytes BLOB"], (b"\x00\xff",), (None,))
    warnings = (await pipeline.to(target, path)).output.warnings
    assert sum("1 value of 'bytes' became texts" in warning for warning in warnings) == 1, warnings


async def test_names_of_kml_data_are_kept(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver would replace all but ASCII letters and digits, and lose what becomes the same."""
    names = ["größe", "a b", "a-b", "東京", "大阪"]
    values = "".join(f'<Data name="{name}"><value>{name}</value></Data>' for name in names)
    path = tmp_path / "a.kml"
    path.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark>'
        f"<ExtendedData>{values}</ExtendedData><Point><coordinates>1,2</coordinates></Point>"
        "</Placemark></Document></kml>",
        encoding="utf-8",
    )
    found = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert [feature["properties"] for feature in found] == [{name: name for name in names}]


def _with_elevations(path: Path, *places: Sequence[float]) -> Path:
    return write_geojson(path, [point(*place, n=number, t="x") for number, place in enumerate(places)])


@pytest.mark.parametrize("target", ["Csv", "Xlsx", "Ods"])
async def test_points_without_elevations_get_none_beside_others(
    pipeline: Pipeline, tmp_path: Path, target: str
) -> None:
    """A column Z would hold 0 for them."""
    done = await pipeline.to(target, _with_elevations(tmp_path / "a.geojson", (1, 2, 3), (4, 5)))
    lines = (await pipeline.to("Wkt", done.path, source_epsg=4326)).path.read_text().splitlines()
    assert lines == ["POINT Z (1 2 3)", "POINT (4 5)"]


@pytest.mark.parametrize("target", ["Csv", "Xlsx", "Ods", "GeoParquet"])
async def test_points_of_a_layer_for_any_geometry_with_elevations(
    pipeline: Pipeline, tmp_path: Path, target: str
) -> None:
    """Its type says elevations, but not points, although it holds nothing else."""
    places = [(1, 2, 3), (4, 5, 6)]
    done = await pipeline.to("GeoPackage", _with_elevations(tmp_path / "a.geojson", *places))
    with edited(done.path) as connection:
        connection.execute("UPDATE gpkg_geometry_columns SET geometry_type_name = 'GEOMETRY'")
    again = await pipeline.to(target, done.path)
    found = await pipeline.to("GeoJson", again.path, **({} if target == "GeoParquet" else {"source_epsg": 4326}))
    features = readers.geojson(found.path)
    assert [feature["geometry"] for feature in features] == [
        {"type": "Point", "coordinates": list(place)} for place in places
    ]
    assert [feature["properties"] for feature in features] == [{"n": 0, "t": "x"}, {"n": 1, "t": "x"}]


CURVE_CODES = {
    "CIRCULARSTRING (0 0,1 1,2 0)": 8,
    "CIRCULARSTRING Z (0 0 5,1 1 5,2 0 5)": 1008,
    "CIRCULARSTRING ZM (0 0 5 1,1 1 5 1,2 0 5 1)": 3008,
    "COMPOUNDCURVE (CIRCULARSTRING (0 0,1 1,2 0),(2 0,5 5))": 9,
    "CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0))": 10,
    "MULTICURVE (CIRCULARSTRING (0 0,1 1,2 0),(5 5,6 6))": 11,
    "MULTISURFACE (CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0)))": 12,
}
"""Curves, and the codes of their types in WKB."""


@pytest.mark.parametrize("target", ["GeoPackage", "FlatGeobuf"])
async def test_curves_stay_curves_where_the_target_has_them(either: Pipeline, tmp_path: Path, target: str) -> None:
    """A declared type would make lines of them, although no warning says so."""
    for curve, code in CURVE_CODES.items():
        path = tmp_path / f"{code}.csv"
        path.write_text(f'id,WKT\n1,"{curve}"\n', encoding="utf-8")
        done = await either.to(target, path, source_epsg=4326)
        assert not done.output.warnings
        database = done if target == "GeoPackage" else await either.to("GeoPackage", done.path)
        with closing(sqlite3.connect(database.path)) as connection:
            ((blob,),) = connection.execute(f"SELECT geom FROM '{database.plan.datasets[0].name}'")  # noqa: S608 -- ours
        assert struct.pack("<BI", 1, code) in blob, curve


@pytest.mark.parametrize("target", ["FlatGeobuf", "OpenFileGdb"])
async def test_measures_that_are_added_are_told(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """A layer that has measures has them for all features."""
    path = tmp_path / "a.csv"
    path.write_text("id,WKT\n1,POINT M (1 2 3)\n2,POINT (4 5)\n", encoding="utf-8")
    warnings = (await pipeline.to(target, path, source_epsg=4326)).output.warnings
    assert any("stores measures for all features of a layer or for none; 1 without" in warning for warning in warnings)


@pytest.mark.parametrize("points", [("POINT (4 5)", "POINT M (1 2 3)"), ("POINT Z (4 5 6)", "POINT ZM (1 2 6 3)")])
async def test_a_shapefile_keeps_features_without_measures(
    either: Pipeline, tmp_path: Path, points: Sequence[str]
) -> None:
    """It marks that they have none, and others do; programs that decide by the first one are told of."""
    wanted = ConversionRequest(output="Shapefile", source_epsg=4326)
    done = await either.convert(table(tmp_path / "a.csv", *points), wanted, verifies=True)
    (told,) = done.output.warnings
    assert told.startswith("Shapefile keeps 1 feature without measures (M) beside others with them; but programs")
    assert done.differences == ()
    assert await wkt(either, done) == list(points)


async def test_numbers_and_dates_that_lose_digits_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """ODS writes 16 decimals; a .dbf writes years without leading zeros."""
    path = await database(pipeline, tmp_path, ["small REAL", "day DATE"], (1e-20, "0001-01-01"), (1.0, "2024-01-02"))
    workbook = (await pipeline.to("Ods", path)).output.warnings
    assert any("1 value of 'small' lost digits" in warning for warning in workbook), workbook
    table = (await pipeline.to("Shapefile", path)).output.warnings
    assert any("no dates before the year 1000; 1 value of 'day'" in warning for warning in table), table


async def test_a_column_of_missing_numbers_is_told_to_become_zeros(pipeline: Pipeline, tmp_path: Path) -> None:
    """MapInfo has no missing values, also where all of them are missing."""
    path = await database(pipeline, tmp_path, ["n INTEGER"], (None,), (None,))
    warnings = (await pipeline.to("MapInfo", path)).output.warnings
    assert any("stands in place of 2 values of 'n'" in warning for warning in warnings), warnings


async def test_empty_texts_are_told_where_they_become_missing(pipeline: Pipeline, tmp_path: Path) -> None:
    """A CSV holds nothing for both, whichever way it was written."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, a="", b="x"), point(1, 2, a=None, b="y")])
    done = await pipeline.to("Csv", path)
    direct = await pipeline.convert_directly(path, "Csv", done.facts)
    for warnings in (done.output.warnings, direct.plan.warnings if direct else ()):
        assert any("1 value of 'a' became missing" in warning for warning in warnings), warnings


async def test_a_document_that_was_held_in_memory_becomes_a_sequence(converters: Converters, tmp_path: Path) -> None:
    """Between JSON formats the upload itself is read again, not what was held of it."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=1), point(1, 2, n=2)])
    done = await Pipeline(converters, has_sessions=True).to("GeoJsonSeq", path)
    lines = [json.loads(line)["properties"] for line in done.path.read_text().splitlines()]
    assert lines == [{"n": 1}, {"n": 2}]


async def test_dates_beside_texts_keep_their_times(either: Pipeline, tmp_path: Path) -> None:
    """One text makes the whole column text, in which the driver would drop the times of some formats."""
    path = await _workbook(either, tmp_path, b'formatCode="yyyy-mm-dd h:mm"', features=2)
    mixed = tmp_path / "mixed.xlsx"
    replace_in(
        path, mixed, rb'<c r="C2" s="\d+">\s*<v>45293[^<]*</v>', b'<c r="C2" t="inlineStr"><is><t>unknown</t></is>'
    )
    found = readers.geojson((await either.to("GeoJson", mixed, source_epsg=4326)).path)
    assert [feature["properties"] for feature in found] == [
        {"at": "unknown", "t": "x"},
        {"at": "2024/01/02 03:04:05", "t": "x"},
    ]


async def test_all_runs_of_a_text_in_a_cell_are_read(either: Pipeline, tmp_path: Path) -> None:
    """Where letters are bold in a part of it, the rest was lost without a word."""
    path = await _workbook(either, tmp_path, b'formatCode="yyyy-mm-dd h:mm"', features=2)
    bold = tmp_path / "bold.xlsx"
    runs = b'<c r="C2" t="inlineStr"><is><r><t>un</t></r><r><rPr><b/><sz val="11"/></rPr><t>known</t></r></is>'
    replace_in(path, bold, rb'<c r="C2" s="\d+">\s*<v>45293[^<]*</v>', runs)
    first, _ = readers.geojson((await either.to("GeoJson", bold, source_epsg=4326)).path)
    assert first["properties"] == {"at": "unknown", "t": "x"}


@pytest.mark.parametrize(
    ("style", "value"),
    [
        (b"YYYY-MM-DD", "2028-01-03"),
        (b"yyyy-mm-dd hh:mm:ss", "2028-01-03T03:04:05"),
        (b"d. mmmm", "2028-01-03"),
        (b"hh:mm:ss", "03:04:05"),
    ],
)
async def test_dates_that_are_counted_from_1904_are_read(
    either: Pipeline, tmp_path: Path, style: bytes, value: str
) -> None:
    """The driver counts all from 1900: they came out four years and a day too early; times of day are the same."""
    path = await _workbook(either, tmp_path, b'formatCode="%s"' % style)
    since_1904 = tmp_path / "since-1904.xlsx"
    replace_in(path, since_1904, rb"<sheets>", b'<workbookPr date1904="1"/><sheets>')
    done = await either.to("GeoJson", since_1904, source_epsg=4326)
    assert not any("1904" in warning for warning in done.output.warnings)
    found = readers.geojson(done.path)
    assert [feature["properties"] for feature in found] == [{"at": value, "t": "x"}]


async def test_workbooks_in_utf_16_are_looked_at_too(either: Pipeline, tmp_path: Path) -> None:
    """Their driver reads them: without a look at their styles and days, it would take these dates for numbers."""
    path = await _workbook(either, tmp_path, b'formatCode="d/m"')
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(tmp_path / "wide.xlsx", "w", zipfile.ZIP_DEFLATED) as wide:
        for name in book.namelist():
            text = book.read(name).decode().replace("<sheets>", '<workbookPr date1904="1"/><sheets>')
            is_read = name.startswith("xl/") and name.endswith(".xml")
            wide.writestr(name, text.replace("UTF-8", "UTF-16").encode("utf-16") if is_read else text)
    done = await either.to("GeoJson", tmp_path / "wide.xlsx", source_epsg=4326)
    assert [feature["properties"] for feature in readers.geojson(done.path)] == [{"at": "2028-01-03", "t": "x"}]


async def test_numbers_are_no_dates_that_are_counted_from_1904(pipeline: Pipeline, tmp_path: Path) -> None:
    """A workbook may have formats of dates that no cell with a number uses."""
    path = await _workbook(pipeline, tmp_path, b'formatCode="YYYY-MM-DD"')
    since_1904, plain = tmp_path / "since-1904.xlsx", tmp_path / "plain.xlsx"
    replace_in(path, since_1904, rb"<sheets>", b'<workbookPr date1904="1"/><sheets>')
    replace_in(since_1904, plain, rb'<c r="C2" s="\d+">', b'<c r="C2">')
    done = await pipeline.to("GeoJson", plain, source_epsg=4326)
    assert not done.output.warnings
    (found,) = readers.geojson(done.path)
    assert found["properties"] == {"at": pytest.approx(45293.12783564815), "t": "x"}


EAST_ASIAN = {
    (27, "45293.5"): "2024-01-02",
    (58, "45293"): "2024-01-02",
    (32, "45293.5"): "12:00:00",
    (33, "0.25"): "06:00:00",
    (34, "45293"): "2024-01-02",
    (55, "0.5"): "12:00:00",
    (37, "45293"): 45293,
}
"""Numbers of built-in formats and of cells, and what they mean; 34 and 55 are dates in Japan and times in China."""


@pytest.mark.parametrize("built_in", EAST_ASIAN)
async def test_built_in_formats_of_east_asian_versions_are_dates(
    pipeline: Pipeline, tmp_path: Path, built_in: tuple[int, str]
) -> None:
    """A workbook does not define them, and the driver takes them for numbers."""
    number, value = built_in
    path = await _workbook(pipeline, tmp_path, b'formatCode="YYYY-MM-DD"')
    own, east_asian = tmp_path / "own.xlsx", tmp_path / "east-asian.xlsx"
    replace_in(path, own, rb"<v>45293[^<]*</v>", f"<v>{value}</v>".encode())
    replace_in(own, east_asian, rb'(?<=<xf numFmtId=")16\d', b"%d" % number)
    (found,) = readers.geojson((await pipeline.to("GeoJson", east_asian, source_epsg=4326)).path)
    assert found["properties"] == {"at": EAST_ASIAN[built_in], "t": "x"}


@pytest.mark.parametrize(("code", "value"), [(b"yyyy-mm-dd", "2024-01-02"), (b"d.m.yy h:mm", "2024-01-02T03:04:05")])
async def test_dates_of_formats_with_low_numbers_are_dates(
    either: Pipeline, tmp_path: Path, code: bytes, value: str
) -> None:
    """Gnumeric numbers the formats that a workbook defines from 100 on; the driver knows those from 164 on."""
    path = await _workbook(either, tmp_path, b'formatCode="%s"' % code)
    numbered = tmp_path / "numbered.xlsx"
    replace_in(path, numbered, rb'(?<=numFmtId=")16(?=\d")', b"10")
    (found,) = readers.geojson((await either.to("GeoJson", numbered, source_epsg=4326)).path)
    assert found["properties"] == {"at": value, "t": "x"}


async def test_a_format_of_the_workbook_has_the_meaning_it_says(pipeline: Pipeline, tmp_path: Path) -> None:
    """Whatever a built-in format of the same number means."""
    path = await _workbook(pipeline, tmp_path, b'formatCode="0.00"')
    numbered = tmp_path / "numbered.xlsx"
    replace_in(path, numbered, rb'numFmtId="16\d"', b'numFmtId="31"')
    (found,) = readers.geojson((await pipeline.to("GeoJson", numbered, source_epsg=4326)).path)
    assert found["properties"] == {"at": pytest.approx(45293.12783564815), "t": "x"}


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (b"<c r='D2'><f>1+1</f><v/></c>", "no results for some of its formulas (1)"),
        (b"<c r='D2'><f>1+1</f></c>", "no results for some of its formulas (1)"),
        (b"<c r='D2' t='str'><f>B1</f><v></v></c>", ""),
        (b"<c r='D2'><f>1+1</f><v>2</v></c>", ""),
        (b"<c r='D2' t='inlineStr'><is><t>a_x000D_b</t></is></c>", "such as _x000D_ (1)"),
    ],
)
async def test_what_the_driver_does_not_tell_of_cells_is_told(
    pipeline: Pipeline, tmp_path: Path, cell: bytes, told: str
) -> None:
    """Formulas whose results no program has calculated, and characters that are written as escapes."""
    path = await _workbook(pipeline, tmp_path, b'formatCode="0"')
    changed = tmp_path / "changed.xlsx"
    replace_in(path, changed, rb'(?s)<c r="D2".*?</c>', cell)
    warnings = (await pipeline.to("GeoJson", changed, source_epsg=4326)).output.warnings
    assert [told in warning for warning in warnings if "formulas" in warning or "escapes" in warning] == [True] * bool(
        told
    )


async def _workbook(pipeline: Pipeline, folder: Path, style: bytes, features: int = 1) -> Path:
    """A workbook with a date and time in each row, shown in the style of a cell."""
    rows = [point(1, 2, at="2024-01-02T03:04:05", t="x")] * features
    written = await pipeline.to("Xlsx", write_geojson(folder / "a.geojson", rows))
    replace_in(written.path, folder / "a.xlsx", rb'formatCode="DD/MM/YYYY[^"]*"', style)
    return folder / "a.xlsx"


STYLES = {
    "yyyy-mm-dd h:mm:ss": "2024-01-02T03:04:05",
    "[$-409]m/dd/yyyy\\ h:mm\\ AM/PM;@": "2024-01-02T03:04:05",
    "DD/MM/YYYY HH:MM:SS": "2024-01-02T03:04:05",
    "d. mmm yy": "2024-01-02",
    "d&#46; mmm yy": "2024-01-02",
    "d/m": "2024-01-02",
    "[$-de-DE]mmmm": "2024-01-02",
    "e": "2024-01-02",
    "[$-411]ggge": "2024-01-02",
    "[$-D07041E]bbbb": "2024-01-02",
    "aaaa": "2024-01-02",
    "e h:mm AM/PM": "2024-01-02T03:04:05",
    "hh:mm": "03:04:05",
    "h:mm AM/PM": "03:04:05",
    "h:mm;@": "03:04:05",
    "h:mm:ss.00": "03:04:05",
    "0&quot; added&quot;": 45293.12783564815,
    "[Red]0.00": 45293.12783564815,
    "#0.0E+0": 45293.12783564815,
    "[Blue]General": 45293.12783564815,
    "Standard": 45293.12783564815,
    "0.0 &quot;hm&quot;": 45293.12783564815,
    "0.0 &quot;hh dd&quot;": 45293.12783564815,
    "[hh]:mm:ss &quot;dd&quot;": 45293.12783564815,
    "[hh]:mm": 45293.12783564815,
    "[h]:mm": 45293.12783564815,
}
"""Formats of cells as workbooks have them, and what the number of a day and its time means in each."""


@pytest.mark.parametrize("style", STYLES)
async def test_the_format_of_a_cell_decides_whether_it_is_a_date(either: Pipeline, tmp_path: Path, style: str) -> None:
    """Its driver would drop times, and take numbers for dates."""
    written = await either.to(
        "Xlsx", write_geojson(tmp_path / "a.geojson", [point(1, 2, at="2024-01-02T03:04:05", t="x")])
    )
    path = tmp_path / "a.xlsx"
    replace_in(written.path, path, rb'formatCode="DD/MM/YYYY[^"]*"', f'formatCode="{style}"'.encode())
    (found,) = readers.geojson((await either.to("GeoJson", path, source_epsg=4326)).path)
    meaning = STYLES[style]
    assert found["properties"] == {"at": meaning if isinstance(meaning, str) else pytest.approx(meaning), "t": "x"}


async def test_moments_that_reading_a_workbook_changes_are_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver rounds 0.999 s up, and takes dates in the first row for numbers."""
    rows = [feature(None, at="2024-01-02T03:04:05.999"), feature(None, at="2024-01-02T03:04:05.998")]
    written = (await either.to("Xlsx", write_geojson(tmp_path / "a.geojson", rows))).path
    done = await either.to("GeoPackage", written)
    assert done.output.warnings == (
        "Times with 0.001 or 0.999 s (1) may have become whole seconds when the workbook was read.",
        UNPLACED,
    )
    dated = tmp_path / "dated.xlsx"
    replace_in(written, dated, rb'<c r="A1"[^>]*>(?s:.*?)</c>', b'<c r="A1" s="1"><v>45293</v></c>')
    told = (await either.to("GeoPackage", dated)).output.warnings
    assert [warning for warning in told if "dates or times (1) became names" in warning], told


@pytest.mark.parametrize(("target", "lost"), [("Kml", {"name"}), ("Kmz", {"name"}), ("Gpx", {"name", "gone"})])
async def test_columns_without_values_that_vanish_are_told(
    pipeline: Pipeline, tmp_path: Path, target: str, lost: set[str]
) -> None:
    """GPX declares no columns; KML declares all but those with elements of their own."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=1, name=None, gone=None, part="x"), point(1, 2)])
    done = await pipeline.to(target, path)
    direct = await pipeline.convert_directly(path, target, done.facts)
    for warnings in (done.output.warnings, direct.plan.warnings if direct else done.output.warnings):
        told = [warning for warning in warnings if "without any value" in warning]
        assert len(told) == 1, warnings
        assert {name for name in ("n", "name", "gone", "part") if repr(name) in told[0]} == lost
    text = "".join("".join(map(str, (element.tag, element.attrib))) for element in _all(done.path))
    assert ("gone" in text) == ("gone" not in lost), text


def _all(path: Path) -> list[ET.Element]:
    return [element for document in _documents(path) for element in document.iter()]


KML = """<kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<Schema name="a" id="a"><SimpleField name="r" type="double"/><SimpleField name="i" type="int"/>
<SimpleField name="s" type="string"/></Schema>
<Placemark><ExtendedData><SchemaData schemaUrl="#a"><SimpleData name="r">1.8e308</SimpleData>
<SimpleData name="i">3000000000</SimpleData><SimpleData name="s"> both </SimpleData></SchemaData></ExtendedData>
<Point><coordinates> 1,2</coordinates></Point></Placemark></Document></kml>"""
GML = """<f:FeatureCollection xmlns:f="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml/3.2">
<gml:featureMember><f:a gml:id="a.1"><f:geometryProperty><gml:Point srsName="urn:ogc:def:crs:EPSG::4326">
<gml:pos> 1 2</gml:pos></gml:Point></f:geometryProperty><f:r>1.8e308</f:r><f:s>
  text</f:s><f:e/><f:e></f:e></f:a>
</gml:featureMember></f:FeatureCollection>"""
GPX = """<gpx version="1.1" creator="a" xmlns="http://www.topografix.com/GPX/1/1" xmlns:o="http://o">
<wpt lat="1" lon="2"><name/><desc></desc><extensions><o:a>two
lines</o:a><o:b>
<o:c k="1">5</o:c></o:b></extensions></wpt></gpx>"""
GPX_1_0 = """<gpx version="1.0" creator="a" xmlns="http://www.topografix.com/GPX/1/0" xmlns:o="http://o">
<trk><name>a</name><url>b</url><trkseg><trkpt lat="1" lon="2"><o:a>c</o:a><speed>3.5</speed></trkpt>
<trkpt lat="1" lon="3"/></trkseg></trk></gpx>"""
READ = {
    "a.kml": (
        KML,
        "1 value of 'r' became infinite",
        "1 value of 'i' became 2,147,483,647",
        "'3000000000' became 2147483647",
        "beginning of texts (1)",
        "end of texts (1)",
    ),
    "a.gml": (
        GML,
        "1 value of 'r' became infinite",
        "beginning of texts (1)",
        "Elements without content, or of line ends or blanks alone (2)",
    ),
    "a.gpx": (
        GPX,
        "Elements without content, or of line ends or blanks alone (2)",
        "Line ends in texts of extensions (1)",
        "elements of extensions (1)",
        "'<o:c k=\"1\" >5</o:c>' became 0",
        "'o_b' look like numbers",
    ),
    "old.gpx": (GPX_1_0, "left out of 2 of the points, routes and tracks"),
    "undeclared.gpx": (
        GPX_1_0.replace(' version="1.0"', "").replace("<o:a>c</o:a>", ""),
        "left out of 1 of the points, routes and tracks",
        "speed, course and url, were left out of at least 1 of the points",
    ),
    "a.csv": ("id,x,y,r\n1,1,2,1e400\n2,1,2,1.5\n", "1 value of 'r' became infinite"),
    "a.geojson": (
        '{"type": "Feature", "properties": {"r": 1e400}, "geometry": {"type": "Point", "coordinates": [1, 2]}}',
        "1 value of 'r' became infinite",
    ),
}
"""Documents by their names, and what reading them says, whatever the target."""


@pytest.mark.parametrize("name", READ)
async def test_what_reading_changes_is_told(either: Pipeline, tmp_path: Path, name: str) -> None:
    """Numbers that exceed their type, blanks around texts but not coordinates, and elements that are not read."""
    content, *told = READ[name]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    request = {"source_epsg": 4326} if name.endswith(".csv") else {}
    done = await either.to("GeoPackage", path, **request)
    for words in told:
        assert sum(words in warning for warning in done.output.warnings) == 1, (words, done.output.warnings)
    assert len(done.output.warnings) == len(told), done.output.warnings


@pytest.mark.parametrize(("version", "speeds"), [("1.0", {3.5, None}), ("1.1", {None})])
async def test_a_gpx_that_declares_the_older_version_keeps_its_speeds(
    pipeline: Pipeline, tmp_path: Path, version: str, speeds: set[float | None]
) -> None:
    """As the warning advises; where they are not kept, it is there."""
    path = tmp_path / "a.gpx"
    path.write_text(GPX_1_0.replace('"1.0"', f'"{version}"'), encoding="utf-8")
    done = await pipeline.to("GeoPackage", path)
    rows = readers.geopackage(done.path)["track_points"]
    assert {row.get("speed") for row in rows} == speeds
    assert any("speed, course and url" in warning for warning in done.output.warnings) == (speeds == {None})


async def test_measures_are_read_although_the_first_shape_is_empty(pipeline: Pipeline, tmp_path: Path) -> None:
    """By the first shape, the driver would find none in all others."""
    path = tmp_path / "a.csv"
    path.write_text("id,WKT\n1,\n2,POINT M (1 2 3)\n", encoding="utf-8")
    shapes = await pipeline.to("Shapefile", path, source_epsg=4326)
    assert "POINT M (1 2 3)" in (await pipeline.to("Wkt", shapes.path)).path.read_text()


DECLARED = {
    ("INTERVAL", "5 days", "6 days"): 0,
    ("INT(11)", "n/a", 7): 0,
    ("INT(11)", 7, "n/a"): 1,
    ("INTEGER", "n/a", 7): 1,
    ("INTEGER(11)", 7, "n/a"): 1,
    ("UNSIGNED BIG INT", 7, "n/a"): 1,
    ("DECLARED", "n/a", 7): 0,
    ("DECLARED", 1.5, "n/a"): 1,
    ("DOUBLE PRECISION", "n/a", 7): 1,
    ("NUMERIC(5)", "n/a", 7): 0,
    ("DATE", "n/a", "2024/01/02"): 1,
    ("TIME", "12:34:56", "n/a"): 1,
    ("TIME", "25:00:00", "12:34:56"): 1,
    ("UPDATED", "n/a", "2024-01-02"): 0,
    ("POINTS", "n/a", "2024-01-02"): 0,
    ("", "n/a", 7): 0,
}
"""The declared type of a column, its values, and how many of them are none of it."""


@pytest.mark.parametrize("declared", DECLARED)
async def test_values_of_other_types_are_kept_and_told(
    pipeline: Pipeline, tmp_path: Path, declared: tuple[str, object, object]
) -> None:
    """The driver knows some declared types, and goes by the first value in columns of others; it would change these."""
    kind, *values = declared
    path = tmp_path / "a.sqlite"
    with edited(path) as connection:
        connection.execute(f"CREATE TABLE a (id INTEGER PRIMARY KEY, v {kind})")
        connection.executemany("INSERT INTO a (v) VALUES (?)", [(value,) for value in values])
    done = await pipeline.to("Csv", path)
    lines = done.path.read_text().splitlines()[1:]
    assert [line.rpartition(",")[2].strip('"') for line in lines] == [str(value) for value in values]
    others = DECLARED[declared]
    assert sum(f"({others} value of 'v')" in warning for warning in done.output.warnings) == others
    assert sum("of other types" in warning for warning in done.output.warnings) == others


async def test_times_in_odd_zones_stay_texts(either: Pipeline, tmp_path: Path) -> None:
    """The converter keeps zones in quarters of an hour, and would drop all others."""
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,at\n1,1,2,2024-01-02T03:04:05+05:30\n2,1,2,2024-01-02T03:04:05+05:07\n", encoding="utf-8")
    done = await either.to("GeoJson", path, source_epsg=4326)
    assert [found["properties"] for found in readers.geojson(done.path)] == [
        {"id": 1, "at": "2024-01-02T03:04:05+05:30"},
        {"id": 2, "at": "2024-01-02T03:04:05+05:07"},
    ]
    assert not done.output.warnings


async def test_times_that_get_a_zone_beside_others_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """A column of GeoParquet has a zone or none."""
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,at\n1,1,2,2024-01-02T03:04:05Z\n2,1,2,2024-01-02T03:04:05\n", encoding="utf-8")
    warnings = (await pipeline.to("GeoParquet", path, source_epsg=4326)).output.warnings
    assert any("1 value of 'at' without one will be read as UTC" in warning for warning in warnings), warnings


async def test_times_that_reading_a_geodatabase_may_shift_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Some versions of its driver round those before 1970 up to the next second."""
    times = ["1900-01-01T12:00:00Z", "1969-12-31T23:59:59Z", "2024-01-02T03:04:05Z"]
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, at=time, n=1) for time in times])
    done = await pipeline.to("GeoPackage", (await pipeline.to("OpenFileGdb", path)).path)
    assert any("2 values of 'at' may be one second late" in warning for warning in done.output.warnings)


async def test_layers_without_elevations_beside_others_are_told_in_kml(pipeline: Pipeline, tmp_path: Path) -> None:
    """One altitude mode applies to the whole document."""
    path = tmp_path / "a.kml"
    folders = "".join(
        f"<Folder><name>{name}</name><Placemark><Point><coordinates>{place}</coordinates></Point></Placemark></Folder>"
        for name, place in (("high", "1,2,3"), ("flat", "4,5"))
    )
    path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{folders}</Document></kml>')
    database = await pipeline.to("GeoPackage", path)
    warnings = (await pipeline.to("Kml", database.path)).output.warnings
    assert any("for all features of a file or for none; 1 without got 0" in warning for warning in warnings), warnings


AREAS = {
    "sloping": (geometry("Polygon", [ring_at(1, 2, 3)]), 1),
    "level": (geometry("Polygon", [ring_at(5, 5, 5), ring_at(5, 5, 5)]), 0),
    "hole at another level": (geometry("Polygon", [ring_at(5, 5, 5), ring_at(6, 6, 6)]), 1),
    "steps": (geometry("MultiPolygon", [[ring_at(1, 1, 1)], [ring_at(2, 2, 2)]]), 0),
    "slopes": (geometry("MultiPolygon", [[ring_at(1, 1, 2)], [ring_at(2, 2, 2)], [ring_at(2, 3, 2)]]), 2),
    "collection": (
        {
            "type": "GeometryCollection",
            "geometries": [geometry("Polygon", [ring_at(1, 2, 3)]), geometry("Point", [1, 2, 9])],
        },
        1,
    ),
}
"""Areas, and in how many of their parts points have different elevations."""


@pytest.mark.parametrize("kind", AREAS)
async def test_elevations_of_sloping_areas_are_told_in_dxf(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """A hatch is level; areas that are so as well lose nothing."""
    area, sloping = AREAS[kind]
    path = write_geojson(tmp_path / "a.geojson", [feature(area)])
    warnings = (await either.to("Dxf", path)).output.warnings
    areas = "1 area" if sloping == 1 else f"{sloping} areas"
    told = [text for text in warnings if "one elevation for an area" in text]
    assert [f"that of its first point; the others in {areas} were left out" in text for text in told] == [True] * (
        sloping > 0
    ), warnings


async def test_a_gpx_that_its_driver_could_not_read_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """It takes a file with a long text for damaged as a whole; in which encoding the text is long counts."""
    longest = write_geojson(tmp_path / "a.geojson", [point(1, 2, a="ä" * 50_000, b="x"), point(1, 2, a="y", b=None)])
    read = await pipeline.to("GeoJson", (await pipeline.to("Gpx", longest)).path)
    texts = [row["properties"] for row in readers.geojson(read.path)]
    assert texts == [{"a": "ä" * 50_000, "b": "x"}, {"a": "y", "b": None}]
    longer = write_geojson(tmp_path / "b.geojson", [point(1, 2, a="x", b="ä" * 50_000 + "x"), point(1, 2, a="y")])
    with pytest.raises(Rejection, match="'b' of 'b' has one of 100,001"):
        await pipeline.to("Gpx", longer)


async def test_a_mapinfo_table_that_no_program_could_read_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """A text takes 254 bytes of a record, whose length has 15 bits; a time takes eight."""
    times = [point(1, 2, **{f"c{number}": "2024-01-02T03:04:05" for number in range(130)})]
    assert not (await pipeline.to("MapInfo", write_geojson(tmp_path / "times.geojson", times))).output.warnings
    wide = [point(1, 2, **{f"c{number}": "x" for number in range(count)}) for count in (129, 130)]
    assert not (await pipeline.to("MapInfo", write_geojson(tmp_path / "a.geojson", wide[:1]))).output.warnings
    with pytest.raises(Rejection, match="wider together than MapInfo TAB can store"):
        await pipeline.to("MapInfo", write_geojson(tmp_path / "b.geojson", wide[1:]))
    many = [point(1, 2, **dict.fromkeys(map("c{}".format, range(count)), 1)) for count in (1022, 1023)]
    most = write_geojson(tmp_path / "c.geojson", many[:1])
    assert (await pipeline.convert(most, ConversionRequest(output="MapInfo"), verifies=True)).differences == ()
    with pytest.raises(Rejection, match="holds 1,022 columns; 'd' has 1,023"):
        await pipeline.to("MapInfo", write_geojson(tmp_path / "d.geojson", many[1:]))


@pytest.mark.parametrize("target", ["GeoJson", "GeoJsonSeq", "Kml"])
async def test_what_exceeds_the_date_line_by_rounding_is_not_cut(either: Pipeline, tmp_path: Path, target: str) -> None:
    """The other part would have no length, or no area: such an area is invalid."""
    far, path = "180.00000000000006", tmp_path / "a.csv"
    ring = f"(170 10,{far} 10,{far} 20,170 20,170 10)"
    path.write_text(f'WKT\n"LINESTRING (-{far} 1,-170 2)"\n"POLYGON ({ring})"\n')
    text = (await either.to(target, path, source_epsg=4326)).path.read_text()
    assert "Multi" not in text


async def test_texts_in_an_assumed_encoding_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Shift-JIS looks like Windows-1252 to a program."""
    path = tmp_path / "a.csv"
    path.write_bytes("name,x,y\n東京,1,2\n".encode("shift-jis"))
    warnings = (await either.to("GeoJson", path, source_epsg=4326)).output.warnings
    assert any("Windows-1252 was assumed. Send the file in UTF-8" in warning for warning in warnings), warnings
    path.write_bytes("name,x,y\n東京,1,2\n".encode())
    assert not (await either.to("GeoJson", path, source_epsg=4326)).output.warnings
    shapes = await either.to("Shapefile", path, source_epsg=4326)
    old = tmp_path / "old.zip"
    with zipfile.ZipFile(shapes.path) as packed, zipfile.ZipFile(old, "w") as less:
        for name in packed.namelist():
            if not name.endswith(".cpg"):
                text, other = "東京".encode(), "東京".encode("shift-jis").ljust(6)
                less.writestr(name, packed.read(name).replace(text, other))
    warnings = (await either.to("GeoJson", old)).output.warnings
    assert any("Windows-1252 was assumed. Send a .cpg" in warning for warning in warnings), warnings


async def test_the_last_of_several_formats_with_one_number_applies(either: Pipeline, tmp_path: Path) -> None:
    """The package openxlsx of R writes two; of the first one, a warning said that it hid the times that were read."""
    plain = await either.to("Xlsx", await database(either, tmp_path, ["a DATETIME"], ("2024-01-02T03:04:05Z",)))
    twice = tmp_path / "twice.xlsx"
    replace_in(plain.path, twice, rb'(?<=DD/MM/YY" numFmtId=")165', b"166")
    done = await either.to("Csv", twice, source_epsg=4326)
    assert not any("lost the time" in warning for warning in done.output.warnings), done.output.warnings
    assert readers.table(done.path)[0]["a"] == "2024/01/02 03:04:05"


async def test_names_like_escapes_of_workbooks_are_escaped(either: Pipeline, tmp_path: Path) -> None:
    """Excel showed `aA` for the first one, without a word."""
    written = await database(either, tmp_path, ["a_x0041_ TEXT", "_x004_ TEXT"], ("oak", "ash"))
    done = await either.to("Xlsx", written)
    assert [column.written for column in done.plan.datasets[0].columns][1:] == ["a_x005F_x0041_", "_x004_"]
    assert "Columns were renamed: 'a_x0041_' to 'a_x005F_x0041_'." in done.output.warnings
    (row,) = readers.table((await either.to("Csv", done.path, source_epsg=4326)).path)
    assert row["a_x005F_x0041_"] == "oak"


async def test_texts_like_escapes_of_workbooks_are_escaped(either: Pipeline, tmp_path: Path) -> None:
    """Excel shows `A` and a line end for the first two; by the format's rule, `_x005F_` is the `_` of others."""
    texts = ["a_x0041_", "_x000D_", "_x0041_x0042_ _xyz", "_x00e4_"]
    others = ["plain", "_x004_", "_x00041_", "_x0g41_", "_X0041_", "x0041_"]
    rows = [(text,) for text in (*others, *texts)]
    done = await either.to("Xlsx", await database(either, tmp_path, ["a TEXT"], *rows))
    (told,) = [warning for warning in done.output.warnings if "_x005F" in warning]
    assert "before those in 4 values of 'a'" in told
    assert told.endswith("The first is feature 7.")
    with zipfile.ZipFile(done.path) as book:
        root = ET.fromstring(book.read("xl/sharedStrings.xml"))  # noqa: S314 -- ours
    written = [element.text or "" for element in root.iter() if element.tag.endswith("}t")]
    assert set(others) <= set(written)
    shown = [re.sub("_x([0-9A-Fa-f]{4})_", lambda code: chr(int(code[1], 16)), text) for text in written]
    assert set(texts) <= set(shown)
    again = await either.to("Csv", done.path, source_epsg=4326)
    assert any("may have stayed escapes" in warning for warning in again.output.warnings)


async def test_cut_texts_of_mapinfo_are_told_with_what_their_encoding_changes(either: Pipeline, tmp_path: Path) -> None:
    """Their bytes are counted in UTF-8, but the driver writes Windows-1252 if it can."""
    source = write_geojson(tmp_path / "a.geojson", [point(1, 2, a="\u00e9" * 130)])
    done = await either.to("MapInfo", source)
    (told,) = [warning for warning in done.output.warnings if "cut in 'a' (1 value)" in warning]
    assert "If Windows-1252 has every character of the texts, 254 characters of each are kept" in told
    with zipfile.ZipFile(done.path) as archive:
        assert b"\xe9" * 130 in archive.read("a.dat")
    (told,) = (await either.to("Shapefile", source)).output.warnings or ("",)
    assert "Windows-1252" not in told
