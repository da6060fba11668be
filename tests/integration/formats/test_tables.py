"""Tables: where their geometry is, and what happens to cells that are not part of it."""

import csv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.errors import Rejection
from service.formats.facts import MAX_NAMES_CHARACTERS
from service.formats.request import ConversionRequest
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Converted, Json, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point

LINE = geometry("LineString", [[1, 2], [3, 4]])
LONE_CELLS: Mapping[str, tuple[list[Json], list[list[str]]]] = {
    "a table": (
        [feature(None, a=text) for text in ("x", None, 'p,\n,,\n"q', "", "\r")],
        [["a"], ["x"], [""], ['p,\n,,\n"q'], [""], ["\r"]],
    ),
    "geometries": ([point(1, 2), feature(None)], [["WKT"], ["POINT (1 2)"], [""]]),
    "a column beside geometries": (
        [feature(LINE, a=None), feature(None, a=None), feature(None, a="\n,,\n"), feature(LINE, a=",,")],
        [
            ["WKT", "a"],
            ["LINESTRING (1 2,3 4)", ""],
            ["", ""],
            ["", "\n,,\n"],
            ["LINESTRING (1 2,3 4)", ",,"],
        ],
    ),
}
HALF = "id,lat,lon\n1,50,7\n2,51,8\n3,52,9\n4,50°30N,7\n5,n/a,8\n6,,\n"

GML = (
    '<c:FeatureCollection xmlns:c="http://www.opengis.net/gml"><c:featureMember><a>{}</a></c:featureMember>'
    "</c:FeatureCollection>"
)


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows(done: Converted) -> list[dict[str, Any]]:
    found: list[Any] = readers.geojson(done.path)
    return [feature["properties"] for feature in found]


def places(done: Converted) -> list[object]:
    found: list[Any] = readers.geojson(done.path)
    return [feature["geometry"] and feature["geometry"]["coordinates"] for feature in found]


@pytest.mark.parametrize("found", LONE_CELLS.values(), ids=LONE_CELLS)
async def test_all_rows_of_a_csv_have_as_many_cells_as_its_header(
    either: Pipeline, tmp_path: Path, found: tuple[list[Json], list[list[str]]]
) -> None:
    """Even those without any value, of one column and of two."""
    features, expected = found
    path = write_geojson(tmp_path / "a.geojson", features)
    done = await either.convert(path, ConversionRequest(output="Csv"), verifies=True)
    with done.path.open(newline="") as file:
        assert list(csv.reader(file, strict=True)) == expected
    assert done.differences == ()


