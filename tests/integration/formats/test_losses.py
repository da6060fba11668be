"""Geometries and values that targets cannot hold are kept where possible and reported where not."""

import json
import math
import re
import sqlite3
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pyogrio
import pytest

from service.dataloss.rules import report
from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from service.formats.facts import Crs, Facts, Field, FieldType, Layer
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from service.usecases.verify_output import verify_output
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Converted, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_verify import nothing, written

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
    """The geometries of an output as WKT, through a second conversion."""
    return (await pipeline.to("Wkt", done.path)).path.read_text().splitlines()


@pytest.mark.parametrize("target", ["GeoJson", "Shapefile", "Kml"])
@pytest.mark.parametrize("curve", CURVES)
async def test_curves_with_elevations_become_lines(pipeline: Pipeline, tmp_path: Path, curve: str, target: str) -> None:
    """The converter would turn them into null geometries."""
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


MIXED = {
    "types with elevations": ["POINT Z (1 2 3)", "LINESTRING Z (0 0 5,1 1 6)", "POLYGON Z ((0 0 1,1 0 2,1 1 3,0 0 1))"],
    "elevations in some": ["POINT (1 2)", "POINT Z (3 4 5)"],
    "measures in some": ["POINT (1 2)", "POINT M (3 4 5)"],
    "everything": ["POINT Z (1 2 3)", "POINT M (1 2 4)", "LINESTRING (0 0,1 1)", "LINESTRING ZM (0 0 5 7,1 1 6 8)"],
    "nothing": ["POINT (1 2)", "LINESTRING (0 0,1 1)"],
}
"""Geometries of one layer."""


@pytest.mark.parametrize("target", ["GeoPackage", "SpatiaLite"])
@pytest.mark.parametrize("kind", MIXED)
async def test_geometries_of_any_type_keep_their_dimensions(
    either: Pipeline, tmp_path: Path, kind: str, target: str
) -> None:
    """SpatiaLite refused types in turn with elevations; both added the measure 0, and SpatiaLite the elevation 0."""
    path = table(tmp_path / "a.csv", *MIXED[kind])
    done = await either.to(target, path, source_epsg=4326)
    assert done.output.warnings == ()
    assert await wkt(either, done) == MIXED[kind]
    assert await written(either, done.path, "SpatiaLite" if target == "GeoPackage" else "GeoPackage", nothing) == ()


@pytest.mark.parametrize("target", ["GeoJson", "Kml", "Gml", "GeoParquet", "Dxf", "MapInfo"])
async def test_measures_are_told_where_the_target_has_none(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """Elevations are not affected."""
    done = await pipeline.to(target, table(tmp_path / "a.csv", "POINT ZM (1 2 3 4)"), source_epsg=4326)
    assert any("stores no measures (M)" in warning for warning in done.output.warnings)


def name_in(column: str) -> str:
    """The name in a declaration, with its quotation marks."""
    return next(re.finditer(r'"(?:[^"]|"")*"|\S+', column))[0]


async def database(pipeline: Pipeline, folder: Path, columns: Sequence[str], *rows: Sequence[object]) -> Path:
    """A GeoPackage with a point and `columns`, each a name and a type, in every row."""
    path = (
        await pipeline.to("GeoPackage", table(folder / "a.csv", *["POINT (1 2)"] * len(rows)), source_epsg=4326)
    ).path
    with edited(path) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')  # they call functions that SQLite alone does not have
        (name,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        for column in columns:
            connection.execute(f'ALTER TABLE "{name}" ADD COLUMN {column}')
        names = ", ".join(f"{name_in(column)} = ?" for column in columns)
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
        ("MapInfo", ["Binary", "32 bits", "missing"]),
        ("OpenFileGdb", ["53 bits", "fractions", "midnight"]),
        ("Gml", ["leading zeros"]),
        ("Shapefile", ["Binary"]),
        ("GeoPackage", []),
    ],
)
async def test_values_that_a_target_changes_are_told(
    pipeline: Pipeline, tmp_path: Path, target: str, told: list[str]
) -> None:
    """Each kind is reported once, with its columns and number of values; kept values are not reported."""
    path = await database(pipeline, tmp_path, COLUMNS, ROW, EMPTY)
    if target == "GeoPackage":
        path = (await pipeline.to("SpatiaLite", path)).path
    warnings = (await pipeline.to(target, path)).output.warnings
    for words in told:
        assert sum(words in warning for warning in warnings) == 1, (words, warnings)
    if not told:
        assert not warnings


