"""Geometries of GML features that are not read are counted, wherever they are in the feature."""

import pytest

from service.formats.gml_geometries import LONGEST_TAG, MOST_PATTERNS, FurtherGeometries
from service.formats.left_out import PIECE

PLACE = "<gml:Point srsName='s'><gml:pos>1 2</gml:pos></gml:Point>"
NESTED = f"<gml:MultiGeometry><gml:geometryMember><gml:MultiGeometry>{PLACE}</gml:MultiGeometry></gml:geometryMember>"
PARTS = f"{NESTED}<gml:geometryMember>{PLACE}</gml:geometryMember></gml:MultiGeometry>"
VOLUME = "<aixm:volume><aixm:Volume><aixm:limit uom='m'>1</aixm:limit><a:g>{}</a:g></aixm:Volume></aixm:volume>"
EXTENT = "<gml:boundedBy><gml:Envelope><gml:pos>1 2</gml:pos></gml:Envelope></gml:boundedBy>"
WALL = f"<b:boundedBy>\n<b:Wall>{EXTENT}<b:lod2>{PARTS}</b:lod2></b:Wall></b:boundedBy>"

FEATURES = {
    "": (0, 0, 0, 0),
    PLACE: (0, 0, 0, 0),
    PARTS: (0, 0, 0, 0),
    f"{EXTENT}<a:g>{PARTS}</a:g>": (0, 0, 0, 0),
    "<a:g><gml:Point/></a:g><a:h><gml:Pointer>1</gml:Pointer></a:h>": (0, 0, 0, 0),
    f"<a:g>{PLACE}</a:g><!-- {PLACE} --> <!----><!-- - {PLACE}- ->{PLACE}--><!--<!--><!-- -->x<a:n/>": (0, 0, 0, 0),
    f"<!----><!-- --> <!--<!--->{PLACE}<!-- > --><a:g>{PLACE}</a:g>": (1, 1, 0, 0),
    f"<a:g>{PLACE}</a:g><!-- {PLACE} --><a:n><![CDATA[{PLACE}]]></a:n>": (0, 0, 0, 0),
    f"<a:g>{PLACE}</a:g>\n<a:n>1</a:n>\n<a:h>{PARTS}</a:h>": (1, 1, 0, 0),
    VOLUME.format("<aixm:Surface><gml:patches/></aixm:Surface>") + 2 * VOLUME.format(PLACE): (1, 2, 0, 0),
    f"<a:lod1>{PLACE}</a:lod1>{EXTENT}{WALL}{WALL}": (0, 0, 2, 2),
    f"<b:boundedBy><b:Wall/></b:boundedBy><b:boundedBy/><a:g>{PLACE}</a:g><a:h>{PLACE}</a:h>": (1, 1, 1, 0),
    f"<a:f>{PLACE}</a:f><a:f/>{PLACE}": (1, 1, 0, 0),
}
"""What features hold: how many of them have several geometries, how many of these are not read, how many elements
boundedBy hold more than an extent, and how many geometries."""
AROUND = {
    "each in a member": ("", "<gml:featureMember>\n<a:f gml:id='f'>{}</a:f></gml:featureMember>", ""),
    "without prefixes": ("", "<member><f>{}</f></member>", ""),
    "of AIXM": ("", "<m:hasMember>{}</m:hasMember>".format("<a:f>{}</a:f>"), ""),
    "all in one": ("<gml:featureMembers>", "<a:f>{}</a:f><a:g/>", "</gml:featureMembers>"),
    "in several collections": ("<wfs:member><wfs:FeatureCollection>", "<wfs:member><a:f>{}</a:f></wfs:member>", ""),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_geometries_beside_the_one_that_is_read_are_counted(around: str, size: int) -> None:
    """Wherever they are, and wherever the pieces of the text end."""
    begin, feature, end = AROUND[around]
    for content, counts in FEATURES.items():
        text = f"<C>{EXTENT}{begin}{feature.format(content)}{feature.format(PLACE)}{feature.format(content)}{end}</C>"
        assert _told(text, size) == _sentences(*(2 * count for count in counts)), content


@pytest.mark.no_cover
def test_features_of_many_kinds_are_told_apart() -> None:
    """Although there are no expressions for all of them, which would take long to make."""
    feature = "<gml:featureMember><a:f{0}>{1}</a:f{0}></gml:featureMember>"
    kinds = range(3 * MOST_PATTERNS)
    text = "".join(feature.format(kind, f"<a:n>1</a:n>{PLACE}{EXTENT}{PLACE}{WALL}") for kind in kinds)
    assert _told(text) == _sentences(len(kinds), len(kinds), len(kinds), len(kinds))


@pytest.mark.parametrize("crafted", ["<", "<a:f", "<a:member><", "<a:member><a:b ", "<a:member><a:b><!--"])
def test_what_does_not_end_is_forgotten(crafted: str) -> None:
    """It would be read again with each piece that follows."""
    reading = FurtherGeometries()
    for _ in range(4):
        reading.add((crafted + LONGEST_TAG * 2 * " ").encode())
    assert len(reading._text) <= LONGEST_TAG * 6
    assert reading.told() == []


@pytest.mark.parametrize("far", ["", "</a:f>"])
def test_ends_that_are_missing_or_far_away_are_not_looked_for_again_and_again(far: str) -> None:
    """With a blank in its end, a feature ends as well; a search for the usual end would pass all others each time."""
    features = 5_000
    text = f"<member>{features * f'<a:f>{PLACE}{PLACE}</a:f >'}{far}".encode()
    reading = FurtherGeometries()
    reading.add(text)
    assert reading.told() == _sentences(features, features, 0, 0)
    assert reading._bytes_in_vain <= len(text) + PIECE


def _told(text: str, size: int = 1 << 20) -> list[str]:
    reading, content = FurtherGeometries(), text.encode()
    for start in range(0, len(content), size):
        reading.add(content[start : start + size])
    return reading.told()


def _sentences(features: int, places: int, bounds: int, bounded: int) -> list[str]:
    further = (
        f"Features with several geometries ({features:,}): one of each was read; the others ({places:,}) were left out."
    )
    parts = (
        f"Content of boundedBy other than extents ({bounds}), such as walls and roofs of buildings, was "
        f"left out, with its geometries ({bounded})."
    )
    return [further] * (places > 0) + [parts] * (bounds > 0)
