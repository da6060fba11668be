"""KML with more features in its outermost element, or geometries in a feature, than may be there."""

import zipfile
from itertools import product
from pathlib import Path

import pytest

from service.formats.kml_features import LONGEST_TAG, in_one_document
from service.formats.left_out import PIECE as CHUNK
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

KML = '<?xml version="1.0"?>\n<kml xmlns="http://www.opengis.net/kml/2.2" >{}</kml >\n'
PLACE = "<Placemark><name>{}</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
A, B, C = map(PLACE.format, "abc")
SEVERAL = {
    f"{A}\n{B}{C}": 3,
    f"<Document>{A}</Document><Document>{B}{C}</Document>": 2,
    f"<Document><Folder>{A}</Folder></Document>{B}{C}": 3,
    f"<Folder id='f'>{A}{B}</Folder><Folder>{C}</Folder>": 2,
    f"<NetworkLinkControl/><Folder/><!-- <Folder> --><Folder>{A}{B}<![CDATA[</Folder>]]>{C}</Folder>": 2,
}
"""What the outermost element holds, and how many features that is."""
ONE = (
    A,
    "<Document>" + A + B + "</Document>",
    f"<Document><Document>{A}</Document><Document>{B}</Document></Document>",
    f"<!-- <Document> --><Document><!-- </Document> -->{A}<name><![CDATA[</Document>]]></name></Document>",
    f"<NetworkLinkControl><Update><Create><Document>{A}</Document></Create></Update></NetworkLinkControl>{B}",
    f"<Folder>{A}<Folder>{B}",
)
"""What is as it should be, or only the driver understands."""
TOLD = "The outermost element holds {} features, where KML allows one; they were read as if they were in a Document."
CRAFTED = (b"<", b"<!--", b"<Folder>", b"<Folder ", b"</Folder>", b"-->", b"<kml ", b"</kml> ", b"</Document> ", b"x")


@pytest.mark.parametrize(("content", "is_packed"), [*product(SEVERAL, [True, False])])
async def test_every_feature_is_read_where_one_may_be(
    pipeline: Pipeline, tmp_path: Path, content: str, *, is_packed: bool
) -> None:
    """The driver alone reads the last; a warning says that the file is not as it should be."""
    path = tmp_path / ("a.kmz" if is_packed else "a.kml")
    if is_packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("doc.kml", KML.format(content))
    else:
        path.write_text(KML.format(content), encoding="utf-8")
    done = await pipeline.to("GeoPackage", path)
    assert sorted(str(row["Name"]) for rows in readers.geopackage(done.path).values() for row in rows) == [
        "a",
        "b",
        "c",
    ]
    assert TOLD.format(SEVERAL[content]) in done.output.warnings


@pytest.mark.parametrize("content", ONE)
def test_a_file_with_one_feature_in_its_outermost_element_stays_as_it_is(tmp_path: Path, content: str) -> None:
    """Whatever that feature holds, and tags in comments and texts are none."""
    path = tmp_path / "a.kml"
    path.write_text(KML.format(content), encoding="utf-8")
    assert in_one_document(path, tmp_path / "new.kml") == (path, "")


@pytest.mark.parametrize("before", [0, *range(CHUNK - 60, CHUNK + 1, 3)])
def test_features_are_counted_wherever_they_begin(tmp_path: Path, before: int) -> None:
    """Also in two of the pieces in which a file is read."""
    path, new = tmp_path / "a.kml", tmp_path / "new.kml"
    path.write_text(KML.format(" " * before + f"<Folder>{A}</Folder>{B}"), encoding="utf-8")
    assert in_one_document(path, new) == (new, TOLD.format(2))
    assert new.read_text("utf-8") == KML.format("<Document>" + " " * before + f"<Folder>{A}</Folder>{B}</Document>")


@pytest.mark.parametrize("before", range(CHUNK - LONGEST_TAG - 8, CHUNK - LONGEST_TAG))
def test_comments_end_wherever_a_piece_does(tmp_path: Path, before: int) -> None:
    """Also if what follows has no tags for long."""
    path, new = tmp_path / "a.kml", tmp_path / "new.kml"
    blanks = " " * 2 * LONGEST_TAG
    path.write_text(KML.format(f"<!--{'x' * before}-->{blanks}{A}{B}"), encoding="utf-8")
    assert in_one_document(path, new) == (new, TOLD.format(2))


@pytest.mark.parametrize("part", CRAFTED)
def test_a_crafted_file_is_read_once(tmp_path: Path, part: bytes) -> None:
    """A search that began anew at every byte would stop the service."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"<kml><Document>" + part * (3 * CHUNK // len(part)) + b"</Document></kml>")
    assert in_one_document(path, tmp_path / "new.kml") == (path, "")


async def test_of_several_geometries_in_a_feature_the_last_is_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """A warning says so."""
    path = tmp_path / "a.kml"
    line = "<LineString><coordinates>1,2 3,4</coordinates></LineString></Placemark>"
    path.write_text(KML.format(A.replace("</Placemark>", line)), encoding="utf-8")
    done = await pipeline.to("GeoJson", path)
    (row,) = readers.geojson(done.path)
    assert row["geometry"] == {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}
    told = "Features with several geometries outside of a MultiGeometry (1): only the last of each is read."
    assert told in done.output.warnings
