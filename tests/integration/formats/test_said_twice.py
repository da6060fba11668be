"""What a file says that its driver passes over without a word, by a few bytes of its text."""

import json
import zipfile
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats.pipeline import Pipeline

GPX = '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1" xmlns:e="http://e.example">{}</gpx>'
POINT = '<wpt lat="50" lon="9">{}</wpt>'
LINE = (
    '<trk>{}<trkseg><trkpt lat="1" lon="2"><ele>1</ele></trkpt><trkpt lat="2" lon="2"><ele>1</ele></trkpt></trkseg>'
    "</trk>"
)
DXF = "0\nSECTION\n2\nENTITIES\n{}0\nENDSEC\n0\nEOF\n"
DOT = "0\nPOINT\n8\n0\n10\n1\n20\n2\n30\n0\n"
TEXT = "0\n{}\n8\n0\n10\n1\n20\n2\n30\n0\n40\n1\n1\n{}\n"
KML = (
    '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Folder>{}<Placemark><name>a</name>{}'
    "<Point><coordinates>1,2</coordinates></Point></Placemark></Folder></Document></kml>"
)
DATA = '<ExtendedData><Data name="d">{}<value>v</value></Data></ExtendedData>'
OLD = f"<GeometryCollection>{'<Point><coordinates>3,4</coordinates></Point>' * 2}</GeometryCollection>"
TWICE = (
    "Elements that a point, route or track has more than once ({}), such as a second name, were left out: the last one "
    "is read."
)
UNDEFINED = (
    "Elements that GPX 1.1 does not define were left out of 1 of the points, routes and tracks: only those within "
    "extensions are read."
)
XDATA = "Data that other programs added to entities (XDATA, 1) was left out."
CODES = "Character codes in texts (2), such as %%065 or \\M+1826B, were not decoded."
STACKED = "Fractions and other stacked texts (1) lost what is between their parts: 1/2 became 12."
GML = (
    '<f:FeatureCollection xmlns:f="http://f" xmlns:gml="http://www.opengis.net/gml/3.2"><gml:featureMember><f:a>'
    '<gml:boundedBy><gml:Envelope srsName="EPSG:4326"><gml:lowerCorner>1 2</gml:lowerCorner><gml:upperCorner>1 2'
    "</gml:upperCorner></gml:Envelope></gml:boundedBy><f:n>1</f:n><f:g>{}</f:g></f:a></gml:featureMember>"
    "</f:FeatureCollection>"
)
BOX = (
    '<gml:Envelope srsName="EPSG:4326"><gml:lowerCorner>1 2</gml:lowerCorner><gml:upperCorner>3 4</gml:upperCorner>'
    "</gml:Envelope>"
)
ESRI = (
    '{{"geometryType": "esriGeometryPoint", "spatialReference": {{"wkid": 4326}}{}, "fields": [{{"name": "k", "type": '
    '"esriFieldTypeInteger", {}}}], "features": [{{"attributes": {{"k": 1}}, "geometry": {{"x": 1, "y": 2}}}}]}}'
)
TITLES = "Titles of columns (aliases, 1) were left out; the columns keep their names."
BY_NAME = "Titles of columns (fieldAliases) were left out; the columns keep their names."
STYLES = "Styles (symbols and drawingInfo, {}) were left out."
CODED = "Lists of what codes in columns stand for (1), such as domains, were left out; the columns keep their codes."
EXTENSIONS = "Extensions of segments of tracks, and of the whole file ({}), were left out."
MORE = "<extensions><e:a>x</e:a></extensions>"
FILES = {
    "names": (
        "a.gpx",
        GPX.format(POINT.format("<name>a</name><desc>c</desc><name>b</name><name>d</name>")),
        {TWICE.format(2)},
    ),
    "names of a track": ("a.gpx", GPX.format(LINE.format("<name>a</name><name>b</name>")), {TWICE.format(1)}),
    "values": (
        "a.gpx",
        GPX.format(POINT.format("<extensions><e:a>x</e:a><e:b/><e:a>y</e:a></extensions>")),
        {TWICE.format(1)},
    ),
    "parts of a value": (
        "a.gpx",
        GPX.format(POINT.format("<extensions><e:a><e:b>x</e:b><e:b>y</e:b></e:a><e:c>z</e:c></extensions>")),
        {"Elements within elements of extensions (1) were not read; their columns are 0, or hold XML."},
    ),
    "extensions of a value": (
        "a.gpx",
        GPX.format(
            LINE.format('<extensions><a xmlns="http://a"><b>x</b><extensions><c>y</c></extensions></a></extensions>')
        ),
        set(),
    ),
    "an unknown element before extensions": (
        "a.gpx",
        GPX.format(LINE.format(f"<b>x</b>{MORE}")),
        {UNDEFINED},
    ),
    "one of each": (
        "a.gpx",
        GPX.format(POINT.format("<ele>1</ele><name>a</name>") * 2 + LINE.format("<name>a</name>") * 2),
        set(),
    ),
    "added data": ("a.dxf", DXF.format(DOT + "1001\nACME\n1000\nsecret\n1040\n1.5\n" + DOT), {XDATA}),
    "a text like it": ("a.dxf", DXF.format(TEXT.format("TEXT", "1001") + DOT), set()),
    "codes": ("a.dxf", DXF.format(TEXT.format("TEXT", "%%065 \\M+1826B 45%%d")), {CODES}),
    "fractions": ("a.dxf", DXF.format(TEXT.format("MTEXT", "3\\S1/2; m")), {STACKED}),
    "display names": (
        "a.kml",
        KML.format("", DATA.format("<displayName>D</displayName>")),
        {"Display names of data (1) were left out; columns have its names."},
    ),
    "data of a folder": (
        "a.kml",
        KML.format("<name>f</name>" + DATA.format(""), DATA.format("")),
        {"Data of documents and folders (1) was left out."},
    ),
    "authors and links": (
        "a.kml",
        KML.format("", '<atom:author><atom:name>me</atom:name></atom:author><atom:link href="http://a"/>').replace(
            "<kml ", '<kml xmlns:atom="http://www.w3.org/2005/Atom" '
        ),
        {"Authors and links of features (1) were left out."},
    ),
    "metadata": (
        "a.kml",
        KML.format("", '<Metadata><m xmlns="urn:a">5</m></Metadata>'),
        {"Data of features in the obsolete element Metadata (1) was left out."},
    ),
    "obsolete collections": (
        "a.kml",
        KML.format("", f"{OLD}</Placemark><Placemark>{OLD}</Placemark><Placemark>"),
        {"Geometries in the obsolete element GeometryCollection (2) were left out. Write MultiGeometry instead."},
    ),
    "extensions of a segment": (
        "a.gpx",
        GPX.format(LINE.format(MORE).replace("</trkseg>", f"{MORE}</trkseg>")),
        {EXTENSIONS.format(1)},
    ),
    "extensions of the file": (
        "a.gpx",
        GPX.format(f"<metadata>{MORE}</metadata>{POINT.format('')}{MORE}"),
        {EXTENSIONS.format(2)},
    ),
    "a box": (
        "a.gml",
        GML.format(BOX),
        {"Geometries that are boxes (Envelope or Box, 1) were left out. Write them as Polygon to keep them."},
    ),
    "bounds alone": ("a.gml", GML.format('<gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point>'), set()),
    "a title": ("a.json", ESRI.format("", '"alias": "Kind \\"of\\" road"'), {TITLES}),
    "a title in a domain": (
        "a.json",
        ESRI.format("", '"domain": {"name": "d", "codedValues": [{"name": "x", "code": 1}]}, "alias": "k"'),
        {CODED},
    ),
    "titles by name": ("a.json", ESRI.format(', "fieldAliases": {"i": "i", "k": "Kind"}', '"length": 4'), {BY_NAME}),
    "no titles by name": ("a.json", ESRI.format(', "fieldAliases": {"i": "", "k": "k"}', '"length": 4'), set()),
    "symbols": (
        "a.json",
        ESRI.format(', "drawingInfo": {"renderer": {"symbol": {"type": "esriSMS"}}}', '"alias": "k"'),
        {STYLES.format(2)},
    ),
    "regions": (
        "a.kml",
        KML.format("<Region><LatLonAltBox/></Region>", "<Region><Lod/></Region>"),
        {"Regions, in which features are shown (2), were left out."},
    ),
    "no title": ("a.json", ESRI.format(', "fieldAliases": {"k": "Kind"}', '"alias": "k"'), set()),
}
"""The name and the content of files, and what is told of them."""


