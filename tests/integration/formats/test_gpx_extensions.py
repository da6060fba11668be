"""Extensions of GPX are read wherever they are."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.gpx_values import with_values_alone
from service.formats.left_out import CHUNK
from service.formats.mending import LONGEST
from service.formats.registry import find_output
from service.formats.text_checks import check_texts
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import line, point

START = '<?xml version="1.0"?>\n<!-- <gpx> --><gpx version="1.1" creator="a > b" xmlns:o=\'http://o\'>'
PLAIN = '<wpt lat="1" lon="9"><name>n</name></wpt>\n'
FILES = {
    "points of tracks": ("track_points", "<trk><trkseg>{0}</trkseg></trk>", "trkpt"),
    "points of routes": ("route_points", "<rte>{0}</rte>", "rtept"),
    "waypoints behind 1,000 others": ("a", PLAIN * 1000 + "{0}", "wpt"),
    "waypoints behind the second MiB": ("a", PLAIN * ((2 << 20) // len(PLAIN)) + "{0}", "wpt"),
}
"""Where the only extensions are: the layer, what is around its points, and their element."""


@pytest.mark.parametrize("where", FILES)
async def test_extensions_are_read_wherever_they_are(either: Pipeline, tmp_path: Path, where: str) -> None:
    """Drivers look for them only where some are early, and newer ones not only at points of tracks and routes."""
    layer, around, element = FILES[where]
    points = "".join(
        f'<{element} lat="1" lon="{x}"><extensions><o:speed>{x}</o:speed></extensions></{element}>' for x in (2, 3)
    )
    path = tmp_path / "a.gpx"
    path.write_text(f"{START}{around.format(points)}</gpx>")
    done = await either.to("GeoPackage", path)
    rows = readers.geopackage(done.path)[layer]
    assert [row["o_speed"] for row in rows][-2:] == [2, 3]
    assert len(rows) == points.count("<extensions>") + around.count("<wpt")


HELD = "<x:{0}><x:hr>{1}</x:hr><x:cad>7{1}</x:cad></x:{0}>"
OTHERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "a value beside them": ("<x:a>1</x:a>" + HELD.format("Ext", 2), {"x_a": 1, "x_hr": 2, "x_cad": 72}),
    "several holders": (HELD.format("Ext", 2) + "<x:More><x:t>low</x:t></x:More>", {"x_hr": 2, "x_t": "low"}),
    "a holder with a namespace": (
        '<TrackPointExtension xmlns="http://y" xmlns:x="http://x">\n<hr>80</hr>\n</TrackPointExtension>\n',
        {"hr": 80},
    ),
}
"""Extensions, and the columns that they become."""
KEPT = (
    HELD.format("One", 1) + HELD.format("Two", 2),
    "<x:E><x:p lat='1'>1</x:p></x:E>",
    "<x:E n='1'><x:p>1</x:p></x:E>",
    "<x:E><x:F><x:p>1</x:p></x:F></x:E>",
    "<x:E>a<x:p>1</x:p></x:E>",
)
"""Extensions of which values alone would be less."""


def write_track(path: Path, extensions: str) -> Path:
    """A track of two points, of which each has the extensions."""
    point = f'<trkpt lat="1" lon="{{}}"><extensions>{extensions}</extensions></trkpt>'
    points = point.format(1) + point.format(2)
    path.write_text(f"{START}<trk><trkseg>{points}</trkseg></trk></gpx>", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", OTHERS)
async def test_values_are_read_within_an_element_of_extensions(either: Pipeline, tmp_path: Path, name: str) -> None:
    """Receivers put heart rates there, which the driver alone takes for one number, 0."""
    extensions, expected = OTHERS[name]
    path = write_track(tmp_path / "a.gpx", extensions)
    done = await either.to("GeoPackage", path)
    rows = readers.geopackage(done.path)["track_points"]
    assert [{column: row[column] for column in expected} for row in rows] == [expected] * 2
    assert not any("were not read" in warning for warning in done.output.warnings)


@pytest.mark.parametrize("extensions", KEPT)
def test_extensions_of_which_more_than_values_would_be_lost_stay_as_they_are(tmp_path: Path, extensions: str) -> None:
    """Two values of one name, attributes and further levels."""
    path = write_track(tmp_path / "a.gpx", extensions)
    found, told = with_values_alone(path, tmp_path / "new" / "held.gpx")
    assert (found.read_bytes(), told) == (path.read_bytes(), "")


async def test_values_of_one_name_in_several_elements_are_not_mixed(pipeline: Pipeline, tmp_path: Path) -> None:
    """What a value is depends on the element around it: the first one found stays what the column is."""
    path = write_track(tmp_path / "a.gpx", "<x:H><x:v>80</x:v></x:H>")
    first, _, last = path.read_text(encoding="utf-8").rpartition("<x:H>")
    path.write_text(first + "<x:C>" + last.replace("</x:H>", "</x:C>"), encoding="utf-8")
    done = await pipeline.to("GeoPackage", path)
    assert [row["x_v"] for row in readers.geopackage(done.path)["track_points"]] == [80, None]
    assert any("Elements within elements of extensions (1) were not read" in told for told in done.output.warnings)


async def test_elements_of_other_namespaces_outside_of_extensions_are_told_once(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """As GPX 1.0 has them: they are not read, and no columns of theirs are 0 or hold XML."""
    path = tmp_path / "a.gpx"
    cache = '<g:cache xmlns:g="http://g"><g:name>n</g:name><g:logs><g:log><g:date>1</g:date></g:log></g:logs></g:cache>'
    path.write_text(
        '<gpx version="1.0" xmlns="http://www.topografix.com/GPX/1/0"><wpt lat="1" lon="2"><name>a</name>'
        f"{cache}</wpt></gpx>"
    )
    (told,) = (await pipeline.to("GeoPackage", path)).output.warnings
    assert told.startswith("Elements that GPX 1.1 does not define were left out of 1 of the points")


HIGH, FLAT = '<trkpt lat="1" lon="1"><ele>5</ele></trkpt>', '<trkpt lat="1" lon="2"/>'
NAMED, NAMED_HIGH = (f'<trkpt lat="1" lon="2"><name>a</name>{ele}<sym>b</sym></trkpt>' for ele in ("", "<ele>5</ele>"))
EMPTY = tuple(HIGH.replace("<ele>5</ele>", ele) + FLAT for ele in ("<ele/>", "<ele></ele>", "<ele >\n</ele >"))
"""Lines of two points without elevations."""
TRACK = "<trk><trkseg>{}</trkseg></trk>"
MIXED = {
    **{TRACK.format(points): True for points in (HIGH + FLAT, FLAT + HIGH, NAMED + HIGH, NAMED_HIGH + "\n" + NAMED)},
    TRACK.format(HIGH + HIGH + "</trkseg>\n<trkseg>" + FLAT + FLAT): True,
    f"<rte>{FLAT + FLAT + HIGH + HIGH}</rte>".replace("trkpt", "rtept"): True,
    **{TRACK.format(HIGH + empty): True for empty in EMPTY},
    **{TRACK.format(points): False for points in (HIGH + NAMED_HIGH, NAMED + FLAT, HIGH, *EMPTY)},
    TRACK.format(HIGH + HIGH) + TRACK.format(FLAT + FLAT): False,
    '<wpt lat="1" lon="1"><ele>5</ele></wpt>' + TRACK.format(FLAT + FLAT): False,
    TRACK.format(FLAT + FLAT) + '<wpt lat="1" lon="1"><ele>5</ele></wpt>': False,
    '<wpt lat="1" lon="1"/>' + TRACK.format(HIGH + HIGH): False,
}
"""Points, and whether some lack an elevation that others of their line have."""


@pytest.mark.parametrize("points", EMPTY)
async def test_empty_elevations_of_lines_are_none(either: Pipeline, tmp_path: Path, points: str) -> None:
    """The driver made them 0, and told nothing."""
    path = tmp_path / "a.gpx"
    path.write_text(f"{START}{TRACK.format(points)}</gpx>", encoding="utf-8")
    done = await either.to("GeoJson", path, layer="tracks")
    geometry = readers.geojson(done.path)[0]["geometry"]
    assert isinstance(geometry, dict)
    assert {len(position) for part in geometry["coordinates"] for position in part} == {2}


@pytest.mark.parametrize("points", MIXED)
async def test_elevations_that_points_of_lines_lack_are_told(pipeline: Pipeline, tmp_path: Path, points: str) -> None:
    """The driver makes them 0."""
    path = tmp_path / "a.gpx"
    path.write_text(f"{START}{points}</gpx>", encoding="utf-8")
    done = await pipeline.to("GeoPackage", path)
    of = "routes" if "rtept" in points else "tracks"
    told = f"Points of {of} without elevations, next to others that have them, got the elevation 0 in their lines."
    assert [warning for warning in done.output.warnings if "elevations" in warning] == [told] * MIXED[points]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [("waypoints", ""), ("Tracks", "without elevations"), ("track_points", ""), ("routes", "lat")],
)
async def test_what_only_other_layers_lose_is_not_told_of_the_layer_asked_for(
    pipeline: Pipeline, tmp_path: Path, layer: str, expected: str
) -> None:
    """Elevations are 0 in lines alone, and a point that is no number is one of waypoints, routes or tracks."""
    bad = '<rte><rtept lat="x" lon="1"/><rtept lat="2" lon="2"/></rte>'
    path = tmp_path / "a.gpx"
    path.write_text(f'{START}<wpt lat="1" lon="1"/>{bad}{TRACK.format(HIGH + FLAT)}</gpx>', encoding="utf-8")
    done = await pipeline.to("GeoPackage", path, layer=layer)
    told = [warning for warning in done.output.warnings if "elevations" in warning or "lat or lon" in warning]
    assert len(told) == bool(expected)
    assert expected in "".join(told)


@pytest.mark.parametrize(
    "part",
    [
        "<trkpt ",
        "<trkpt/>",
        "<trkpt><a/>",
        "<trkpt>a",
        "<a/>",
        "pt <a>",
        "<ele>",
        "</ele>",
        "</ele><a/>",
        "</trkseg> <trkseg>",
        "<",
    ],
)
def test_points_of_a_crafted_file_are_passed_once(tmp_path: Path, part: str) -> None:
    """The time would grow with the square of the file's size, and nothing else of the service would run meanwhile."""
    path = tmp_path / "a.gpx"
    points = TRACK.format(HIGH + FLAT)
    path.write_text(f"{START}{points}<trkpt>{part * (3 * CHUNK // len(part))}", encoding="utf-8")
    assert any(told.startswith("Points of tracks without") for told in check_texts(find_output("Gpx"), [path])[1])


