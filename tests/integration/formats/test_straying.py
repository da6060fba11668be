"""Features too far from the area of a coordinate system are told, with their count and the first."""

import re
from itertools import cycle, pairwise, product
from pathlib import Path

import msgspec
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from service.usecases.verify_output import verify_output
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Converted, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

SWISS, PACIFIC, POLE = (7.5, 47), (-150, 10), (3, 89)
LINE_TO_PACIFIC = geometry("LineString", [SWISS, PACIFIC])
FEATURES = {
    "a point": [point(*SWISS, name=1), feature(None, name=2), point(*PACIFIC, name=3), point(*PACIFIC, name=4)],
    "a line": [feature(geometry("LineString", [SWISS, (8, 46)]), a=1), feature(LINE_TO_PACIFIC, a=2)],
    "a pole": [point(3, -89, a=1), point(*POLE, a=2)],
    "beyond a zone": [point(15, 47, a=1), point(45, 60, a=2), point(*SWISS, a=3)],
    "far from a meridian": [
        point(11, 1, a=1),
        point(21, 0, a=2),
        feature(geometry("LineString", [(9, 0), (30, 0)]), a=3),
        point(-20, 5, a=4),
    ],
    "in zone 44": [point(132, 46, a=1), point(134, 47, a=2), point(-150, 10, a=3)],
    "in the Arctic": [point(-50, 71, a=1), point(-43, 72, a=2)],
    "by 17 m": [point(*SWISS, a=1), point(-91, 0, a=2), point(99, -20, a=3)],
    "from a projection": [point(*SWISS, a=1), point(*PACIFIC, a=2)],
    "a name to cut": [point(*SWISS, a_name_of_eleven=1), point(*PACIFIC, a_name_of_eleven=2), feature(LINE_TO_PACIFIC)],
}
CASES = {
    ("a point", 2056, "GeoPackage"): "2 of 3 features of 'a', first feature 3,",
    ("a point", 2056, "Csv"): "2 of 3 features of 'a', first feature 3,",
    ("a point", 2056, "Xlsx"): "2 of 3 features of 'a', first feature 3,",
    ("a line", 2056, "Shapefile"): "1 of 2 features of 'a', first feature 2,",
    ("a pole", 3031, "FlatGeobuf"): "1 of 2 features of 'a', first feature 2,",
    ("beyond a zone", 25832, "GeoPackage"): "",
    ("far from a meridian", 32632, "GeoPackage"): "2 of 4 features of 'a', first feature 3,",
    ("far from a meridian", 31467, "Csv"): "2 of 4 features of 'a', first feature 3,",
    ("far from a meridian", 2065, "Csv"): "",
    ("in zone 44", 4532, "GeoPackage"): "1 of 3 features of 'a', first feature 3,",
    ("in the Arctic", 6061, "GeoPackage"): "",
    ("by 17 m", 32632, "GeoPackage"): "2 of 3 features of 'a', first feature 2,",
    ("a point", 3857, "GeoPackage"): "",
    ("a name to cut", 2056, "Shapefile"): "2 of 3 features of 'a', first feature 2,",
}
TOLD = ("too far", "span the whole map", "reach a pole")


async def warned(pipeline: Pipeline, path: Path, output: str, **wishes: object) -> list[str]:
    """The warnings about features that stray, as a job makes them."""
    told, _ = await converted(pipeline, path, output, **wishes)
    return told


async def converted(pipeline: Pipeline, path: Path, output: str, **wishes: object) -> tuple[list[str], Path]:
    """These warnings and the result, under the client's name for it."""
    request = msgspec.convert({"output": output, **wishes}, ConversionRequest)
    directory, source = pipeline.receive(path)
    target = choose_target(source.format, output)
    async with pipeline.engine.session(pipeline.run, target) as run:
        found = await inspect_source(pipeline.engine, run, source, target, directory, request=request)
        plan = plan_conversion(found.source, target, found.facts, request, pipeline.engine.catalogue)
        astray = await pipeline.engine.convert(run, found.source, plan, directory)
        differences = await verify_output(pipeline.engine, run, found.source, plan, directory, astray=astray)
    told = [warning for warning in differences if any(words in warning for words in TOLD)]
    return told, Converted(found.source, found.facts, plan, await pipeline.engine.collect(plan, directory)).path


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
async def test_what_strays_is_told(either: Pipeline, tmp_path: Path, case: tuple[str, int, str]) -> None:
    """With and without a run that is held open."""
    features, epsg, output = case
    path = write_geojson(tmp_path / "a.geojson", FEATURES[features])
    told = await warned(either, path, output, target_epsg=epsg)
    assert [warning[: len(CASES[case])] for warning in told] == [CASES[case]] * bool(CASES[case]), told


