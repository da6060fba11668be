"""The coordinate systems that geometries of GML, their parts and what is around them name."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_sessions import Counted
from tests.support.converters import Converters

START = (
    '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" xmlns:gml="http://www.opengis.net/gml"'
    ' xmlns:t="t"{}>'
)
FEATURE = "<gml:featureMember><t:place><t:name>Ö</t:name><t:geom>{}</t:geom></t:place></gml:featureMember>"
URN, CODE, ADDRESS = "urn:ogc:def:crs:EPSG::4326", "EPSG:4326", "http://www.opengis.net/gml/srs/epsg.xml#4326"
SPACE = "urn:ogc:def:crs:EPSG::4979"
CRS84, ZONE = "urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:25832"
FLAT = "two dimensions in a system of three"
"""Newer releases refuse such positions if their number is not that of whole positions of three."""
ENVELOPE = (
    "<gml:boundedBy><gml:Envelope{}><gml:lowerCorner>0 0</gml:lowerCorner><gml:upperCorner>9 9</gml:upperCorner>"
    "</gml:Envelope></gml:boundedBy>"
)


def named(system: str) -> str:
    return f' srsName="{system}"'


def point(system: str, position: str) -> str:
    return f"<gml:Point{named(system) if system else ''}><gml:pos>{position}</gml:pos></gml:Point>"


def line(attributes: str, positions: str, of_list: str = "") -> str:
    return f"<gml:LineString{attributes}><gml:posList{of_list}>{positions}</gml:posList></gml:LineString>"


def document(path: Path, geometries: Sequence[str], around: str = "", envelope: str = "") -> Path:
    text = START.format(around) + envelope + "".join(map(FEATURE.format, geometries)) + "</wfs:FeatureCollection>"
    path.write_text(f'<?xml version="1.0" encoding="ISO-8859-1"?>\n{text}', encoding="iso-8859-1")
    return path


MULTI = f"<gml:MultiPoint><gml:pointMember>{point(URN, '50 9')}</gml:pointMember></gml:MultiPoint>"
RING = f"<gml:LinearRing{named(URN)}><gml:posList>50 9 50 10 51 10 50 9</gml:posList></gml:LinearRing>"
AREA = f"<gml:Polygon><gml:exterior>{RING}</gml:exterior></gml:Polygon>"
HIGH = "50 9 1 51 9 2 52 9 3"
HIGH_READ = [[9, 50, 1], [9, 51, 2], [9, 52, 3]]
LOW = "9 50 10 51 11 52"
LOW_READ = [[9, 50], [10, 51], [11, 52]]
DOCUMENTS = {
    "latitude first": ([point(URN, "50 9")], "", "", [[9, 50]]),
    "longitude first": ([point(CODE, "9 50"), point(CODE, "9 51")], "", "", [[9, 50], [9, 51]]),
    "an address": ([point(ADDRESS, "9 50")], "", "", [[9, 50]]),
    "several names": (
        [point(URN, "50 9"), point(CODE, "9 51"), point(ADDRESS, "9 52"), point(CRS84, "9 53")],
        "",
        "",
        [[9, 50], [9, 51], [9, 52], [9, 53]],
    ),
    "the collection's": ([point("", "50 9")], named(URN), "", [[9, 50]]),
    "the envelope's": ([point("", "50 9")], "", ENVELOPE.format(named(URN)), [[9, 50]]),
    "not the envelope's": ([point(CODE, "9 50")], "", ENVELOPE.format(named(ZONE)), [[9, 50]]),
    "a part's": ([MULTI], "", "", [[[9, 50]]]),
    "a ring's": ([AREA], "", "", [[[[9, 50], [10, 50], [10, 51], [9, 50]]]]),
    "a list's": ([line("", "50 9 51 10", named(URN))], "", "", [[[9, 50], [10, 51]]]),
    "three dimensions": ([line(named(URN) + ' srsDimension="3"', HIGH)], "", "", [HIGH_READ]),
    "three dimensions of a list": ([line(named(URN), HIGH, ' srsDimension="3"')], "", "", [HIGH_READ]),
    "three dimensions of the envelope": (
        [line(named(URN), HIGH)],
        "",
        ENVELOPE.format(named(URN) + ' srsDimension="3"'),
        [HIGH_READ],
    ),
    "three dimensions of the system": ([line(named(SPACE), HIGH)], "", "", [HIGH_READ]),
    "three dimensions of the system in another notation": (
        [line(named(f"http://www.opengis.net/def/crs/EPSG/0/{SPACE[-4:]}"), HIGH), line(named(SPACE), HIGH)],
        "",
        "",
        [HIGH_READ, HIGH_READ],
    ),
    "three dimensions of the envelope's system": (
        [line("", HIGH)],
        "",
        ENVELOPE.format(named(SPACE)),
        [HIGH_READ],
    ),
    FLAT: ([line(named(SPACE), "50 9 51 10")], "", "", [[[9, 50], [10, 51]]]),
    "three dimensions of some": (
        [line(named(CODE), LOW), line(named(URN), HIGH, ' srsDimension="3"')],
        "",
        ENVELOPE.format(' srsDimension="3"'),
        [[[*at, 0] for at in LOW_READ], HIGH_READ],
    ),
    "three dimensions of none": (
        [line(named(CODE), LOW), line(named(CODE), "9 50 10 51")],
        "",
        ENVELOPE.format(' srsDimension="3"'),
        [LOW_READ, LOW_READ[:2]],
    ),
}
"""Geometries, the attributes of the collection, what is before its features, and the coordinates that are read."""


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_each_geometry_is_read_in_the_system_that_is_named_for_it(
    either: Pipeline, tmp_path: Path, name: str
) -> None:
    """It may name it itself or in a part, in any notation; otherwise the collection or the envelope does."""
    geometries, around, envelope, expected = DOCUMENTS[name]
    path = document(tmp_path / "a.gml", geometries, around, envelope)
    if name == FLAT and either.engine.capabilities.is_of("3.11-"):
        with pytest.raises(Rejection, match="a geometry that cannot be read"):
            await either.to("GeoJson", path)
        return
    done = await either.to("GeoJson", path)
    features = json.loads(done.path.read_text(encoding="utf-8"))["features"]
    assert [feature["geometry"]["coordinates"] for feature in features] == expected
    assert {feature["properties"]["name"] for feature in features} == {"Ö"}
    levelled = ("Geometries without elevations (1) got the elevation 0 where others of their layer have some.",)
    assert done.output.warnings == (levelled if name == "three dimensions of some" else ())


SEVERAL = {
    "of features": (
        [point(CODE, "9 50"), point(ZONE, "500000 5600000"), point(URN, "50 9"), point("", "1 2")],
        (
            "EPSG:4326 (2 features, first feature 1), EPSG:25832 (1 feature, first feature 2), "
            "no system (1 feature, first feature 4)"
        ),
    ),
    "written in several ways": (
        [
            point(CODE, "9 50"),
            point(CODE, "9 50"),
            point(ZONE, "1 2").replace('srsName="', "srsName = '").replace('">', "'>"),
        ],
        "EPSG:4326 (2 features, first feature 1), EPSG:25832 (1 feature, first feature 3)",
    ),
    "of parts": (
        [
            "<gml:MultiPoint><gml:pointMembers>"
            + point(CODE, "9 50")
            + point("urn:x", "1 2")
            + "</gml:pointMembers></gml:MultiPoint>"
        ],
        "EPSG:4326 (1 feature, first feature 1), urn:x (1 feature, first feature 1)",
    ),
}


@pytest.mark.parametrize("source_epsg", [None, 4326])
@pytest.mark.parametrize("name", SEVERAL)
async def test_several_systems_in_a_layer_are_refused(
    pipeline: Pipeline, tmp_path: Path, name: str, source_epsg: int | None
) -> None:
    """The refusal names them, and sourceEpsg, which would be wrong for some, changes nothing."""
    geometries, told = SEVERAL[name]
    with pytest.raises(Rejection) as refusal:
        await pipeline.to("GeoJson", document(tmp_path / "a.gml", geometries), source_epsg=source_epsg)
    assert told in str(refusal.value)


async def test_layers_may_have_different_systems(pipeline: Pipeline, tmp_path: Path) -> None:
    """Each is converted from its own."""
    path = document(tmp_path / "a.gml", [point(CODE, "9 50"), point(ZONE, "500000 5600000")])
    text = path.read_text(encoding="iso-8859-1")
    last = text.rindex("<t:place>")
    path.write_text(text[:last] + text[last:].replace("t:place>", "t:town>"), encoding="iso-8859-1")
    done = await pipeline.to("GeoJson", path, layer="town")
    (feature,) = readers.geojson(done.path)
    assert feature["geometry"] == {"type": "Point", "coordinates": [9.0, pytest.approx(50.55, abs=0.01)]}


async def test_features_without_a_system_beside_others_are_read_in_the_one_that_is_sent(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Without sourceEpsg the file is refused; with it, a warning tells of them."""
    path = document(tmp_path / "a.gml", [point(CODE, "9 50"), point("", "9 51"), point(CODE, "9 52")])
    with pytest.raises(Rejection, match=r"'EPSG:4326 or none', .* Send its EPSG code as sourceEpsg"):
        await pipeline.to("GeoJson", path)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    (told,) = done.output.warnings
    assert told == (
        "1 feature of 'place', first feature 2, named no coordinate system, the others EPSG:4326; sourceEpsg was used "
        "for all of them."
    )


