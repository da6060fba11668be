"""Elements get the prefixes that drivers know, and stay the same elements."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.formats.xml_prefixes import LONGEST, with_gpx_prefixes, with_kml_prefixes
from tests.support.calls import counted_calls

KML, GOOGLE, ATOM = "http://www.opengis.net/kml/2.2", "http://www.google.com/kml/ext/2.2", "http://www.w3.org/2005/Atom"
TRACK = (
    "<{k}Placemark><{k}name>a</{k}name><{g}Track><{k}when>2020</{k}when><{g}coord a='/'>1 2 3</{g}coord></{g}Track>"
    "</{k}Placemark>"
)
RENAMED = {
    "a prefix for KML": (f'<k:kml xmlns:k="{KML}" xmlns:gx="{GOOGLE}">', TRACK.format(k="k:", g="gx:"), "</k:kml >"),
    "another for tracks": (f"<kml xmlns='{KML}' xmlns:ns3 = '{GOOGLE}'>", TRACK.format(k="", g="ns3:"), "</kml>"),
    "tracks without one": (
        f'<ns2:kml xmlns="{GOOGLE}" xmlns:ns2="{KML}" xmlns:o="urn:o">',
        "<o:b/>" + TRACK.format(k="ns2:", g=""),
        "</ns2:kml>",
    ),
    "both ways": (f'<kml xmlns="{KML}" xmlns:kml="{KML}">', TRACK.format(k="", g="kml:"), "</kml>"),
    "two for one": (
        f'<a:kml xmlns:a="{KML}" xmlns:b="{KML}" xmlns:gx="{GOOGLE}">',
        TRACK.format(k="b:", g="gx:") + TRACK.format(k="a:", g="gx:"),
        "</a:kml>",
    ),
    "hidden tags": (
        f'<k:kml xmlns:k="{KML}">',
        "<k:a><![CDATA[<k:b>]]></k:a><!-- <k:c> --><k:d>" + "x" * (LONGEST + 9) + "<![CDATA[ <k:e> ]] > ]]></k:d>",
        "</k:kml>",
    ),
}
MANY = "".join(f" xmlns:a{number}='{KML}'" for number in range(25))
KEPT = {
    "usual ones": f'<kml xmlns="{KML}" xmlns:gx="{GOOGLE}" xmlns:kml="{KML}" xmlns:atom="{ATOM}"><Document/></kml>',
    "none": "<kml><Document/></kml>",
    "no document": "text",
    "a usual one for something else": f'<k:kml xmlns:k="{KML}" xmlns="urn:x"><k:Document/><x/></k:kml>',
    "dozens of them": f'<k:kml xmlns:k="{KML}"{MANY}><k:a/></k:kml>',
    "nothing but tags": f'<k:kml xmlns:k="{KML}" xmlns="{GOOGLE}">{"<" * 100_000}',
    "cut off": f'<k:kml xmlns:k="{KML}"',
}


def elements(text: str) -> list[tuple[str, str | None]]:
    return [(element.tag, element.text) for element in ET.fromstring(text).iter()]  # noqa: S314 -- ours


@pytest.mark.parametrize("case", RENAMED)
@pytest.mark.parametrize("padding", [0, (1 << 20) - 300])
def test_elements_stay_the_same_under_usual_prefixes(tmp_path: Path, case: str, padding: int) -> None:
    """Wherever a piece of the file ends."""
    start, inside, end = RENAMED[case]
    text = f"<?xml version='1.0'?>{start}{' ' * padding}{inside * 9}{end}"
    path = tmp_path / "a.kml"
    path.write_text(text)
    found, told = with_kml_prefixes(path, tmp_path / "new" / "b.kml")
    assert (found, told) == (tmp_path / "new" / "b.kml", "")
    written = found.read_text()
    assert elements(written) == elements(text)
    assert written.replace("[<k:b>]", "").count(":Track") == written.count("gx:Track")
    assert not any(f"<{prefix}:" in written for prefix in ("ns2", "ns3", "kml"))


def test_a_prefix_that_is_declared_twice_is_left_to_the_driver(tmp_path: Path) -> None:
    """It tells what is wrong; the names are written once."""
    path = tmp_path / "a.kml"
    path.write_text(f'<k:kml xmlns:k="{KML}" xmlns="{GOOGLE}" xmlns="{ATOM}"><k:Document/></k:kml>')
    found, _ = with_kml_prefixes(path, tmp_path / "b.kml")
    assert found.read_text().count(" xmlns=") == 1


@pytest.mark.parametrize("case", KEPT)
def test_files_with_usual_prefixes_are_read_as_they_are(tmp_path: Path, case: str) -> None:
    """As are those in which these mean something else."""
    path = tmp_path / "a.kml"
    path.write_text(KEPT[case])
    assert with_kml_prefixes(path, tmp_path / "b.kml") == (path, "")
    assert list(tmp_path.iterdir()) == [path]


def test_gpx_with_a_prefix_gets_none(tmp_path: Path) -> None:
    """Its driver called such a file damaged."""
    path = tmp_path / "a.gpx"
    path.write_text('<g:gpx xmlns:g="http://www.topografix.com/GPX/1/1"><g:wpt lat="1" lon="2"/></g:gpx>')
    found, _ = with_gpx_prefixes(path, tmp_path / "b.gpx")
    assert '<wpt lat="1" lon="2"/></gpx>' in found.read_text()


def test_texts_between_comments_are_changed_together(tmp_path: Path) -> None:
    """One by one, those of a small file took a third of a second in the event loop."""
    path = tmp_path / "a.kml"
    path.write_text(f'<k:kml xmlns:k="{KML}">' + "<k:a/><!---->" * 1000 + "</k:kml>")
    with counted_calls() as calls:
        found, _ = with_kml_prefixes(path, tmp_path / "b.kml")
    assert found.read_text().count("<a/><!---->") == 1000
    assert 0 < calls.c["bytes.replace"] < 100