async def test_what_strays_is_told_of_every_source(either: Pipeline, tmp_path: Path) -> None:
    """Coordinates of a projection are examined as well, whether the file records their system or not."""
    path = write_geojson(tmp_path / "a.geojson", FEATURES["from a projection"])
    mercator = (await either.to("Shapefile", path, target_epsg=3857)).path
    told = await warned(either, mercator, "GeoPackage", target_epsg=2056)
    assert [warning.partition(", ")[0] for warning in told] == ["1 of 2 features of 'a'"]
    assert "EPSG:2056" in told[0]
    assert await warned(either, mercator, "GeoJson") == []
    table = tmp_path / "a.csv"
    table.write_text("id,x,y\n1,835000,5942000\n2,-60000000,1118890\n")
    told = await warned(either, table, "GeoJson", source_epsg=3857)
    assert [warning.partition(" features")[0] for warning in told] == ["1 of 2"]
    assert "EPSG:3857" in told[0]


async def test_what_is_far_from_a_meridian_is_told_with_a_remedy(either: Pipeline, tmp_path: Path) -> None:
    """Transverse Mercator leads back from everywhere, but its lengths mean nothing far away."""
    path = write_geojson(tmp_path / "a.geojson", FEATURES["far from a meridian"])
    (told,) = await warned(either, path, "GeoPackage", target_epsg=32632)
    assert "EPSG:32632" in told
    assert "2,000 km and more from the central meridian" in told
    assert "choose another targetEpsg, such as that of the zone in which they lie" in told


@pytest.mark.parametrize(
    ("epsg", "least", "most"),
    [
        (32632, -1_500_000, 2_500_000),
        (31467, 1_500_000, 5_500_000),
        (2053, -2_000_000, 2_000_000),
        (5555, -1_500_000, 2_500_000),
        (2263, float("-inf"), float("inf")),
        (3857, float("-inf"), float("inf")),
        (999999, float("-inf"), float("inf")),
    ],
)
def test_transverse_mercator_ends_far_from_its_meridian(
    converters: Converters, epsg: int, least: float, most: float
) -> None:
    """In the unit of the system, whatever its false easting, also below a compound system."""
    assert converters.engine.catalogue.reach(epsg) == (least, most)


def test_the_reach_is_in_the_unit_of_the_system(converters: Converters) -> None:
    """New York East is in US feet, with a false easting in them."""
    least, most = converters.engine.catalogue.reach(2260)
    assert (most - least) / 2 == pytest.approx(2e6 * 3937 / 1200)
    assert (most + least) / 2 == pytest.approx(150_000 * 3937 / 1200)


@pytest.mark.parametrize(
    ("epsg", "shared"), [(32632, True), (4326, True), (25832, False), (4979, False), (999999, False)]
)
def test_only_systems_of_one_datum_are_compared_to_the_meter(
    converters: Converters, epsg: int, *, shared: bool
) -> None:
    """Changes of the datum are not exact, there and back."""
    assert converters.engine.catalogue.share_datum(4326, epsg) is shared


async def test_tens_of_thousands_of_features_may_be_looked_at(either: Pipeline, tmp_path: Path) -> None:
    """Without a run that is held open, a few thousand took longer than a conversion may."""
    rows = [SWISS] * 30_000 + [PACIFIC]
    (tmp_path / "a.csv").write_text("n,x,y\n" + "".join(f"1,{x},{y}\n" for x, y in rows))
    (told,) = await warned(either, tmp_path / "a.csv", "GeoPackage", source_epsg=4326, target_epsg=2056)
    assert told.startswith("1 of 30,001 features of 'a', first feature 30,001,")