async def test_a_system_that_is_not_known_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    """The refusal repeats what the file calls it."""
    with pytest.raises(Rejection, match="in 'urn:x:mine', which is not a known system"):
        await pipeline.to("GeoJson", document(tmp_path / "a.gml", [point("urn:x:mine", "9 50")]))


COLLECTION = "<gml:featureMember><wfs:FeatureCollection>{}</wfs:FeatureCollection></gml:featureMember>"


async def test_a_collection_inside_another_is_no_feature(pipeline: Pipeline, tmp_path: Path) -> None:
    """Servers that answer several queries send one for each, and the envelope of one is not that of the next."""
    geometries = [point("", "50 9"), point(ZONE, "500000 5600000")]
    path = document(tmp_path / "a.gml", geometries)
    text = path.read_text(encoding="iso-8859-1")
    town, place = map(FEATURE.format, geometries)
    town = town.replace("t:place>", "t:town>")
    nested = COLLECTION.format(ENVELOPE.format(named(URN)) + town) + COLLECTION.format(place)
    path.write_text(text.replace("".join(map(FEATURE.format, geometries)), nested), encoding="iso-8859-1")
    for layer, at in (("town", [9.0, 50.0]), ("place", [9.0, pytest.approx(50.55, abs=0.01)])):
        (feature,) = readers.geojson((await pipeline.to("GeoJson", path, layer=layer)).path)
        assert feature["geometry"] == {"type": "Point", "coordinates": at}


