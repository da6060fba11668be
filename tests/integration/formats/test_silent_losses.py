"""Values and geometries that drivers leave out, or make up, without a word: a warning tells them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyogrio
import pytest

from service.errors import Rejection
from service.formats.gpx_times import with_plain_times
from service.formats.left_out import CHUNK
from service.formats.mending import LONGEST
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

KML = (
    '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>{}</Document>'
    "</kml>"
)
GOOD_PLACE = "<Placemark><Point><coordinates>1,2</coordinates></Point></Placemark>"
RING = "<LinearRing><coordinates>0,0 0,1 1,1 0,0</coordinates></LinearRing>"
MISPLACED = {
    "a ring without a boundary": f"<Polygon><extrude>0</extrude>{RING}</Polygon>",
    "positions without coordinates": "<LineString>1,2 3,4</LineString>",
    "coordinates without a geometry": "<name>c</name><coordinates>1,2</coordinates>",
}
PLACED = {
    "a ring in a boundary": f"<Polygon><extrude>0</extrude><outerBoundaryIs>{RING}</outerBoundaryIs></Polygon>",
    "a ring alone": RING,
    "a line": "<LineString><tessellate>1</tessellate>\n<coordinates>1,2 3,4</coordinates></LineString>",
    "several": f"<MultiGeometry>{RING}<Point><coordinates>1,2</coordinates></Point></MultiGeometry>",
}
ESRI_POINTS = {
    '{"x": "NaN", "y": 2}': 1,
    '{"x":null,"y":2}': 1,
    '{"x": 1}': 1,
    '{"y": 1, "spatialReference": {"wkid": 4326}}': 1,
    '{"x": -1.5, "y": 0, "z": "NaN"}': 1,
    '{"x": -1.5, "y": 0, "z": null}': 0,
    '{"x": -1.5, "y": 0, "z": 3}': 0,
    '{"y": 1, "x": 2, "spatialReference": {"wkid": 4326}}': 0,
}
TIME = "<wpt lat='1' lon='2'><time>{}</time></wpt>"
TIMES = {
    "yesterday": None,
    "2020": None,
    "2020/01/02": "2020-01-02T00:00:00",
    "2020-01": "2020-01-01T00:00:00",
    "2020-01-02T03:04": "2020-01-02T03:04:00",
    " 2020-1-2T3:4:5Z": "2020-01-02T03:04:05Z",
    "\n 2020-01-02T03:04:05Z\n ": "2020-01-02T03:04:05Z",
    "2020-01-02 03:04:05.25z": "2020-01-02T03:04:05.250Z",
    "2020/01/02 03:04:05,5 +0200": "2020-01-02T03:04:05.500+02:00",
    "2020-01-02t03:04-5": "2020-01-02T03:04:00-05:00",
}


def values(path: Path, column: str) -> list[object]:
    """The values of a column of GeoJSON."""
    features = json.loads(path.read_text(encoding="utf-8"))["features"]
    return [feature["properties"][column] for feature in features]


def kml(path: Path, *places: str) -> Path:
    path.write_text(KML.format("".join(f"<Placemark>{place}</Placemark>" for place in places) + GOOD_PLACE))
    return path


@pytest.mark.parametrize("place", [*MISPLACED, *PLACED])
async def test_coordinates_outside_of_their_elements_are_told(pipeline: Pipeline, tmp_path: Path, place: str) -> None:
    """Those in their elements are read, and nothing is told of them."""
    done = await pipeline.to("GeoJson", kml(tmp_path / "a.kml", (MISPLACED | PLACED)[place]))
    assert (readers.geojson(done.path)[0]["geometry"] is None) == (place in MISPLACED)
    told = [warning for warning in done.output.warnings if warning.startswith("Coordinates (1) were left out")]
    assert len(told) == (place in MISPLACED)


@pytest.mark.parametrize(("place", "count"), ESRI_POINTS.items())
async def test_points_of_esri_json_without_numbers_are_told(
    pipeline: Pipeline, tmp_path: Path, place: str, count: int
) -> None:
    """They have no geometry in the result."""
    path = tmp_path / "a.json"
    points = [f'{{"attributes": {{"x": 1}}, "geometry": {point}}}' for point in ('{"x": 1, "y": 2}', place)]
    path.write_text(
        '{"geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields": [{"name": "x", "type": '
        f'"esriFieldTypeInteger"}}], "features": [{", ".join(points)}]}}'
    )
    done = await pipeline.to("GeoJson", path)
    assert [feature["geometry"] is None for feature in readers.geojson(done.path)] == [False, bool(count)]
    assert [warning.startswith(f"Points ({count})") for warning in done.output.warnings] == [True] * count


@pytest.mark.parametrize(("times", "positions"), [(0, 1), (0, 2), (1, 2), (2, 2), (2, 1)])
async def test_a_track_with_more_positions_than_times_is_refused_by_its_number(
    pipeline: Pipeline, tmp_path: Path, times: int, positions: int
) -> None:
    """The driver would crash, and the message would call the file damaged; but it may have no times at all.

    A time outside of a track does not count.
    """
    time, position = "<when>2020-01-01T00:00:00Z</when>", "<gx:coord>1 2 3</gx:coord>"
    good = f"<TimeStamp>{time}</TimeStamp><gx:Track>{time * 2}{position * 2}</gx:Track>"
    path = kml(tmp_path / "a.kml", good, f"<gx:Track>{time * times}{position * positions}</gx:Track>")
    if 0 < times < positions:
        with pytest.raises(Rejection, match=r"Track 2 of the file has more positions \(gx:coord\) than times"):
            await pipeline.to("GeoJson", path)
        return
    done = await pipeline.to("GeoJson", path)
    found: list[Any] = readers.geojson(done.path)
    assert [len(row["geometry"]["coordinates"]) for row in found[:2]] == [2, positions]
    assert len(found) == 3


async def test_a_visibility_that_the_driver_makes_up_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Only of features beside others that have one; that of a folder is none of a feature."""
    shown = "<name>n</name><visibility>1</visibility><Point><coordinates>1,2</coordinates></Point>"
    done = await pipeline.to("GeoJson", kml(tmp_path / "a.kml", shown))
    assert values(done.path, "visibility") == [1, -1]
    assert done.output.warnings == ("Features without visibility (1) have -1 in its column, because others have one.",)
    folder = tmp_path / "b.kml"
    folder.write_text(KML.format(f"<Folder><name>f</name><visibility>0</visibility>{GOOD_PLACE}</Folder>"))
    assert (await pipeline.to("GeoJson", folder)).output.warnings == ()