EAST, FIJI, WORLD = (
    1_900_000,
    "POLYGON ((19000000 0,21000000 0,21000000 100000,19000000 100000,19000000 0))",
    20_000_000,
)
WORLD_RING = f"-{WORLD} 0,{WORLD} 0,{WORLD} 9000000,-{WORLD} 9000000,-{WORLD} 0"
ACROSS = {
    "New Zealand": (2193, f"LINESTRING ({EAST} 5500000,2300000 5500000)", True),
    "westwards": (2193, f"LINESTRING (2300000 5500000,{EAST} 5500000)", True),
    "far": (2193, "LINESTRING (1000000 5500000,3800000 5500000)", True),
    "with Z": (2193, f"LINESTRING Z ({EAST} 5500000 1,2300000 5500000 2)", True),
    "with M": (2193, f"LINESTRING M ({EAST} 5500000 1,2300000 5500000 2)", True),
    "the second of two": (
        2193,
        f"MULTILINESTRING ((1500000 5500000,1600000 5500000),({EAST} 5500000,2300000 5500000))",
        True,
    ),
    "in a collection": (2193, f"GEOMETRYCOLLECTION (POINT (1 1),LINESTRING ({EAST} 5500000,2300000 5500000))", True),
    "on one side": (2193, "LINESTRING (1500000 5500000,1600000 5500000)", False),
    "on both sides": (
        2193,
        "MULTILINESTRING ((1500000 5500000,1600000 5500000),(2250000 5500000,2300000 5500000))",
        False,
    ),
    "points": (2193, f"MULTIPOINT ({EAST} 5500000,2300000 5500000)", False),
    "Mercator": (3857, "LINESTRING (19000000 0,21000000 0)", True),
    "an area": (3857, FIJI, True),
    "the world": (3857, f"LINESTRING (-{WORLD} 0,{WORLD} 0)", False),
    "the area of the world": (3857, f"POLYGON (({WORLD_RING}))", False),
    "near the pole": (3995, "LINESTRING (-100000 500000,100000 500000)", True),
    "an area near the pole": (3995, "POLYGON ((-9 500000,9 500000,9 500009,-9 500009,-9 500000))", True),
    "past the pole": (3995, "LINESTRING (-100000 -1000,100000 -1000)", False),
    "an area that ends there": (
        3031,
        "POLYGON ((0 -1000000,0 -750000,-250000 -750000,-250000 -1000000,0 -1000000))",
        True,
    ),
    "an area that begins there": (
        3031,
        "POLYGON ((0 -1000000,0 -750000,250000 -750000,250000 -1000000,0 -1000000))",
        False,
    ),
    "a line that ends there": (3031, "LINESTRING (-100000 -400000,0 -400000,0 -300000)", True),
    "half around the pole": (3031, "LINESTRING (-174000 985000,1000000 0,0 -1000000)", False),
    "the other datum": (4267, "LINESTRING (170 50,190 50)", True),
    "the world in another datum": (4267, "LINESTRING (-179 50,179 50)", False),
}


async def widest_edge(pipeline: Pipeline, path: Path) -> float:
    """Of all lines and rings in a result, in degrees of longitude; the sides of the map itself are none."""
    (*_, row) = readers.table((await pipeline.to("Csv", path)).path)
    lines = [
        [float(place.split()[0]) for place in line.split(",")] for line in re.findall(r"[-\d. ,e]{9,}", row["WKT"])
    ]
    edges = [abs(there - here) for line in lines for here, there in pairwise(line)]
    return max((edge for edge in edges if edge < 359.999), default=0)