async def test_a_layer_with_lists_is_read_in_the_system_of_its_features(pipeline: Pipeline, tmp_path: Path) -> None:
    """Although it becomes a work file by way of another file."""
    path = document(tmp_path / "a.gml", [point(URN, "50 9"), point(CODE, "9 51")])
    text = path.read_text(encoding="iso-8859-1")
    path.write_text(text.replace("<t:geom>", "<t:k>1</t:k><t:k>2</t:k><t:geom>"), encoding="iso-8859-1")
    features = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert [feature["geometry"]["coordinates"] for feature in features] == [[9.0, 50.0], [9.0, 51.0]]  # type: ignore[index]  # JSON is untyped


async def test_a_system_that_is_sent_replaces_one_that_is_not_known(pipeline: Pipeline, tmp_path: Path) -> None:
    """Also if features name it in different notations; without it, the refusal names the system."""
    path = document(tmp_path / "a.gml", [point("EPSG:999999", "9 50"), point("urn:ogc:def:crs:EPSG::999999", "9 51")])
    with pytest.raises(Rejection, match="in 'EPSG:999999', which is not a known system"):
        await pipeline.to("GeoJson", path)
    features = readers.geojson((await pipeline.to("GeoJson", path, source_epsg=4326)).path)
    assert len(features) == 2