@pytest.mark.parametrize("case", FILES)
async def test_what_the_driver_passes_over_is_told_with_its_count(
    pipeline: Pipeline, tmp_path: Path, case: str
) -> None:
    name, content, told = FILES[case]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    found = {warning for warning in done.output.warnings if not warning.startswith("Elements without content")}
    assert found == told


@pytest.mark.parametrize("target", ["GeoJsonSeq", "Csv"])
async def test_a_member_without_a_name_stays_in_json(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """It was told as renamed and missing, although it is there."""
    path = tmp_path / "a.geojson"
    path.write_text('{"type": "Feature", "geometry": null, "properties": {"": "x"}}')
    done = await pipeline.to(target, path)
    renamed = ("Columns were renamed: '' to 'field'.",)
    assert done.output.warnings == (() if target == "GeoJsonSeq" else renamed)
    assert "x" in done.path.read_text()


async def test_coordinates_of_a_grid_in_esri_json_are_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver takes them for those of the system."""
    path = tmp_path / "a.json"
    grid = ', "transform": {"originPosition": "upperLeft", "scale": [0.1, 0.1], "translate": [5, 5]}'
    path.write_text(ESRI.format(grid, '"alias": "k"'), encoding="utf-8")
    with pytest.raises(Rejection, match="without quantizationParameters"):
        await pipeline.to("GeoPackage", path)


@pytest.mark.parametrize("padding", [0, (1 << 20) - 500, (1 << 20) - 480])
async def test_positions_of_three_numbers_by_the_old_name_are_read(
    pipeline: Pipeline, tmp_path: Path, padding: int
) -> None:
    """The driver read them as more positions of two, elsewhere; wherever a piece of the file ends."""
    path = tmp_path / "a.gml"
    places = f'<gml:posList{" " * 40}dimension="3">0 0 5 1 1 6</gml:posList>'
    line = f'<gml:LineString srsName="EPSG:4326">{places}</gml:LineString>'
    path.write_text(GML.format(line).replace("<f:n>1", f"<f:n>{'x' * padding}"))
    done = await pipeline.to("Wkt", path)
    assert done.path.read_text() == "LINESTRING Z (0 0 5,1 1 6)\n"


ID = (
    '<gml:featureMember><f:a gml:id="{}"><f:n>1</f:n><f:g><gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos>'
    "</gml:Point></f:g></f:a></gml:featureMember>"
)


@pytest.mark.parametrize("count", [2, 12])
@pytest.mark.parametrize(("first", "step", "is_kept"), [(0, 1, False), (1, 1, False), (17, 1, True), (1, 3, True)])
async def test_ids_of_gml_are_kept_unless_they_number_features(
    either: Pipeline, tmp_path: Path, first: int, step: int, count: int, *, is_kept: bool
) -> None:
    """Servers of features make them of keys that no other column has; drivers make them of nothing."""
    ids = [f"a.{number}" for number in range(first, first + step * count, step)]
    path = tmp_path / "a.gml"
    path.write_text(
        '<f:FeatureCollection xmlns:f="http://f" xmlns:gml="http://www.opengis.net/gml/3.2">'
        + "".join(map(ID.format, ids))
        + "</f:FeatureCollection>"
    )
    done = await either.to("GeoJsonSeq", path)
    found = [json.loads(line)["properties"].get("gml_id") for line in done.path.read_text().splitlines()]
    assert found == (ids if is_kept else [None] * count)


async def test_tracks_are_read_whatever_their_prefix(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver knows them by one alone, and what is left out is found by names without any."""
    path = tmp_path / "a.kml"
    path.write_text(
        '<n:kml xmlns:n="http://www.opengis.net/kml/2.2" xmlns="http://www.google.com/kml/ext/2.2"><n:Document>'
        "<n:Placemark><n:name>a</n:name><n:address>b</n:address><Track><n:when>2020-01-01T00:00:00Z</n:when>"
        "<coord>1 2 3</coord></Track></n:Placemark></n:Document></n:kml>"
    )
    done = await pipeline.to("Csv", path)
    assert "LINESTRING Z (1 2 3)" in done.path.read_text() or "1,2,3" in done.path.read_text()
    assert "Addresses and phone numbers of features (1) were left out." in done.output.warnings


async def test_a_spline_in_gml_is_named_as_the_reason(pipeline: Pipeline, tmp_path: Path) -> None:
    """The file was called damaged."""
    path = tmp_path / "a.gml"
    spline = (
        '<gml:Curve srsName="EPSG:4326"><gml:segments><gml:BSpline><gml:posList>0 0 1 1 2 0</gml:posList></gml:BSpline>'
        "</gml:segments></gml:Curve>"
    )
    path.write_text(GML.format(spline))
    with pytest.raises(Rejection, match="a geometry that cannot be read, such as a spline"):
        await pipeline.to("GeoPackage", path)


async def test_files_beside_the_documents_of_a_kmz_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Folders are none."""
    path = tmp_path / "a.kmz"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("doc.kml", KML.format("", ""))
        packed.writestr("files/", "")
        packed.writestr("files/a.png", b"x")
        packed.writestr("files/b.png", b"x")
    (told,) = (await pipeline.to("GeoPackage", path)).output.warnings
    assert told == (
        "Files beside the documents (2, first 'files/a.png'), such as images, were left out; texts may still name them."
    )