@pytest.mark.parametrize("case", ACROSS)
async def test_what_spans_the_map_because_it_crosses_the_date_line_is_told(
    either: Pipeline, tmp_path: Path, case: str
) -> None:
    """With and without a run that is held open, unless the converter has cut it; that depends on its release."""
    source, wkt, crosses = ACROSS[case]
    path = tmp_path / "a.csv"
    path.write_text(f'WKT,n\n"POINT (0 0)",1\n"{wkt}",2\n')
    warnings, result = await converted(either, path, "GeoPackage", source_epsg=source)
    told = [warning for warning in warnings if "date line" in warning]
    spans = await widest_edge(either, result) > 90
    assert [warning[:39] for warning in told] == ["1 of 2 features of 'a', first feature 2"] * (crosses and spans), told
    if wkt.startswith("LINESTRING") and source == 2193:
        assert spans is crosses


CUT = ("GeoJson", "GeoJsonSeq", "Kml")
"""Formats that are cut at the date line."""
SIMPLE = ("New Zealand", "westwards", "with Z")
"""What is always cut, and tried in each of these formats; other cases take turns."""


@pytest.mark.parametrize(
    ("case", "output"), [*product(SIMPLE, CUT), *zip((case for case in ACROSS if case not in SIMPLE), cycle(CUT))]
)
async def test_formats_that_are_cut_at_the_date_line_say_what_is_not(
    either: Pipeline, tmp_path: Path, case: str, output: str
) -> None:
    """Simple geometries near it are cut, and none that span the world."""
    source, wkt, crosses = ACROSS[case]
    path = tmp_path / "a.csv"
    path.write_text(f'WKT,n\n"{wkt}",2\n')
    warnings, result = await converted(either, path, output, source_epsg=source)
    told = [warning for warning in warnings if "date line" in warning]
    spans = await widest_edge(either, result) > 90
    assert len(told) == (crosses and spans), told
    if case in SIMPLE:
        assert not spans
    if "world" in case:
        assert spans


@pytest.mark.parametrize(
    ("target_epsg", "told"),
    [(3857, True), (6933, True), (8859, False), (4258, False), (3832, False), (32660, False), (3995, False)],
)
async def test_longitudes_beyond_the_date_line_are_told_where_a_projection_moves_them(
    either: Pipeline, tmp_path: Path, target_epsg: int, *, told: bool
) -> None:
    """An area across the date line would span the whole map without a warning, unless the map goes on there."""
    ring = [[170, 10], [190, 10], [190, 20], [170, 20], [170, 10]]
    path = write_geojson(tmp_path / "a.geojson", [feature(geometry("Polygon", [ring]), name="x")])
    degrees = (await either.to("GeoPackage", path)).path
    for source in (path, degrees):
        warnings = await warned(either, source, "FlatGeobuf", target_epsg=target_epsg)
        assert [warning[:47] for warning in warnings if "edge of the map" in warning] == [
            "1 of 1 features of 'a', first feature 1, cross "
        ] * told, source.name


SQUARE = "-500000 -500000,500000 -500000,500000 500000,-500000 500000,-500000 -500000"
OCTAGON = "0 -9e5,6e5 -6e5,9e5 0,6e5 6e5,0 9e5,-6e5 6e5,-9e5 0,-6e5 -6e5"
AT_POLES = {
    "along 180 degrees": (3031, "LINESTRING (0 1000000,0 500000,0 -500000,0 -1000000)", True),
    "between two places": (3995, "LINESTRING (0 -1000000,0 1000000)", True),
    "one of several lines": (3031, "MULTILINESTRING ((100000 0,200000 0),(0 900000,0 -1000000))", True),
    "an equal-area map": (6932, "LINESTRING (0 -1000000,0 0,0 1000000)", True),
    "a point": (6931, "POINT (0 0)", True),
    "one of several points": (6932, "MULTIPOINT ((0 0),(100000 0))", True),
    "a point of a map that is not cut": (3031, "POINT (0 0)", False),
    "an area of it": (6931, f"POLYGON (({SQUARE}))", True),
    "areas of it": (3574, f"MULTIPOLYGON ((({SQUARE})),((600000 0,700000 0,700000 99000,600000 0)))", True),
    "an area": (3031, f"POLYGON (({SQUARE}))", False),
    "a line to it": (3031, "LINESTRING (1000000 0,0 0)", False),
    "a line around it": (6932, f"LINESTRING ({OCTAGON},0 -9e5)", False),
    "beside it": (6932, "POLYGON ((1000 0,500000 500000,-500000 500000,1000 0))", False),
    "a map on which it is a line": (4087, "LINESTRING (-10000 10018754,20000 10018754,0 8000000)", False),
}


