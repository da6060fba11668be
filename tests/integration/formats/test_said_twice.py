"""What a file says that its driver passes over without a word, by a few bytes of its text."""

import zipfile
from pathlib import Path

import pytest

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
TWICE = (
    "Elements that a point, route or track has more than once ({}), such as a second name, were left out: the last one "
    "is read."
)
XDATA = "Data that other programs added to entities (XDATA, 1) was left out."
CODES = "Characters that texts hold as codes (2), such as %%065 or \\M+1826B, stayed codes."
STACKED = "Fractions and other stacked texts (1) lost what is between their parts: 1/2 became 12."
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
    found = {warning for warning in done.output.warnings if not warning.startswith("Empty elements")}
    assert found == told


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