def test_extensions_are_told_apart_across_the_pieces_of_a_file(tmp_path: Path) -> None:
    """A piece may end within extensions, and long texts without any take linear time."""
    path = write_track(tmp_path / "a.gpx", HELD.format("Ext", 2))
    start, point, rest = path.read_text(encoding="utf-8").partition("<trkpt")
    path.write_text(start + (point + rest).partition("</trkseg>")[0] * (3 * CHUNK // 200) + "y" * 2 * LONGEST)
    found, _ = with_values_alone(path, tmp_path / "new" / "held.gpx")
    assert found.read_bytes() == path.read_bytes().replace(b"<x:Ext>", b"").replace(b"</x:Ext>", b"")


@pytest.mark.parametrize(
    ("links", "is_told"),
    [
        ('<link href="a"/>\n<link href="b"><text>t</text><type>u</type></link>', False),
        ('<link href="a"/>\n<link href="b"><text>t</text><type>u</type></link><link href="c"></link>', True),
    ],
)
async def test_links_beyond_two_are_told(pipeline: Pipeline, tmp_path: Path, links: str, *, is_told: bool) -> None:
    """Programs that put photographs on a map write one for each; the driver reads two."""
    path = tmp_path / "a.gpx"
    path.write_text(
        '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="2">'
        f"<name>a</name>{links}</wpt></gpx>"
    )
    done = await pipeline.to("GeoPackage", path)
    told = "Points, routes and tracks with more than two links kept the first two."
    assert done.output.warnings == (told,) * is_told


@pytest.mark.parametrize("columns", [60, 120, 1995, 2050])
async def test_more_extensions_than_the_driver_takes_are_the_reason_of_the_refusal(
    either: Pipeline, tmp_path: Path, columns: int
) -> None:
    """A file with them was called damaged."""
    extensions = "".join(f"<x:c{number}>v{number}</x:c{number}>" for number in range(columns))
    path = tmp_path / "a.gpx"
    path.write_text(f'{START}<wpt lat="1" lon="2"><extensions>{extensions}</extensions></wpt></gpx>')
    if columns > 60:
        with pytest.raises(Rejection, match="than the 99 that are read of GPX"):
            await either.to("GeoJson", path)
        return
    (found,) = readers.geojson((await either.to("GeoJson", path)).path)
    assert isinstance(found["properties"], dict)
    assert len(found["properties"]) == columns


@pytest.mark.parametrize(("kind", "most"), [("point", 76), ("line", 87)])
async def test_more_columns_than_are_read_are_refused_with_their_number(
    either: Pipeline, tmp_path: Path, kind: str, most: int
) -> None:
    """Elements that the format defines do not count, nor do columns without a value."""
    columns = {f"c{number}": number for number in range(most)} | {"name": "n", "none": None}
    held, beyond = [
        line(**values) if kind == "line" else point(1, 2, **values) for values in (columns, columns | {"more": 1})
    ]
    done = await either.to("Gpx", write_geojson(tmp_path / "a.geojson", [held]))
    back = await either.to("Csv", done.path)
    assert [row[f"c{most - 1}"] for row in readers.table(back.path)] == [f"{most - 1}"]
    with pytest.raises(Rejection, match=rf"read {most} columns of a {kind} of GPX .*; 'b' has {most + 1}\. Choose"):
        await either.to("Gpx", write_geojson(tmp_path / "b.geojson", [beyond]))


async def test_columns_keep_apart_although_the_driver_strips_their_prefix(either: Pipeline, tmp_path: Path) -> None:
    """It writes `ogr_x` as `x`, also beside a column `x`; `name` is an element of GPX."""
    values = {"ogr_x": "1a", "x": "2b", "ogr_ogr_y": "3c", "ogr_name": "4d", "OGR_z": "5e", "ogr_": "6f", "ogr_7": "7g"}
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **values), point(3, 4, **values)])
    done = await either.to("Gpx", path)
    (renamed,) = [warning for warning in done.output.warnings if "'ogr_x'" in warning]
    assert "'ogr_x' to 'x', 'x' to 'x_2', 'ogr_ogr_y' to 'y', 'ogr_name' to 'name_'" in renamed
    assert "OGR_z" not in renamed
    text = done.path.read_text(encoding="utf-8")
    written = {"x": "1a", "x_2": "2b", "y": "3c", "name_": "4d", "OGR_z": "5e", "_": "6f", "_7": "7g"}
    assert [f"<ogr:{name}>{value}</ogr:{name}>" in text for name, value in written.items()] == [True] * len(values), (
        text
    )