@pytest.mark.parametrize("case", AT_POLES)
async def test_what_is_lost_at_a_pole_is_told(either: Pipeline, tmp_path: Path, case: str) -> None:
    """The converter cuts there, and loses what it cuts with."""
    source, wkt, is_lost = AT_POLES[case]
    path = tmp_path / "a.csv"
    path.write_text(f'WKT,n\n"LINESTRING (700000 800000,710000 800000)",1\n"{wkt}",2\n')
    for output, target in (("GeoJson", {}), ("GeoPackage", {"target_epsg": 4326})):
        told = [text for text in await warned(either, path, output, source_epsg=source, **target) if "a pole" in text]
        assert [text[:54] for text in told] == ["1 of 2 features of 'a', first feature 2, reach a pole "] * is_lost, (
            told
        )


async def test_lines_through_a_pole_are_told_between_formats_of_json(pipeline: Pipeline, tmp_path: Path) -> None:
    """They lose their middle, but no extent, by which a run without a session finds what is lost; points lose all."""
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::6931"}}
    for places in ([[-1e6, -1e6], [1e6, 1e6]], [[-1e6, 0], [0, 0], [1e6, 0]]):
        path = write_geojson(tmp_path / "a.geojson", [feature(geometry("LineString", places))], crs=named)
        (told,) = await warned(pipeline, path, "GeoJsonSeq")
        assert "reach a pole" in told
    line = feature(
        geometry("LineString", [[7e5, 8e5], [7.1e5, 8e5]]), n=1
    )  # without one before, GDAL 3.10 keeps points
    path = write_geojson(tmp_path / "a.geojson", [line, point(0, 0, n=2)], crs=named)
    for output in ("Csv", "MapInfo"):
        (told,) = await warned(pipeline, path, output, target_epsg=4326)
        assert "1 of 2 features of 'a', first feature 2, reach a pole" in told


def kml_line(*places: str) -> str:
    return f"<LineString><coordinates>{' '.join(places)}</coordinates></LineString>"


SEGMENT = '<trkseg><trkpt lat="1" lon="178"/><trkpt lat="3" lon="-178"/></trkseg>'
RING = "178,1 -178,1 -178,3 178,3 178,1"
AREA = (
    f"<Polygon><outerBoundaryIs><LinearRing><coordinates>{RING}</coordinates></LinearRing></outerBoundaryIs></Polygon>"
)
WHEN = "<when>2020-01-01T00:00:00Z</when>"
TRACK = f"<gx:Track>{WHEN}{WHEN}<gx:coord>178 1 0</gx:coord><gx:coord>-178 3 0</gx:coord></gx:Track>"
SHORTEST = {
    "a line": ("kml", kml_line("178,1", "-178,3"), True),
    "lines": ("kml", f"<MultiGeometry>{kml_line('178,1', '-178,3')}{kml_line('1,1', '2,2')}</MultiGeometry>", True),
    "areas": ("kml", f"<MultiGeometry>{AREA}{AREA.replace(',3', ',-3')}</MultiGeometry>", True),
    "tracks": ("kml", f"<gx:MultiTrack>{TRACK}{TRACK}</gx:MultiTrack>", True),
    "a segment": ("gpx", SEGMENT, True),
    "segments": ("gpx", SEGMENT + SEGMENT.replace("178", "10"), True),
    "the Pacific": ("kml", kml_line("-118,34", "140,36"), True),
    "as far as GDAL looks": ("kml", kml_line("170,1", "-170,3"), True),
    "an area of the Pacific": ("kml", AREA.replace("178", "140"), True),
    "the long way": ("kml", kml_line("178,1", "60,1", "-60,1", "-178,3"), False),
    "cut already": (
        "kml",
        f"<MultiGeometry>{kml_line('178,1', '180,2')}{kml_line('-180,2', '-178,3')}</MultiGeometry>",
        False,
    ),
    "the world": ("kml", AREA.replace("178", "180"), False),
}


