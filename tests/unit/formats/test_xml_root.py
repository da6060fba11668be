"""KML and GPX without their outermost element are refused with what is missing."""

from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.detect import detect

KML, GPX = (
    '<kml xmlns="http://www.opengis.net/kml/2.2">',
    '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">',
)
MISSING = {
    ("a.kml", "<Folder><Placemark/></Folder>"): ("<Folder>", KML),
    ("a.kml", '<?xml version="1.0"?>\n<!-- a - comment -->\n<Placemark id="a"></Placemark>'): ("<Placemark>", KML),
    ("a.kml", "\ufeff<!DOCTYPE Document>\n<k:Document><k:Placemark/></k:Document>"): ("<Document>", KML),
    ("a.gpx", "<trk><trkseg/></trk>"): ("<trk>", GPX),
}
PRESENT = {
    "a.kml": [
        "<kml><Placemark/></kml>",
        '<?xml version="1.0"?><!-- <Folder> --><k:kml xmlns:k="a"><k:Placemark/></k:kml>',
        "<kml/>",
        "Placemark",
        "<!DOCTYPE kml [<!ENTITY a 'b'>]><kml><Placemark/></kml>",
        "<!--" + " a" * 10_000 + "--><Folder><Placemark/></Folder>",
    ],
    "a.gpx": ["<gpx version='1.1'><wpt lat='1' lon='2'/></gpx>"],
    "a.gml": ["<a:Any xmlns:a='a'/>"],
}
"""Files that begin as they should, or with what only the driver examines."""


@pytest.mark.parametrize(("name", "text"), MISSING)
def test_the_element_that_is_missing_is_named(tmp_path: Path, name: str, text: str) -> None:
    """With what to write, and where."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found, tag = MISSING[(name, text)]
    root = tag.split(maxsplit=1)[0]
    with pytest.raises(Rejection) as refused:
        detect(path, name, tmp_path / "unpacked")
    assert f"begins with {found} instead of {root}>." in str(refused.value)
    assert f"Put {tag} before it and </{root[1:]}> at the end." in str(refused.value)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in PRESENT.items() for text in texts])
def test_other_files_are_left_to_the_driver(tmp_path: Path, name: str, text: str) -> None:
    """Also those whose first element is not found at their beginning."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert detect(path, name, tmp_path / "unpacked").path == path