@pytest.mark.parametrize("place", ["Point", "LineString"])
async def test_a_tessellate_that_the_driver_makes_up_is_told(pipeline: Pipeline, tmp_path: Path, place: str) -> None:
    """Only of features beside others that have one, as Google My Maps writes points and lines; rings have none."""
    line = "<LineString>{}<coordinates>1,2 3,4</coordinates></LineString>".format
    other = line("") if place == "LineString" else "<Point><coordinates>1,2</coordinates></Point>"
    done = await pipeline.to("GeoJson", kml(tmp_path / "a.kml", line("<tessellate>1</tessellate>"), other))
    assert values(done.path, "tessellate") == [1, -1, -1]
    assert done.output.warnings == (
        "Features without tessellate (2) have -1 in its column, if others of their layer have one.",
    )
    ring = "<LinearRing><tessellate>1</tessellate><coordinates>0,0 1,0 1,1 0,0</coordinates></LinearRing>"
    area = f"<Polygon><outerBoundaryIs>{ring}</outerBoundaryIs></Polygon>"
    assert (await pipeline.to("GeoJson", kml(tmp_path / "b.kml", area, other))).output.warnings == ()


@pytest.mark.parametrize(("text", "read"), TIMES.items())
async def test_times_of_gpx_are_read_however_they_are_written(
    pipeline: Pipeline, tmp_path: Path, text: str, read: str | None
) -> None:
    """Those that cannot be read are missing in the result, and told."""
    path = tmp_path / "a.gpx"
    times = (
        "<metadata><time>t</time><keywords>k</keywords></metadata>"
        + TIME.format("2020-01-02T03:04:05Z")
        + TIME.format(text)
    )
    path.write_text(f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{times}</gpx>')
    done = await pipeline.to("GeoJson", path)
    assert values(done.path, "time") == ["2020-01-02T03:04:05Z", read]
    told = [warning[:9] for warning in done.output.warnings if "metadata" not in warning]
    assert told == (["Times (1)"] if read is None else [])


@pytest.mark.parametrize(("sizes", "told"), [((3, 2), True), ((2, 3), True), ((3, 3), False), ((2, 2), False)])
async def test_lists_of_gml_without_elevations_beside_others_are_told(
    pipeline: Pipeline, tmp_path: Path, sizes: tuple[int, int], *, told: bool
) -> None:
    """In one geometry, all of whose positions have elevations in the result; other geometries stay flat."""
    texts = {2: "1 2 4 5", 3: "1 2 3 4 5 6"}
    line = '<gml:LineString><gml:posList srsDimension="{}">{}</gml:posList></gml:LineString>'
    lists = [line.format(size, texts[size]) for size in sizes]
    members = "".join(f"<gml:lineStringMember>{one}</gml:lineStringMember>" for one in lists)
    feature = "<gml:featureMember><ogr:t><ogr:g>{}</ogr:g><ogr:a>1</ogr:a></ogr:t></gml:featureMember>"
    whole = f'<gml:MultiLineString srsName="EPSG:4326">{members}</gml:MultiLineString>'
    alone = [one.replace("<gml:LineString", '<gml:LineString srsName="EPSG:4326"') for one in lists]
    path = tmp_path / "a.gml"
    path.write_text(
        '<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">'
        f"{''.join(map(feature.format, [*alone, whole]))}</ogr:FeatureCollection>"
    )
    done = await pipeline.to("GeoJson", path)
    sentence = (
        "Lists of positions of two numbers (1), beside others of three in the same geometry, got the elevation 0."
    )
    assert done.output.warnings == ((sentence,) if told else ())
    geometry = readers.geojson(done.path)[-1]["geometry"]
    assert isinstance(geometry, dict)
    assert any(position[2:] == [0] for one in geometry["coordinates"] for position in one) == told


GML_LINE = (
    "<f:member><f:a><f:g><gml:LineString srsName='urn:ogc:def:crs:EPSG::25832'{}><gml:posList{}>{}</gml:posList>"
    "</gml:LineString></f:g></f:a></f:member>"
)
GML_SPOT = (
    "<f:member><f:a><f:g><gml:Point srsName='urn:ogc:def:crs:EPSG::25832'><gml:pos>500000 2</gml:pos></gml:Point></f:g>"
    "</f:a></f:member>"
)
IN_SPACE = " srsDimension='3'"


FLAT_LIST, HIGH_LIST = "500000 2 500001 4", "500000 2 5 500001 4 5"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (GML_LINE.format("", "", FLAT_LIST), True),
        (GML_LINE.format("", " srsDimension='2'", FLAT_LIST), True),
        (GML_LINE.format("", "", FLAT_LIST) + GML_SPOT, False),
        (GML_LINE.format(IN_SPACE, "", HIGH_LIST), False),
        (GML_LINE.format("", IN_SPACE, HIGH_LIST), False),
    ],
)
async def test_lines_of_gml_that_get_elevations_as_others_of_their_layer_are_told(
    either: Pipeline, tmp_path: Path, others: str, *, told: bool
) -> None:
    """The driver does so if all geometries of the layer are of one type."""
    high = GML_LINE.format("", IN_SPACE, "500000 2 7 500001 4 7")
    path = tmp_path / "a.gml"
    path.write_text(
        "<f:FeatureCollection xmlns:f='http://f' xmlns:gml='http://www.opengis.net/gml/3.2'>"
        f"{high}{others}</f:FeatureCollection>"
    )
    done = await either.to("GeoJson", path)
    sentence = "Geometries without elevations (1) got the elevation 0 where others of their layer have some."
    assert (sentence in done.output.warnings) is told
    geometry = readers.geojson(done.path)[1]["geometry"]
    assert isinstance(geometry, dict)
    assert any(position[2:] == [0] for position in geometry["coordinates"]) is told