@pytest.mark.parametrize("target", ["GeoJson", "GeoPackage", "Xlsx"])
async def test_cells_that_are_no_coordinates_keep_their_texts(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """They and their partners remain columns, the rows are counted and the first is named; empty cells are ignored."""
    done = await pipeline.to(target, table(tmp_path / "a.csv", HALF), source_epsg=4326)
    (told,) = [warning for warning in done.output.warnings if "could not be read" in warning]
    assert "2 rows" in told
    assert "row 4, not counting a header" in told
    assert "Write decimal numbers" in told
    assert done.facts.geometry_type == "Point"
    back = done if target == "GeoJson" else await pipeline.to("GeoJson", done.path, source_epsg=4326)
    kept = [(row.get("lat"), str(row.get("lon"))) for row in rows(back)]
    assert kept == [(None, "None")] * 3 + [("50°30N", "7"), ("n/a", "8"), (None, "None")]


async def test_cells_that_are_no_geometry_keep_their_texts(pipeline: Pipeline, tmp_path: Path) -> None:
    """Even if they begin like WKT; `EMPTY` is a geometry."""
    text = 'id,wkt\n1,POINT (1 2)\n2,"POINT (1"\n3,POINT EMPTY\n4,POINT (3 4)\n5,garbage\n6,POINT (5 6)\n'
    done = await pipeline.to("GeoJson", table(tmp_path / "a.csv", text), source_epsg=4326)
    assert [row["wkt"] for row in rows(done)] == [None, "POINT (1", None, None, "garbage", None]
    assert any("2 rows" in warning and "row 2, not counting" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("word", ["Point", "Point of sale", "polygon", "MultiPoint ZM", "surface m"])
async def test_words_that_name_types_of_geometries_are_data(either: Pipeline, tmp_path: Path, word: str) -> None:
    """The coordinates are those in their own columns."""
    text = f"id,lat,lon,kind\n1,50,7,{word}\n2,51,8,{word}\n"
    done = await either.to("GeoJson", table(tmp_path / "a.csv", text), source_epsg=4326)
    assert places(done) == [[7, 50], [8, 51]]
    assert rows(done) == [{"id": 1, "kind": word}, {"id": 2, "kind": word}]
    assert done.output.warnings == ()


@pytest.mark.parametrize("number", ["1.112,5", "+1.112,5 "])
async def test_numbers_with_two_separators_show_which_one_separates_thousands(
    either: Pipeline, tmp_path: Path, number: str
) -> None:
    """In any column, also one of texts: others that may have such a separator stay texts."""
    done = await either.to("GeoJson", table(tmp_path / "a.csv", f"a;b;c\n12.345;n/a;2.5\n1.234;{number};2.5\n"))
    assert rows(done) == [{"a": "12.345", "b": "n/a", "c": 2.5}, {"a": "1.234", "b": number, "c": 2.5}]


async def test_the_columns_of_the_geometry_can_be_named(pipeline: Pipeline, tmp_path: Path) -> None:
    """Whatever their names, in any case; other columns that look like coordinates then remain data."""
    text = "lon,lat,oben,rechts,form\n1,2,50,7,POINT (3 4)\n"
    path = table(tmp_path / "a.csv", text)
    for wishes, found in (
        ({"x_field": "Rechts", "y_field": "oben"}, [7, 50]),
        ({"wkt_field": "form"}, [3, 4]),
        ({"x_field": "rechts", "y_field": "oben", "z_field": "lon"}, [7, 50, 1]),
        ({}, [3, 4]),
    ):
        done = await pipeline.to("GeoJson", path, source_epsg=4326, **wishes)
        assert places(done) == [found]


@pytest.mark.parametrize("extension", ["csv", "xlsx", "ods"])
async def test_a_named_column_that_is_not_there_is_a_failure(
    pipeline: Pipeline, tmp_path: Path, extension: str
) -> None:
    """The failure lists the existing columns."""
    path = table(tmp_path / "a.csv", "ost,nord\n1,2\n")
    if extension != "csv":
        path = (await pipeline.to(extension, path)).path
    with pytest.raises(Rejection, match=r"no such columns: xField='rechts'.*'ost', 'nord'"):
        await pipeline.to("GeoJson", path, source_epsg=4326, x_field="rechts", y_field="nord")


async def test_source_epsg_without_coordinates_is_a_failure(pipeline: Pipeline, tmp_path: Path) -> None:
    """It is pointless for a table without geometry; the columns are listed. Without it, the table is converted."""
    path = table(tmp_path / "a.csv", "name,oben,rechts\na,1,2\n")
    with pytest.raises(Rejection, match=r"xField and yField.*'name', 'oben', 'rechts'"):
        await pipeline.to("GeoJson", path, source_epsg=4326)
    assert (await pipeline.to("GeoJson", path)).facts.geometry_type == "None"


async def test_named_columns_of_a_file_with_geometry_are_told_not_to_be_used(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """They apply to tables only."""
    made = await pipeline.to("Gpx", table(tmp_path / "a.csv", "x,y\n1,2\n"), source_epsg=4326)
    done = await pipeline.to("GeoJson", made.path, x_field="a", y_field="b")
    assert any(warning.startswith("xField and yField was not used") for warning in done.output.warnings)


@pytest.mark.parametrize(
    "value",
    [
        "SRID=3857;POINT(545465 6867304)",
        "srid=3857; POINT(545465 6867304)",
        "0101000020110F00000000000092A5204100000000F6315A41",
        "0020000001 00000F11 4120A59200000000 415A31F600000000".replace(" ", ""),
    ],
)
async def test_extended_wkt_and_wkb_say_their_system(pipeline: Pipeline, tmp_path: Path, value: str) -> None:
    """Their SRID counts as recorded, so the request need not name it."""
    done = await pipeline.to("GeoJson", table(tmp_path / "a.csv", f"id,geom\n1,{value}\n"))
    assert [pytest.approx([4.9, 52.37], abs=5e-3)] == places(done)


ATTACHED = {
    "PointZ (1 2 3)": "POINT Z (1 2 3)",
    "POINTZM(1 2 3 4)": "POINT ZM (1 2 3 4)",
    "SRID=4326;pointz (1 2 3)": "POINT Z (1 2 3)",
    "PointM (1 2 3)": "POINT M (1 2 3)",
    "LineStringZ (0 0 1, 1 1 2)": "LINESTRING Z (0 0 1,1 1 2)",
    "GeometryCollection (PointZ (1 2 3), PolygonZ ((0 0 1, 1 0 1, 1 1 1, 0 0 1)))": "GEOMETRYCOLLECTION Z ("
    "POINT Z (1 2 3),POLYGON Z ((0 0 1,1 0 1,1 1 1,0 0 1)))",
}


@pytest.mark.parametrize("name", ["a.csv", "a.wkt", "a.xlsx"])
async def test_a_z_may_be_attached_to_the_name_of_a_type(either: Pipeline, tmp_path: Path, name: str) -> None:
    """As in the WKT of QGIS and SpatiaLite, also within a collection; other texts in the column stay as they are."""
    quoted = [f'"{text}"' for text in (*ATTACHED, "QuartZ (see below)")]
    path = table(tmp_path / "a.csv", "geom,id\n" + "".join(f"{text},1\n" for text in quoted))
    if name == "a.xlsx":
        path = (await either.to("Xlsx", path, wkt_field="id", source_epsg=4326)).path
    elif name == "a.wkt":
        path = table(tmp_path / name, "".join(f"{text}\n" for text in ATTACHED))
    done = await either.to("Wkt" if name != "a.wkt" else "Csv", path, source_epsg=4326)
    lines = done.path.read_text(encoding="utf-8").replace('"', "").replace(", ", ",").splitlines()
    assert [line for line in lines if line[0] in "GPL"][: len(ATTACHED)] == list(ATTACHED.values())
    if name != "a.wkt":
        assert rows(await either.to("GeoJson", path, source_epsg=4326))[-1]["geom"] == "QuartZ (see below)"


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
async def test_an_unknown_srid_is_named_and_source_epsg_decides(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """It does not count as recorded, also in a workbook."""
    path = table(tmp_path / "a.csv", "id,geom\n1,SRID=1234;POINT(1 2)\n")
    if name == "a.xlsx":
        path = (await pipeline.to("Xlsx", path, wkt_field="id")).path
    with pytest.raises(Rejection, match=r"'EPSG:1234', which is not a known system\. Send its EPSG code as sourceEpsg"):
        await pipeline.to("GeoJson", path)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    assert places(done) == [[1, 2]]


async def test_geometries_of_several_systems_in_a_table_are_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """One system would be wrong for some of them."""
    text = "id,geom\n1,SRID=3857;POINT(545465 6867304)\n2,SRID=4326;POINT(1 2)\n"
    with pytest.raises(Rejection, match="different coordinate systems"):
        await pipeline.to("GeoJson", table(tmp_path / "a.csv", text))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.csv", ["id,geom", "1,POINT(1 2)", "2,SRID=4326;POINT(1 2)", "3,", "4,SRID=0;POINT(1 2)"]),
        ("a.wkt", ["SRID=4326;POINT(1 2)", "POINT(1 2)", "POINT Z (1 2 3)"]),
        (
            "a.csv",
            ["id,geom", "1,01010000000000000000000040000000000000F03F", "2,SRID=4326;POINT(1 2)", "3,POINT(1 2)"],
        ),
    ],
)
async def test_geometries_without_a_system_beside_others_are_told(
    either: Pipeline, tmp_path: Path, name: str, lines: list[str]
) -> None:
    """They may be in another one, but were taken for coordinates in the one that others name."""
    done = await either.to("GeoPackage", table(tmp_path / name, "\n".join([*lines, ""])))
    column = "wkt" if name == "a.wkt" else "geom"
    assert [warning.partition(" were")[0] for warning in done.output.warnings] == [
        f"Geometries without a coordinate system (SRID) beside others that name one (2 values of {column!r})"
    ]


async def test_repeated_headers_and_surplus_cells_are_kept_and_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """No column is lost, and a warning lists the renamed ones."""
    done = await pipeline.to("GeoJson", table(tmp_path / "a.csv", "name,name,x\na,b,1\nc,d,2,e\n"))
    assert rows(done)[1] == {"name": "c", "name_2": "d", "x": 2, "field_4": "e"}
    assert any("'name' became 'name_2'" in warning for warning in done.output.warnings)


async def test_further_coordinates_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """The first and plainest of two pairs is used."""
    path = table(tmp_path / "a.csv", "start_lat,start_lon,end_lat,end_lon\n1,2,3,4\n")
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    assert places(done) == [[2, 1]]
    assert any("'end_lon' and 'end_lat' could be coordinates" in warning for warning in done.output.warnings)


@pytest.mark.parametrize(
    "target",
    ["Shapefile", "GeoPackage", "Gml", "FlatGeobuf", "Dxf", "MapInfo", "Xlsx", "SpatiaLite", "GeoParquet",
     "OpenFileGdb", "Wkt"],
)  # fmt: skip
async def test_coordinates_of_no_system_are_kept_where_asked(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """Unchanged, and read back without a system; the refusal without the field names both remedies."""
    path = table(tmp_path / "a.csv", "name,x,y\na,1000.5,2000.25\nb,-5,7000000\n")
    with pytest.raises(Rejection, match=r"sourceEpsg.*keepCoordinates=true"):
        await pipeline.to(target, path)
    done = await pipeline.to(target, path, keep_coordinates=True)
    assert done.output.output_epsg is None
    assert any("as they are" in warning for warning in done.output.warnings)
    if done.plan.target.reading is None:
        return
    with pytest.raises(Rejection, match="does not record the coordinate system"):
        await pipeline.to("Csv", done.path)
    back = await pipeline.to("Csv", done.path, keep_coordinates=True)
    lines = back.path.read_text().splitlines()
    assert any("1000.5" in line and line.index("1000.5") < line.index("2000.25") for line in lines)


async def test_coordinates_of_no_system_cannot_be_kept_in_degrees(pipeline: Pipeline, tmp_path: Path) -> None:
    """GeoJSON would declare them to be longitude and latitude."""
    path = table(tmp_path / "a.csv", "name,x,y\na,1000.5,2000.25\n")
    with pytest.raises(Rejection, match="always in EPSG:4326"):
        await pipeline.to("GeoJson", path, keep_coordinates=True)


async def test_fractions_of_milliseconds_in_a_table_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Times keep three digits of a second; a column that is text keeps all."""
    path = tmp_path / "a.csv"
    first = "1,1,2,2024-01-02 03:04:05.123456+00,2024-01-02T03:04:05.123456\n"
    path.write_text(f"id,x,y,at,text\n{first}2,1,2,2024-01-02 03:04:05.120000,soon\n")
    done = await either.to("GeoJson", path, source_epsg=4326)
    assert [words for words in done.output.warnings if words.startswith("1 value of 'at' lost digits")]


@pytest.mark.parametrize("target", ["Xlsx", "Ods"])
@pytest.mark.parametrize("names", ["Field1,Field2", "Field1", "Field2,Field1", "field1,field2"])
async def test_a_workbook_has_a_header_whatever_its_columns_are_called(
    either: Pipeline, tmp_path: Path, target: str, names: str
) -> None:
    """The drivers write none of the names that they would give to columns without one."""
    values = names.translate(str.maketrans("Fieldf", "abcdea"))
    path = table(tmp_path / "a.csv", f"{names}\n{values}\n{values}\n")
    written = await either.to(target, path)
    assert (written.output.warnings == ()) == (not names.startswith("Field1"))
    back = await either.to("Csv", written.path)
    names = names.replace("Field1", "Field1_") if names.startswith("Field1") else names
    assert back.path.read_text() == f"{names}\n{values}\n{values}\n"


@pytest.mark.parametrize("separator", [",", "|"])
async def test_quotation_marks_in_a_header_are_replaced_and_told(
    either: Pipeline, tmp_path: Path, separator: str
) -> None:
    """The driver leaves them out. Columns of coordinates may have them: they can be asked for by their names."""
    header = ('"Lon ""deg"""', "Lat", '"5"" pipe"', "5_ pipe", '"a ""b"""')
    path = table(tmp_path / "a.csv", f"{separator.join(header)}\n{separator.join('12345')}\n")
    with pytest.raises(Rejection, match=r"no such columns: .* Its columns are 'Lon _deg_'"):
        await either.to("GeoJson", path, x_field="no", y_field="lat")
    await either.to("GeoJson", path, source_epsg=4326, x_field="Lon _deg_", y_field="lat")
    done = await either.to("GeoJson", path, source_epsg=4326, x_field='Lon "deg"', y_field="lat")
    assert places(done) == [[1, 2]]
    assert rows(done) == [{"5_ pipe": 3, "5_ pipe_2": 4, "a _b_": 5}]
    (told,) = done.output.warnings
    assert told == (
        "Columns were renamed because their names are repeated, have line ends or quotation marks, or begin like those "
        "of geometries in WKT: '5\" pipe' became '5_ pipe', '5_ pipe' became '5_ pipe_2', 'a \"b\"' became 'a _b_'."
    )


@pytest.mark.parametrize(
    ("name", "geometries", "renamed"),
    [
        ("WKT", "", "WKT_"),
        ("_wktA", "", "wktA_"),
        ("Wkt", "geom", "Wkt_"),
        ("_WKT2", "geom", "WKT2_"),
        ("WKT", "lon,lat", "WKT"),
        ("wkts", "", "wkts"),
    ],
)
async def test_texts_in_columns_named_like_geometries_are_kept(
    either: Pipeline, tmp_path: Path, name: str, geometries: str, renamed: str
) -> None:
    """The driver takes them for geometries, whatever column it was told to read them from."""
    place = {"": "", "geom": "POINT (1 2),", "lon,lat": "1,2,"}[geometries]
    columns = f"{geometries},{name}" if geometries else name
    path = table(tmp_path / "a.csv", f"{columns},b\n{place}POINT (5 6) or so,7\n{place},8\n{place}x,9\n{place}y,9\n")
    done = await either.to("GeoJson", path, source_epsg=4326 if place else None)
    assert [row[renamed] for row in rows(done)] == ["POINT (5 6) or so", None, "x", "y"]
    assert any(f"{name!r} became {renamed!r}" in told for told in done.output.warnings) == (name != renamed)
    done = await either.to("GeoJson", table(path, f"{columns},b\n{place},7\n"), source_epsg=4326 if place else None)
    assert rows(done) == [{renamed: None, "b": 7}], "a column without values vanished"


@pytest.mark.parametrize("header", ["WKT,lon,lat", "lon,WKT,lat", "lat,_wktA,lon"])
async def test_texts_before_coordinates_in_columns_named_like_geometries_are_kept(
    either: Pipeline, tmp_path: Path, header: str
) -> None:
    """The driver took them for geometries, and left the coordinates out."""
    values = {"lon": "1.5", "lat": "2.5"}
    lines = [header, *(",".join(values.get(name, text) for name in header.split(",")) for text in ("oak", "", "ash"))]
    done = await either.to("GeoJson", table(tmp_path / "a.csv", "\n".join(lines)), source_epsg=4326)
    (renamed,) = [f"{name.lstrip('_')}_" for name in header.split(",") if name not in values]
    assert rows(done) == [{renamed: "oak"}, {renamed: None}, {renamed: "ash"}]
    assert places(done) == [[1.5, 2.5]] * 3


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
async def test_byte_order_marks_within_a_csv_are_kept(either: Pipeline, tmp_path: Path, delimiter: str) -> None:
    """Those before the table are no part of it; the driver would leave out one at the beginning of each row, too."""
    lines = ("\ufeff\ufeffid,b", "\ufeffx,1", "\ufeff,2", "y,\ufeff3", '"\ufeffz ""q""",4')
    path = table(tmp_path / "a.csv", "\n".join(lines).replace(",", delimiter))
    done = await either.to("GeoJson", path)
    assert [tuple(row.items()) for row in rows(done)] == [
        (("id", "\ufeffx"), ("b", "1")),
        (("id", "\ufeff"), ("b", "2")),
        (("id", "y"), ("b", "\ufeff3")),
        (("id", '\ufeffz "q"'), ("b", "4")),
    ]
    alone = await either.to("GeoJson", table(tmp_path / "b.csv", "\ufeffid\n\ufeffx\ny\n"))
    assert rows(alone) == [{"id": "\ufeffx"}, {"id": "y"}]
    declared = await either.to("GeoJson", table(tmp_path / "c.csv", "\ufeff\ufeffsep=|\na|b\n1|2\n"))
    assert rows(declared) == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("extension", ["xlsx", "ods"])
async def test_quotation_marks_in_names_of_a_workbook_are_replaced_and_told(
    either: Pipeline, tmp_path: Path, extension: str
) -> None:
    """As in a CSV file, because workbooks are read by way of one."""
    made = await either.to(extension, table(tmp_path / "a.csv", "x,y,5@ pipe\n1,2,3\n"), source_epsg=4326)
    path = tmp_path / f"b.{extension}"
    with zipfile.ZipFile(made.path) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"5@", b"5&quot;"))
    done = await either.to("GeoJson", path, source_epsg=4326)
    assert rows(done) == [{"5_ pipe": 3}]
    assert any("'5\" pipe' became '5_ pipe'" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
async def test_quotation_marks_within_cells_are_kept(either: Pipeline, tmp_path: Path, separator: str) -> None:
    """GDAL 3.6 takes one in a cell that does not begin with it for the beginning of a text, which may hold lines."""
    rest = ['1@2@5" pipe@7~5', '1@2@3"x4" ""@8~5', '1@2@"a ""b"""@9~5']
    text = "\n".join(["x@y@size@n", *rest]).replace("@", separator).replace("~", "," if separator == ";" else ".")
    done = await either.to("GeoJson", table(tmp_path / "a.csv", text), source_epsg=4326)
    assert rows(done) == [{"size": '5" pipe', "n": 7.5}, {"size": '3"x4" ""', "n": 8.5}, {"size": 'a "b"', "n": 9.5}]
    assert done.output.warnings == ()


GOING_ON = {
    "POINT (1 2) POINT (3 4)": True,
    "POINT (1 2); point (3 4)": True,
    "POINT (1 2), POINT (3 4)": True,
    "POINT (1 2) /* here */": True,
    "GEOMETRYCOLLECTION (POINT (1 2)) POINT (3 4)": True,
    "POINT (1 2);": False,
    "MULTIPOINT ((1 2), EMPTY, (3 4))": False,
    "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))": False,
    "GEOMETRYCOLLECTION (POINT (1 2), POLYGON EMPTY, LINESTRING (1 2, 3 4))": False,
    "MULTICURVE ((0 0, 1 1), CIRCULARSTRING (1 1, 2 2, 3 1))": False,
}
"""Geometries, and whether something follows them."""


@pytest.mark.parametrize("name", ["a.wkt", "a.csv"])
async def test_what_follows_a_geometry_in_its_cell_is_told(either: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver reads the first one and says nothing."""
    for value, goes_on in GOING_ON.items():
        path = tmp_path / name
        path.write_text(f"{value}\n" if name == "a.wkt" else f'n,wkt\n1,"{value}"\n2,"POINT (5 6)"\n')
        done = await either.to("GeoPackage", path, source_epsg=4326)
        told = [warning for warning in done.output.warnings if "only the first geometry was read" in warning]
        assert bool(told) == goes_on, (value, done.output.warnings)


async def test_a_first_line_that_is_no_geometry_after_all_is_no_header(pipeline: Pipeline, tmp_path: Path) -> None:
    """It vanished without a word."""
    path = tmp_path / "a.wkt"
    path.write_text("POINT(1,2)\nPOINT (3 4)\n")
    done = await pipeline.to("Csv", path, source_epsg=4326)
    assert "POINT(1,2)" in done.path.read_text()
    assert any("in 1 row of 'a' could not be read, first in row 1" in told for told in done.output.warnings)


async def test_geometries_in_wkt_may_span_lines(either: Pipeline, tmp_path: Path) -> None:
    """As programs that break long lines write them; the type may have a line of its own."""
    path = tmp_path / "a.wkt"
    path.write_text("POINT (3\n\t4)\n\nPOINT EMPTY\nLINESTRING\n(\n    1 2,\r\n    5 6\n)\nPOINT (7 8)\n")
    found = readers.geojson((await either.to("GeoJson", path, source_epsg=4326)).path)
    assert [row["geometry"] and row["geometry"]["coordinates"] for row in found] == [  # type: ignore[index]  # JSON is untyped
        [3, 4],
        None,
        [[1, 2], [5, 6]],
        [7, 8],
    ]


@pytest.mark.parametrize("epsg", [None, 4326])
async def test_a_file_of_wkt_without_any_geometry_is_refused(
    either: Pipeline, tmp_path: Path, epsg: int | None
) -> None:
    """Such as one of a coordinate system, or with names before its geometries: it became a table of texts."""
    for text in ('GEOGCS["WGS 84",UNIT["degree",0.0174532925199433]]\n', "A;LINESTRING (1 2, 3 4)\nB;POINT (1 2)\n"):
        (tmp_path / "a.wkt").write_text(text)
        with pytest.raises(Rejection, match="No line of the file begins with a geometry in WKT"):
            await either.to("GeoPackage", tmp_path / "a.wkt", source_epsg=epsg)


@pytest.mark.parametrize("name", ["a.csv", "a.gml"])
async def test_names_that_are_longer_in_all_than_can_be_planned_are_refused(
    either: Pipeline, tmp_path: Path, name: str
) -> None:
    """What is done about names is done in the event loop, and a header may have megabytes."""
    names = [f"n{number}" + "x" * 4_000 for number in range(MAX_NAMES_CHARACTERS // 4_000)]
    cells = "".join(f"<{column}>1</{column}>" for column in names)
    texts = {"a.csv": f"{','.join(names)}\n{','.join('1' * len(names))}\n", "a.gml": GML.format(cells)}
    with pytest.raises(Rejection, match="names of the columns are too long"):
        await either.to("GeoPackage", table(tmp_path / name, texts[name]))


async def test_geometries_over_several_lines_are_read_without_a_warning(either: Pipeline, tmp_path: Path) -> None:
    """Their carriage returns, which no result holds, were told as lost; those of other texts are."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,wkt\r\n1,"POINT (1\r\n 2)"\r\n2,"LINESTRING (1 2,\r\n3 4)"\r\n')
    done = await either.to("GeoJson", path, source_epsg=4326)
    shapes = [{"type": "Point", "coordinates": [1, 2]}, {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}]
    assert [feature["geometry"] for feature in readers.geojson(done.path)] == shapes
    assert done.output.warnings == ()


@pytest.mark.parametrize("number", ["1e400", "-1e400", "nan", "inf"])
@pytest.mark.parametrize(
    "form", ["n,wkt\n1,POINT (1 2)\n2,POINT ({} 3)\n3,POINT (4 5)\n", "n,x,y\n1,1,2\n2,{},3\n3,4,5\n"]
)
async def test_coordinates_that_are_no_finite_numbers_are_told_with_their_row(
    either: Pipeline, tmp_path: Path, form: str, number: str
) -> None:
    """The file was refused for those that are too large, and its message did not say which."""
    path = tmp_path / "a.csv"
    path.write_text(form.format(number))
    done = await either.to("GeoJson", path, source_epsg=4326)
    first, second, third = (feature["geometry"] for feature in readers.geojson(done.path))
    assert (first, second, third) == (geometry("Point", [1, 2]), None, geometry("Point", [4, 5]))
    (told,) = done.output.warnings
    assert "first in row 2" in told or told.endswith("The first is feature 2.")