@pytest.mark.parametrize("case", SHORTEST)
async def test_the_shortest_way_in_a_file_is_cut_or_told(either: Pipeline, tmp_path: Path, case: str) -> None:
    """An edge of KML or GPX from one side of the date line to the other crosses it, also in Multi geometries."""
    kind, shape, crosses = SHORTEST[case]
    texts = {
        "kml": '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>'
        f"<Placemark><name>a</name>{shape}</Placemark></Document></kml>",
        "gpx": '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">'
        f"<trk><name>a</name>{shape}</trk></gpx>",
    }
    path = tmp_path / f"a.{kind}"
    path.write_text(texts[kind])
    for output, is_cut in (("GeoPackage", False), ("Shapefile", False), ("GeoJson", True), ("GeoJsonSeq", True)):
        done = await either.convert(path, ConversionRequest(output=output), verifies=True)
        told = [warning for warning in done.differences if "cross the date line and were not cut" in warning]
        assert len(told) == (crosses and not is_cut), (output, done.differences)
        assert all(warning.endswith("or choose the format of the file as outputFormat.") for warning in told)
        if is_cut:
            assert await widest_edge(either, done.path) < 180, output
    if "<Polygon>" not in shape:
        other = "Kml" if kind == "gpx" else "Gpx"
        assert not (await either.convert(path, ConversionRequest(output=other), verifies=True)).differences


async def test_what_crosses_an_edge_of_a_map_elsewhere_is_told(either: Pipeline, tmp_path: Path) -> None:
    """Equal Earth Asia-Pacific ends in the Atlantic."""
    lines = [feature(geometry("LineString", [[west, 10], [west + 20, 10]]), a=1) for west in (0, 170, -40)]
    path = write_geojson(tmp_path / "a.geojson", lines)
    (told,) = await warned(either, path, "GeoPackage", target_epsg=8859)
    assert told.startswith("1 of 3 features of 'a', first feature 3, cross an edge of the map")


async def test_a_large_document_tells_what_crosses_the_date_line(either: Pipeline, tmp_path: Path) -> None:
    """The last of many features is in the sandbox's part of the scan, too."""
    far = feature(geometry("LineString", [[170, 10], [190, 10]]), name="x")
    path = write_geojson(tmp_path / "a.geojson", [*[point(1, 2, name="x" * 1000)] * 300, far])
    request = ConversionRequest(output="FlatGeobuf", target_epsg=6933)
    (told,) = (await either.convert(path, request, verifies=True)).differences
    assert told.startswith("1 of 301 features of 'a', first feature 301, cross")


@pytest.mark.parametrize("output", ["GeoJson", "GeoJsonSeq", "Kml", "Gpx"])
async def test_what_spans_the_world_is_not_cut(either: Pipeline, tmp_path: Path, output: str) -> None:
    """Of lines and areas wider than 350 degrees, only both ends remained in GeoJSON."""
    path = tmp_path / "a.csv"
    areas = [] if output == "Gpx" else ["POLYGON ((-179 0,179 0,179 80,-179 80,-179 0))"]
    for wkt in ("LINESTRING (-179 0,179 0)", *areas):
        path.write_text(f'WKT,n\n"{wkt}",1\n')
        assert await widest_edge(either, (await either.to(output, path, source_epsg=4326)).path) == 358


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("a.gpx", '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><rte>{}</rte></gpx>'),
        ("a.kml", '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark>{}</Placemark></Document></kml>'),
    ],
)
async def test_an_edge_of_formats_for_the_globe_crosses_the_date_line(
    either: Pipeline, tmp_path: Path, name: str, document: str
) -> None:
    """In GPX and KML, an edge is the shortest way between its ends."""
    route = '<rtept lat="1" lon="179.9"/><rtept lat="2" lon="-179.9"/>'
    line = "<LineString><coordinates>179.9,1 -179.9,2</coordinates></LineString>"
    (tmp_path / name).write_text(document.format(route if name == "a.gpx" else line))
    result = await either.to("GeoJson", tmp_path / name)
    assert await widest_edge(either, result.path) < 1