async def read_again(pipeline: Pipeline, done: Converted) -> dict[str, object]:
    """The properties of the first feature of an output."""
    features = readers.geojson((await pipeline.to("GeoJson", done.path, source_epsg=4326)).path)
    found = features[0]["properties"]
    assert isinstance(found, dict)
    return found


async def test_times_of_other_zones_are_the_same_moment_in_geoparquet(pipeline: Pipeline, tmp_path: Path) -> None:
    """It holds them in UTC; those without a zone get none."""
    path = tmp_path / "a.csv"
    path.write_text(
        "id,x,y,utc,off,local\n1,1,2,2024-01-02T03:04:05Z,2024-01-02T03:04:05+02:00,2024-01-02T03:04:05.5\n"
    )
    done = await pipeline.to("GeoParquet", path, source_epsg=4326)
    assert (await read_again(pipeline, done)) == {
        "id": 1,
        "utc": "2024-01-02T03:04:05Z",
        "off": "2024-01-02T01:04:05Z",
        "local": "2024-01-02T03:04:05.500",
    }
    assert [words for words in done.output.warnings if "UTC" in words] == [
        "Times in other zones (1 value of 'off') were converted to UTC, because GeoParquet stores no other."
    ]


@pytest.mark.parametrize("target", ["Kml", "MapInfo", "OpenFileGdb"])
async def test_whole_numbers_stay_whole_where_all_fit(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """A table types them as 64-bit integers, which these targets would turn into text or floating-point numbers."""
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,n\n7,1,2,-3\n")
    found = await read_again(pipeline, await pipeline.to(target, path, source_epsg=4326))
    assert (found["n"], type(found["n"])) == (-3, int)


async def test_names_of_a_geodatabase_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its driver renames columns silently, and loses one with the name of its own."""
    names = ("a-b", "a b", "select", "1st", "OBJECTID", "Shape", "größe", "x" * 70)
    row = point(1, 2, **{name: number for number, name in enumerate(names)})
    done = await pipeline.to("OpenFileGdb", write_geojson(tmp_path / "a.geojson", [row]))
    assert await read_again(pipeline, done) == {
        "a_b": 0, "a_b_2": 1, "select_": 2, "_1st": 3, "OBJECTID_": 4, "Shape_": 5, "größe": 6, "x" * 62: 7,
    }  # fmt: skip
    (told,) = (words for words in done.output.warnings if words.startswith("Columns were renamed"))
    assert all(repr(name)[:-1][:20] in told for name in names if name != "größe")


@pytest.mark.parametrize(
    ("target", "told"), [("MapInfo", "32 bits"), ("OpenFileGdb", "53 bits"), ("Gml", "leading zeros")]
)
async def test_what_a_scan_does_not_count_is_not_written_directly(
    pipeline: Pipeline, tmp_path: Path, target: str, told: str
) -> None:
    """A direct conversion from GeoJSON would change them silently."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, code="00501", big=2**53 + 1)])
    known = (await pipeline.to("GeoPackage", path)).facts
    assert await pipeline.convert_directly(path, target, known) is None
    assert any(told in words for words in (await pipeline.to(target, path)).output.warnings)


NUMBERS_AS_WRITTEN = ("7", "0", "-7", "0.5", "-0.5", "10.25", "1234567.12345678", "123456789012345678")
LIKE_NUMBERS = (
    *("+5", "2D3", "5.", "1e5", "1E-5", "1e+", "1.50", ".5", "-.5", "007", "-007", "-0", "00.5", "5 ", "-", "+", "."),
    *("0.12345678901234567890", "1234567890123456789", "1e400"),
)
NO_NUMBERS = ("2024-01-01", "1.2.3", "5 7", "12a", "1e", "e5", "2D", "- 5", "1,5", "0x10", "555-1234", "--5", "")


@pytest.mark.filterwarnings("ignore:Value '.*' of field")
async def test_texts_that_readers_of_gml_mistake_for_numbers_are_told(either: Pipeline, tmp_path: Path) -> None:
    """All that a reader of its results changes; not those that stay the same as numbers."""
    texts = {f"t{at}": text for at, text in enumerate((*NUMBERS_AS_WRITTEN, *LIKE_NUMBERS, *NO_NUMBERS))}
    done = await either.to("Gml", write_geojson(tmp_path / "a.geojson", [point(1, 2, **texts)]))
    counts = {texts[field.name]: field.like_numbers for field in done.facts.layers[0].fields}
    assert counts == {text: text in LIKE_NUMBERS for text in texts.values()}
    assert f"mistake {len(LIKE_NUMBERS)} values of 't" in "\n".join(done.output.warnings)
    meta, _, _, columns = pyogrio.raw.read(done.path, read_geometry=False)
    read = {texts[name]: values for name, values in zip(meta["fields"], columns, strict=True) if name in texts}
    changed = {text for text, values in read.items() if values.dtype.kind in "if" and str(values[0]) != text}
    assert {"+5", "2D3", "1.50", "-"} <= changed <= set(LIKE_NUMBERS)


@pytest.mark.parametrize("target", ["Kml", "Gpx"])
async def test_dates_that_become_texts_are_told(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """In the converter's spelling, with slashes."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, at="2024-01-02T03:04:05Z", day="2024-01-02")])
    (told,) = (words for words in (await pipeline.to(target, path)).output.warnings if "dates and times" in words)
    assert "2 values of 'at', 'day' became texts" in told


async def test_the_report_of_a_shapefile_covers_every_input(pipeline: Pipeline, tmp_path: Path) -> None:
    """Tables that were read give the same report as a scan of the same GeoJSON."""
    columns = ("huge REAL", "empty TEXT", "trail TEXT", "population_2020 TEXT", "population_2021 TEXT", "inf REAL")
    path = await database(pipeline, tmp_path, columns, (1e300, "", "x  ", "y" * 300, "z", float("inf")))
    done = await pipeline.to("Shapefile", path)
    found = findings_of(done.plan.converted)
    told = report(*found)
    assert told.applicable
    assert told.has_data_loss
    assert [entry.fields for entry in told.field_name_collisions] == [("population_2020", "population_2021")]
    assert [entry.affected_features for entry in told.value_truncations] == [1]
    sentences = "\n".join(extra_warnings(*found))
    for words in ("1 value in huge: numbers beyond 1e24 or -1e23", "1 value in empty", "1 value in trail", "infinite"):
        assert words in sentences


SCHEMA_DATA = '<SchemaData schemaUrl="#s"><SimpleData name="id">7</SimpleData></SchemaData>'


async def test_ids_of_kml_are_kept_or_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Newer drivers show them as a column, older ones omit them."""
    path = tmp_path / "a.kml"
    place = '<Placemark id="tree-7"><name>a</name><Point><coordinates>1,2</coordinates></Point></Placemark>'
    path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{place}</Document></kml>')
    done = await pipeline.to("GeoJson", path)
    told = "Ids of features (1) were left out." in done.output.warnings
    (properties,) = [row["properties"] for row in readers.geojson(done.path)]
    assert properties == ({"Name": "a"} if told else {"id": "tree-7", "Name": "a"})


@pytest.mark.parametrize("data", ["<Data name='id'><value>7</value></Data>", SCHEMA_DATA])
async def test_ids_of_kml_beside_data_of_that_name_are_kept_or_told(
    pipeline: Pipeline, tmp_path: Path, data: str
) -> None:
    """Data keeps its name."""
    path = tmp_path / "a.kml"
    schema = '<Schema name="s" id="s"><SimpleField name="id" type="string"/></Schema>' if "Simple" in data else ""
    place = f"<ExtendedData>{data}</ExtendedData><Point><coordinates>1,2</coordinates></Point>"
    path.write_text(
        f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{schema}<Placemark id="tree-7">{place}</Placemark>'
        "</Document></kml>"
    )
    done = await pipeline.to("GeoJson", path)
    (properties,) = [row["properties"] for row in readers.geojson(done.path)]
    told = done.output.warnings == ("Ids of features (1) were left out, because data is called id, too.",)
    assert properties == ({"id": "7"} if told else {"id": "7", "kml_element_id": "tree-7"})


async def test_the_end_of_time_is_told_where_utc_has_no_such_year(pipeline: Pipeline, tmp_path: Path) -> None:
    """It keeps its digits, and so becomes another moment."""
    path = tmp_path / "a.csv"
    path.write_text("x,y,until\n1,2,2024-01-02T03:04:05-02:00\n1,2,9999-12-31T23:59:59-02:00\n")
    directory, source = pipeline.receive(path)
    target, request = choose_target(source.format, "GeoParquet"), ConversionRequest(source_epsg=4326)
    facts = await pipeline.engine.inspect(pipeline.run, source, directory, request)
    plan = plan_conversion(source, target, facts, request, pipeline.engine.catalogue)
    await pipeline.engine.convert(pipeline.run, source, plan, directory)
    (told,) = await verify_output(pipeline.engine, pipeline.run, source, plan, directory)
    assert "1 time in 'until'" in told
    assert "first in feature 2" in told


async def test_a_name_that_only_seems_to_stay_the_same_is_explained(pipeline: Pipeline, tmp_path: Path) -> None:
    """XML has accents in one character with their letter, where other formats may have two."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{"cafe\u0301": 1, "a b": 2})])
    done = await pipeline.to("Kml", path)
    (told,) = done.output.warnings
    assert told == (
        "Columns were renamed: 'cafe\u0301' to 'caf\u00e9' (letters with their accents as one character), "
        "'a b' to 'a_b'."
    )


async def test_times_of_other_zones_are_the_same_moment_in_a_geodatabase(pipeline: Pipeline, tmp_path: Path) -> None:
    """It holds them in UTC. Whole seconds have no fractions, and names that the driver changes are changed before."""
    path = tmp_path / "a.csv"
    path.write_text(
        "id,x,y,date,AS,utc,off,local\n1,1,2,2024-01-02,a,"
        "2024-01-02T03:04:05Z,2024-01-02T03:04:05+02:00,2024-01-02T03:04:05\n"
    )
    done = await pipeline.to("OpenFileGdb", path, source_epsg=4326)
    assert done.output.warnings == (
        "Columns were renamed: 'date' to 'date_', 'AS' to 'AS_'.",
        "Times in other zones (1 value of 'off') were converted to UTC, because OpenFileGDB stores no other.",
        "OpenFileGDB stores times in UTC; 1 value of 'local' without a time zone will be read as UTC.",
        "OpenFileGDB stores dates with times only; midnight was added to 1 value of 'date'.",
    )
    found = await read_again(pipeline, done)
    assert list(found) == ["id", "date_", "AS_", "utc", "off", "local"]
    assert str(found["utc"]).startswith("2024-01-02T03:04:05")
    assert str(found["off"]).startswith("2024-01-02T01:04:05")


async def test_features_without_elevations_get_none_unnoticed(either: Pipeline, tmp_path: Path) -> None:
    """Where others of their layer have them: a GeoPackage keeps both kinds, most targets add an elevation of 0."""
    shapes = ["POINT Z (1 2 3)", "POINT (3 4)", "LINESTRING (0 0,1 1)"]
    source = table(tmp_path / "a.csv", *shapes)
    kept = await either.to("GeoPackage", source, source_epsg=4326)
    assert await wkt(either, kept) == shapes
    with closing(sqlite3.connect(kept.path)) as connection:
        declared = connection.execute("SELECT geometry_type_name, z FROM gpkg_geometry_columns").fetchall()
    assert declared == [("GEOMETRY", 2)]
    document = (await either.to("GeoJson", source, source_epsg=4326)).path
    for target, path, epsg in (("FlatGeobuf", source, 4326), ("Kml", document, None)):
        warnings = (await either.to(target, path, source_epsg=epsg)).output.warnings
        assert sum("2 without got 0" in warning for warning in warnings) == 1, (target, warnings)


async def test_features_without_elevations_stay_flat_in_gml(pipeline: Pipeline, tmp_path: Path) -> None:
    """Beside others that have some: no reader is told that all coordinates of the file have three numbers."""
    shapes = ["LINESTRING (0 0,1 1,2 3)", "LINESTRING Z (1 2 3,4 5 6)", "POLYGON ((0 0,1 0,1 1,0 0))"]
    done = await pipeline.to("Gml", table(tmp_path / "a.csv", *shapes), source_epsg=4326)
    assert done.output.warnings == ()
    assert await wkt(pipeline, done) == shapes
    envelope, *geometries = re.findall(r"<gml:(?:Envelope|posList)[^>]*>", done.path.read_text())
    assert "srsDimension" not in envelope
    assert ["srsDimension" in geometry for geometry in geometries] == [False, True, False]


@pytest.mark.parametrize("extension", ["csv", "gml"])
async def test_days_that_a_workbook_cannot_count_are_told(either: Pipeline, tmp_path: Path, extension: str) -> None:
    """The calendar of spreadsheets has a 29 February 1900, which shifts earlier days."""
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,day,late\n1,1,2,0001-01-01,1900-03-01\n2,1,2,1900-02-28,2024-01-01\n")
    source = path if extension == "csv" else (await either.to("Gml", path, source_epsg=4326)).path
    told = (await either.to("Xlsx", source, source_epsg=4326)).output.warnings
    assert [warning for warning in told if "1900" in warning] == [
        "XLSX has no dates before March 1900; 2 values of 'day' may be shown as other days, or as numbers."
    ]
    assert not any("1900" in warning for warning in (await either.to("Ods", source, source_epsg=4326)).output.warnings)


async def test_times_of_day_are_text_in_flatgeobuf(pipeline: Pipeline, tmp_path: Path) -> None:
    """It has no type for them, and its driver would write nothing."""
    source = write_geojson(tmp_path / "a.geojson", [point(1, 2, at="10:11:12"), point(3, 4, at="23:59:59")])
    crs, fields = Crs(known=True, epsg=4326), (Field("at", FieldType.TIME),)
    layer = Layer(name="a", features=2, geometry_types={"Point": 2}, crs=crs, fields=fields)
    done = await pipeline.convert_directly(source, "FlatGeobuf", Facts(layers=(layer,)))
    assert done is not None
    assert (await read_again(pipeline, done))["at"] in {"10:11:12", "23:59:59"}


@pytest.mark.parametrize("target", ["MapInfo", "Shapefile"])
@pytest.mark.parametrize(
    "columns", [("bytes BLOB", '"a ""b"", \\c" TEXT', "d TEXT", '"e, f" TEXT'), ("bytes BLOB",)], ids=["others", "none"]
)
async def test_columns_beside_binary_ones_are_kept(
    either: Pipeline, tmp_path: Path, target: str, columns: tuple[str, ...]
) -> None:
    """Whatever they are called; newer drivers refuse a file with binary columns, which older ones leave out."""
    values = (b"\x00\xff", "g", "h", "i")[: len(columns)]
    path = await database(either, tmp_path, columns, values)
    done = await either.to(target, path)
    (told,) = (warning for warning in done.output.warnings if "Binary" in warning)
    assert told == f"Binary values (1 value of 'bytes') were left out, because {done.plan.target.title} stores none."
    kept = await read_again(either, done)
    assert [value for value in kept.values() if isinstance(value, str)] == list(values[1:])


NAMES_OF_LAYERS = {
    **dict.fromkeys(("plain", "a b-c_d.e+f,g(h)", "[a]{b}~!#$%&'@^`", "A]"), False),
    **dict.fromkeys(("grün", "a/b", "a:b", "a\\b", "a|b", 'a"b', "a*", "a=b", "a\tb", "a\x7fb", "<a", "a?;"), True),
}
"""Which of them programs show differently."""


async def test_names_of_layers_that_a_drawing_changes_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Its driver writes other letters in another encoding than it declares, and _ in place of some characters."""
    path = await database(either, tmp_path, ["Layer TEXT"], *((name,) for name in NAMES_OF_LAYERS))
    _, told = (await either.to("Dxf", path)).output.warnings
    assert told.startswith("DXF is written with names of layers in ASCII;")
    assert f"show {sum(NAMES_OF_LAYERS.values())} values of 'Layer' with other letters" in told


async def test_texts_and_types_of_lines_beside_drawings_are_left_out_and_told(either: Pipeline, tmp_path: Path) -> None:
    path = await database(either, tmp_path, ["Text TEXT", "Linetype TEXT", "Layer TEXT"], ("t", "DASHED", "a"))
    assert (await either.to("Dxf", path)).output.warnings == (
        "DXF cannot store these attributes, which were left out: 'id', 'Text', 'Linetype'.",
    )


async def test_empty_geometries_that_become_missing_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Of each type; features that have none are as they were."""
    path = table(tmp_path / "a.csv", "POINT EMPTY", "POINT (1 2)", "MULTIPOLYGON EMPTY", "")
    done = await either.to("GeoPackage", path, source_epsg=4326)
    told = "Geometries without any position, such as POINT EMPTY (2), became missing."
    assert done.output.warnings == (told,)


HOLLOW = (
    "Parts without any position, such as EMPTY in MULTIPOINT (EMPTY, (1 1)), were left out of the geometry of 2 "
    "features. The first is feature 2."
)
NEITHER = struct.pack("<2d", math.nan, math.nan)
TWO_POINTS = struct.pack("<BII", 1, 4, 2) + struct.pack("<BI", 1, 1) + NEITHER + struct.pack("<BI2d", 1, 1, 3, 4)
COLLECTION = struct.pack("<BII", 1, 7, 2) + TWO_POINTS + struct.pack("<BII", 1, 2, 0)


@pytest.mark.parametrize("rows", [4, 600], ids=["copied", "read twice"])
@pytest.mark.parametrize(("geometry", "target"), [(TWO_POINTS, "SpatiaLite"), (COLLECTION, "Shapefile")])
async def test_parts_of_geometries_without_any_position_are_left_out_and_told(
    either: Pipeline, tmp_path: Path, geometry: bytes, target: str, rows: int
) -> None:
    """Drivers write them at 0, 0 or elsewhere, refuse them, and cannot transform them."""
    path = await database(either, tmp_path, ["n INTEGER"], *((number,) for number in range(rows)))
    with edited(path) as connection:
        name, column = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        set_two = f'UPDATE "{name}" SET "{column}" = CAST(substr("{column}", 1, 8) || ? AS BLOB) WHERE id IN (1, 3)'  # noqa: S608 -- ours
        connection.execute(set_two, (geometry,))
    done = await either.to(target, path, target_epsg=3857)
    assert HOLLOW in done.output.warnings
    positions = [
        (round(float(x)), round(float(y)))
        for line in await wkt(either, done)
        for x, y in re.findall(r"([-.\de]+) ([-.\de]+)", line)
    ]
    assert Counter(positions) == {(1, 2): rows - 2, (3, 4): 2}


HEIGHTLESS = struct.pack("<BII6d", 1, 1002, 2, 3, 4, math.nan, 5, 6, 7)
NOWHERE = struct.pack("<BII4d", 1, 1002, 2, 3, 4, 5, 6) + bytes.fromhex("010000000000f4ff") + struct.pack("<d", 7)
"""One of its coordinates is another number than usual that is none."""


@pytest.mark.parametrize("rows", [4, 600], ids=["copied", "read twice"])
async def test_coordinates_that_are_no_finite_numbers_are_told(either: Pipeline, tmp_path: Path, rows: int) -> None:
    """Drivers write them as 0, as other places, as words that are not numbers, or not at all."""
    path = await database(either, tmp_path, ["n INTEGER"], *((number,) for number in range(rows)))
    with edited(path) as connection:
        name, column = connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        for number, wkb in ((1, HEIGHTLESS), (2, NOWHERE), (3, NOWHERE)):
            update = f'UPDATE "{name}" SET "{column}" = CAST(substr("{column}", 1, 8) || ? AS BLOB) WHERE id = ?'  # noqa: S608 -- ours
            connection.execute(update, (wkb, number))
    done = await either.to("GeoJson", path)
    told = "\n".join(done.output.warnings)
    assert "(NaN): the geometry of 2 features became missing. The first is feature 3." in told
    assert "Elevations that are infinite or not numbers (NaN) became 0 in 1 feature. The first is feature 2." in told
    written = [feature["geometry"] for feature in readers.geojson(done.path)]
    assert written[:4] == [geometry("Point", [1, 2]), geometry("LineString", [[3, 4, 0], [5, 6, 7]]), None, None], told
    assert written.count(written[0]) == rows - 3


@pytest.mark.parametrize(
    "empty", [geometry("MultiPoint", []), geometry("MultiPolygon", [[], [[[1, 2], [3, 4], [5, 2], [1, 2]]]])]
)
async def test_geojson_with_empty_geometries_or_parts_is_not_written_as_it_is(
    pipeline: Pipeline, tmp_path: Path, empty: dict[str, object]
) -> None:
    """Except into JSON, which holds them; SpatiaLite would hold points at 0, 0 instead."""
    path = write_geojson(tmp_path / "a.geojson", [feature(empty, n=1), feature(geometry("Point", [1, 2]), n=2)])
    for output, holds_them in (("SpatiaLite", False), ("GeoJsonSeq", True)):
        directory, source = pipeline.receive(path)
        target = choose_target(source.format, output)
        look = await inspect_source(pipeline.engine, pipeline.run, source, target, directory)
        plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), pipeline.engine.catalogue)
        assert plan.direct == holds_them
        assert sum("without any position" in warning for warning in plan.warnings) == (not holds_them)


FAULTY = {
    "do not end where they begin": [
        geometry("Polygon", [[[0, 0], [1, 0], [1, 1], [0, 0]]]),
        geometry("Polygon", [[[0, 0], [1, 0], [1, 1], [0, 1]]]),
        geometry("Polygon", [[]]),
    ],
    "have a single position": [geometry("LineString", [[0, 0], [1, 0]]), geometry("LineString", [[7, 8]])],
}


@pytest.mark.parametrize(("name", "output"), [("a.geojson", "GeoJsonSeq"), ("a.geojsonl", "GeoJson")])
@pytest.mark.parametrize("fault", FAULTY)
async def test_faulty_lines_of_geojson_are_told_where_it_is_written_as_it_is(
    either: Pipeline, tmp_path: Path, name: str, output: str, fault: str
) -> None:
    """With the first of them, and nothing of empty geometries, which JSON keeps."""
    shapes = [feature(shape, n=1) for shape in FAULTY[fault]]
    path = tmp_path / name
    path.write_text("".join(f"{json.dumps(shape)}\n" for shape in shapes))
    if output == "GeoJsonSeq":
        write_geojson(path, shapes)
    directory, source = either.receive(path)
    target = choose_target(source.format, output)
    async with either.engine.session(either.run, target) as run:
        look = await inspect_source(either.engine, run, source, target, directory)
    plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), either.engine.catalogue)
    assert plan.direct
    (told,) = plan.warnings
    assert f"{fault} in 1 feature" in told
    assert told.endswith("The first is feature 2.")


async def test_names_that_differ_in_case_alone_are_told_as_json_gets_them(either: Pipeline, tmp_path: Path) -> None:
    """They were told to lack, although they are there under new names."""
    names = ("name", "Name", "ä", "Ä", "NAME2", "NAME")
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{name: at for at, name in enumerate(names)})])
    directory, source = either.receive(path)
    target = choose_target(source.format, "GeoJsonSeq")
    async with either.engine.session(either.run, target) as run:
        look = await inspect_source(either.engine, run, source, target, directory)
        plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), either.engine.catalogue)
        assert plan.direct
        astray = await either.engine.convert(run, look.source, plan, directory)
        differences = await verify_output(either.engine, run, look.source, plan, directory, astray=astray)
    output = await either.engine.collect(plan, directory)
    (line,) = output.path.read_text().splitlines()
    assert list(json.loads(line)["properties"]) == ["name", "Name3", "ä", "Ä", "NAME2", "NAME4"]
    assert plan.warnings == ("Columns were renamed: 'Name' to 'Name3', 'NAME' to 'NAME4'.",)
    assert not differences


@pytest.mark.parametrize("target", ["Gml", "Gpx"])
async def test_names_have_characters_that_parsers_know_in_elements(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    """Results with others, such as letters of Romanian, could not be read back, or were refused as empty."""
    path = write_geojson(tmp_path / "județ.geojson", [point(25, 45, **{"județ": "Argeș", "suprafață_m²": 12.5})])
    done = await either.to(target, path)
    assert done.output.warnings == ("Columns were renamed: 'județ' to 'judet', 'suprafață_m²' to 'suprafată_m2'.",)
    elements = ET.parse(done.path).iter()  # noqa: S314 -- written by the test
    found = {element.tag.rpartition("}")[2]: element.text for element in elements}
    assert (found["judet"], found["suprafată_m2"]) == ("Argeș", "12.5")
    assert await written(either, path, target, nothing) == ()


async def test_one_thing_is_told_in_the_singular(pipeline: Pipeline, tmp_path: Path) -> None:
    """As in `1 value` and `1 point`."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n="x" * 255)])
    (told,) = (await pipeline.to("Shapefile", path)).output.warnings
    assert told.endswith("longer values were cut in 'n' (1 value).")
    (tmp_path / "a.gpx").write_text(
        '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><rte>'
        '<rtept lat="1" lon="2"><name>p</name></rtept></rte></gpx>'
    )
    (told, *_) = (await pipeline.to("GeoJson", tmp_path / "a.gpx")).output.warnings
    assert told.startswith("Values of single points ('name', of 1 point) were left out.")


async def test_areas_of_a_type_that_may_have_curves_are_not_said_to_have_some(either: Pipeline, tmp_path: Path) -> None:
    """Programs write areas without any as MultiSurface, whose type changes."""
    (tmp_path / "a.wkt").write_text("MULTISURFACE (((0 0, 1 0, 1 1, 0 0)))\n")
    done = await either.to("GeoJson", tmp_path / "a.wkt", source_epsg=4326)
    (told,) = done.output.warnings
    assert told.startswith("GeoJSON stores no curves, nor types that may have some, such as MultiSurface; any curves")