BOTH = "urn:ogc:def:crs,crs:EPSG::4326,crs:EPSG::5773"
EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
ADDRESS_OF_BOTH = f"http://www.opengis.net/def/crs-compound?1={EPSG}4326&amp;2={EPSG}5773"
UNCODED = "urn:ogc:def:crs,crs:EPSG::4258,crs:EPSG::5783"
"""Two systems that are none together, of which the driver does not know that latitudes are first."""
WITH_HEIGHTS = "urn:ogc:def:crs:EPSG::7409"
HEIGHTS = {
    "two systems": ([point(BOTH, "50 9 100")], BOTH),
    "two systems in an address": ([point(ADDRESS_OF_BOTH, "50 9 100")], BOTH),
    "two systems in several ways": (
        [point(BOTH, "50 9 100"), point(ADDRESS_OF_BOTH, "50 9 100"), point("EPSG:4326+5773", "9 50 100")],
        BOTH,
    ),
    "a code": ([point(WITH_HEIGHTS, "50 9 100")], WITH_HEIGHTS),
    "a code in several ways": ([point("EPSG:7409", "9 50 100"), point(WITH_HEIGHTS, "50 9 100")], "in EPSG:7409, and"),
    "a code without heights": ([point(WITH_HEIGHTS, "50 9")], ""),
    "a code of three axes": ([point("urn:ogc:def:crs:EPSG::4979", "50 9 100")], ""),
}
"""Geometries in systems of positions and heights, and how the name begins in what is told."""


@pytest.mark.parametrize("name", HEIGHTS)
async def test_a_system_of_heights_is_told(either: Pipeline, tmp_path: Path, name: str) -> None:
    """Only the one of positions was read, without a word, or the result does not say it."""
    geometries, shown = HEIGHTS[name]
    path = document(tmp_path / "a.gml", geometries)
    done = await either.to("GeoPackage", path)
    told = [warning for warning in done.output.warnings if "were kept unchanged" in warning]
    assert [shown in warning for warning in told] == ([True] if shown else [])
    assert len(done.output.warnings) == len(told)
    done = await either.to("GeoJson", path, source_epsg=4326)
    assert done.output.warnings == ()
    assert {tuple(feature["geometry"]["coordinates"][:2]) for feature in readers.geojson(done.path)} == {(9.0, 50.0)}  # type: ignore[index]  # JSON is untyped


UNUSUAL = {
    UNCODED: "50 9 1",
    ADDRESS_OF_BOTH: "50 9 1",
    ADDRESS_OF_BOTH.replace("4326", "4258"): "50 9 1",
    ADDRESS_OF_BOTH.replace("http:", "https:"): "50 9 1",
    BOTH.replace("ogc", "x-ogc"): "50 9 1",
    "urn:EPSG:geographicCRS:4326": "50 9",
    ADDRESS.replace("http:", "https:"): "9 50",
}
"""Names of systems that some releases of the driver do not know, or not with their axes, and a position in each."""


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("place", ["the geometry", "a part", "the envelope"])
async def test_positions_have_their_axes_in_every_notation(
    pipeline: Pipeline, tmp_path: Path, name: str, place: str
) -> None:
    """Whether the system is sent as well or not."""
    position = UNUSUAL[name]
    geometry = point(name, position) if place == "the geometry" else point("", position)
    if place == "a part":
        geometry = f"<gml:MultiPoint><gml:pointMember>{point(name, position)}</gml:pointMember></gml:MultiPoint>"
    envelope = ENVELOPE.format(named(name)) if place == "the envelope" else ""
    path = document(tmp_path / "a.gml", [geometry], envelope=envelope)
    for wishes in ({}, {"source_epsg": 4326}):
        (feature,) = readers.geojson((await pipeline.to("GeoJson", path, **wishes)).path)
        positions = feature["geometry"]["coordinates"]  # type: ignore[index]  # JSON is untyped
        assert (positions[0] if place == "a part" else positions)[:2] == [9.0, 50.0]


