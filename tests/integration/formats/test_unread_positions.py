"""Coordinates in XML that are not numbers: the drivers read what begins like one, and 0 for the rest."""

from pathlib import Path

import pytest

from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACEMARK = "<Placemark><name>{name}</name><LineString><coordinates>{text}</coordinates></LineString></Placemark>"
GPX = '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="2"/>{}</gpx>'
GML = (
    '<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">'
    '<gml:featureMember><ogr:t><ogr:g><gml:LineString srsName="EPSG:4326">{}</gml:LineString></ogr:g><ogr:a>1</ogr:a>'
    "</ogr:t></gml:featureMember></ogr:FeatureCollection>"
)
POS_LIST = "<gml:posList>{}</gml:posList>"
GOOD = {
    "kml": ("1,2 3,4", "\n 1,2,0\n3,4,-.5\n", "1, 2, 3\t+4E0,-5e-1,6", "1,2 3,4,", " "),
    "gpx": ('<wpt lat="-1.5" lon="+2"/>', "<wpt lon = '2e0' lat=' .5 '><ele>1</ele></wpt>"),
    "gml": (POS_LIST.format("1 2 3e0 -4.E-1"), '<gml:coordinates decimal="." cs="," ts=" ">1,2 3,4</gml:coordinates>'),
}
BAD = {
    "kml": ("1;2 3;4", "1,2; 3,4; 5,6", "1,2 x,y 3,4", "52°30,13°24", "1 2 3 4", "1,5,2,5 3,5,4,5", "1,2, 3,4, 5,6"),
    "gpx": (
        '<wpt lat="52,5" lon="13,4"/>',
        '<wpt lon="13"/>',
        '<wpt lat="" lon="13"/>',
        '<trk><trkseg><trkpt lat="x" lon="1"/><trkpt lat="2" lon="2"/></trkseg></trk>',
        '<rte><rtept lat="1" lon="2W"/><rtept lat="2" lon="2"/></rte>',
    ),
    "gml": (POS_LIST.format("1 2 x y"), "<gml:coordinates>1,2 52°,4</gml:coordinates>"),
}
TOLD = {
    "kml": "Coordinates of geometries (1) that are not numbers in the form",
    "gpx": "(1) whose lat or lon is missing or no number",
    "gml": "Coordinates of geometries (1) that are not numbers",
}
CASES = [
    (kind, text, is_bad) for is_bad, texts in ((False, GOOD), (True, BAD)) for kind in texts for text in texts[kind]
]


def _document(kind: str, text: str) -> str:
    if kind == "kml":
        return KML.format(PLACEMARK.format(name="a", text="5,6 7,8") + PLACEMARK.format(name="b", text=text))
    return {"gpx": GPX, "gml": GML}[kind].format(text)


@pytest.mark.parametrize(("kind", "text", "is_bad"), CASES)
async def test_positions_that_are_no_numbers_are_told(
    pipeline: Pipeline, tmp_path: Path, kind: str, text: str, *, is_bad: bool
) -> None:
    """Once, with their number; numbers in all their notations are not."""
    path = tmp_path / f"a.{kind}"
    path.write_text(_document(kind, text), encoding="utf-8")
    layer = {"kml": None, "gml": None, "gpx": next((name for tag, name in LAYERS.items() if tag in text), None)}[kind]
    done = await pipeline.to("GeoPackage", path, layer=layer)
    assert sum(TOLD[kind] in warning for warning in done.output.warnings) == is_bad, done.output.warnings


LAYERS = {"<trk>": "tracks", "<rte>": "routes"}
"""The layers of GPX, by what their features begin with."""


@pytest.mark.parametrize("bad", [0, 1, 500, 999])
async def test_a_position_that_is_no_number_is_found_among_features_like_it(
    converters: Converters, tmp_path: Path, bad: int
) -> None:
    """Features of a file that look like the first one are not examined one by one, except for their coordinates."""
    rows = [
        PLACEMARK.format(name=f"n{row}", text="1;2 3;4" if row == bad else f"{row / 10},2 3,4") for row in range(1000)
    ]
    path = tmp_path / "a.kml"
    path.write_text(KML.format("".join(rows)), encoding="utf-8")
    done = await Pipeline(converters).to("GeoPackage", path)
    assert sum(TOLD["kml"] in warning for warning in done.output.warnings) == 1, done.output.warnings