def test_times_of_gpx_are_written_anew_wherever_they_are(tmp_path: Path) -> None:
    """Also across the pieces in which a file is read; everything else stays as it is."""
    odd, plain = b"<time> 2020-1-2T3:4:5Z</time>", b"<time>2020-01-02T03:04:05Z</time>"
    path = tmp_path / "a.gpx"
    for before in range(CHUNK - len(odd), CHUNK + 1):
        around = b"x" * before, b"<time>yesterday</time>" + b"y" * LONGEST
        path.write_bytes(odd.join(around))
        mended, told = with_plain_times(path, tmp_path / f"{before}" / "a.gpx")
        assert mended.read_bytes() == plain.join(around)
        assert told == ""


async def test_digits_beyond_milliseconds_of_times_in_gpx_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Those of points; zeros are no digits that could be lost, and the time of the file is left out anyway."""
    points = [TIME.format(f"2020-01-02T03:04:59.{part}Z") for part in ("9999", "1230000", "5")]
    metadata = "<metadata><time>2020-01-02T03:04:05.123456Z</time></metadata>"
    path = tmp_path / "a.gpx"
    path.write_text(f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{metadata}{"".join(points)}</gpx>')
    done = await either.to("GeoJson", path)
    assert values(done.path, "time") == ["2020-01-02T03:05:00Z", "2020-01-02T03:04:59.123Z", "2020-01-02T03:04:59.500Z"]
    assert done.output.warnings == ("Times with digits beyond milliseconds (1) were rounded to these, or left out.",)


async def test_texts_of_gml_that_types_would_change_stay_texts(either: Pipeline, tmp_path: Path) -> None:
    """Dates in digits of other scripts became missing, and times lost digits, or got a sixtieth second."""
    texts = {"day": "១៤០២-០១-០២", "moment": "១៤០២-០១-០២T០១:០២:០៣", "fine": "2024-01-01T10:00:59.9999Z", "number": "1.៥"}
    others = {"time": "2024-01-01T10:00:59.123000Z"}
    columns = "".join(f"<a:{name}>{text}</a:{name}>" for name, text in (texts | others).items())
    place = '<a:g><gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point></a:g>'
    (tmp_path / "a.gml").write_text(
        '<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml"><gml:featureMember>'
        f"<a:f>{columns}{place}</a:f></gml:featureMember></a:C>",
        encoding="utf-8",
    )
    done = await either.to("GeoJson", tmp_path / "a.gml")
    (row,) = readers.geojson(done.path)
    assert row["properties"] == texts | {"time": "2024-01-01T10:00:59.123Z"}
    assert done.output.warnings == ()


TYPED = {"FlatGeobuf": "a.fgb", "ESRI Shapefile": "a.shp", "MapInfo File": "a.tab", "OpenFileGDB": "a.gdb"}
"""Drivers of files that hold numbers that are NaN."""


def with_nans(directory: Path, driver: str, name: str) -> Path:
    """A file in which numbers of the columns `c` and `name` are NaN."""
    point, none = bytes.fromhex("0101000000000000000000f03f0000000000000040"), float("nan")
    table = pa.table({"c": [1.5, none, 2.5], name: [none, 0.5, none], "e": [1.5] * 3, "geometry": [point] * 3})
    place, crs = directory / TYPED[driver], "EPSG:4326"
    pyogrio.write_arrow(table, place, driver=driver, geometry_name="geometry", geometry_type="Point", crs=crs)
    if driver == "FlatGeobuf":
        return place
    parts = sorted(part for part in directory.rglob("*") if part.is_file())
    with zipfile.ZipFile(directory / "a.zip", "w") as packed:
        for part in parts:
            packed.write(part, part.relative_to(directory))
    return directory / "a.zip"


@pytest.mark.parametrize("driver", TYPED)
@pytest.mark.parametrize("target", ["GeoPackage", "Csv", "GeoJson"])
async def test_numbers_that_are_none_are_told_to_become_missing(
    either: Pipeline, tmp_path: Path, target: str, driver: str
) -> None:
    """Drivers of typed files read them; no column of a result has them, nor has a work file."""
    name = "d d" if driver in {"FlatGeobuf", "ESRI Shapefile"} else "d"
    done = await either.to(target, with_nans(tmp_path, driver, name))
    (told,) = [warning for warning in done.output.warnings if "NaN" in warning]
    columns = f"'c', {name!r}"
    assert told == f"{done.source.format.title} holds numbers that are NaN; 3 values of {columns} became missing."