@pytest.mark.parametrize(
    ("name", "position", "code"),
    [
        ("ETRS89_UTM32", "500000 5538630.7", 25832),
        ("ETRS89_UTM32*DE_DHHN2016_NH", "500000 5538630.7 1", 25832),
        ("DE_DHDN_3GK3", "3500074.5 5540407.1", 31467),
        ("DE_DHDN_3GK3_X", "3500074.5 5540407.1", None),
    ],
)
async def test_eastings_are_first_in_systems_of_german_surveys(
    pipeline: Pipeline, tmp_path: Path, name: str, position: str, code: int | None
) -> None:
    """Also where they are second in EPSG's; other names are unknown."""
    path = document(tmp_path / "a.gml", [point(f"urn:adv:crs:{name}", position)])
    if code is None:
        with pytest.raises(Rejection, match=f"'urn:adv:crs:{name}', which is not a known system"):
            await pipeline.to("GeoPackage", path)
        return
    done = await pipeline.to("GeoPackage", path, epsg=code)
    assert done.facts.layers[0].crs.epsg == code
    assert any(warning.startswith("Elevations are in a vertical") for warning in done.output.warnings) == ("*" in name)
    (feature,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert [round(number, 4) for number in feature["geometry"]["coordinates"][:2]] == [9.0, 50.0]  # type: ignore[index]  # JSON is untyped


ORDINARY = {
    "elevations of points": ([point(URN, "50 9 1")], ENVELOPE.format(named(URN) + ' srsDimension="3"')),
    "the envelope's": ([point("", "50 9")], ENVELOPE.format(named(URN))),
}


@pytest.mark.parametrize("name", ORDINARY)
async def test_what_the_driver_understands_is_converted_by_one_run(
    converters: Converters, tmp_path: Path, name: str
) -> None:
    """No program has to look at the geometries first."""
    geometries, envelope = ORDINARY[name]
    path = document(tmp_path / "a.gml", geometries, envelope=envelope)
    runs = Counted(converters.run)
    done = await Pipeline(converters, runs, has_sessions=True).to("GeoJson", path)
    (feature,) = readers.geojson(done.path)
    assert feature["geometry"]["coordinates"][:2] == [9.0, 50.0]  # type: ignore[index]  # JSON is untyped
    assert len(runs.commands) == 1


async def test_features_that_only_the_driver_finds_keep_the_system_of_the_envelope(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """It knows collections of Polish servers, whose members are called otherwise."""
    text = ENVELOPE.format(named(URN)) + "<!--" + named(CODE) + "-->"
    path = document(tmp_path / "a.gml", [point("", "50 9")], envelope=text)
    path.write_bytes(path.read_bytes().replace(b"gml:featureMember", b"t:dane"))
    (feature,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert feature["geometry"] == {"type": "Point", "coordinates": [9.0, 50.0]}


async def test_very_long_names_of_systems_are_refused_as_others_are(pipeline: Pipeline, tmp_path: Path) -> None:
    """And shown in part."""
    path = document(tmp_path / "a.gml", [point(CODE, "9 50"), point("urn:" + "x" * 5000, "9 50")])
    with pytest.raises(Rejection, match=r"several coordinate systems: EPSG:4326 .*, urn:x+…"):
        await pipeline.to("GeoJson", path)


@pytest.mark.parametrize(("second", "is_told"), [("50 9", True), ("50 9 2", False)])
async def test_positions_without_elevations_beside_others_are_told(
    pipeline: Pipeline, tmp_path: Path, second: str, *, is_told: bool
) -> None:
    """The driver gives them the elevation 0."""
    path = document(tmp_path / "a.gml", [point(URN, "50 9 1"), point(URN, second)])
    told = "Positions of two numbers (1) got the elevation 0 where others of their layer have three."
    done = await pipeline.to("GeoPackage", path)
    assert done.output.warnings == ((told,) if is_told else ())
    flat = document(tmp_path / "b.gml", [point(URN, "50 9"), point(URN, "51 9")])
    assert (await pipeline.to("GeoPackage", flat)).output.warnings == ()
