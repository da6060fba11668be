"""Coordinates in KML that the driver does not read: texts that are not numbers, which become 0, and other places."""

import re

_NUMBER = rb"[\d.eE+-]++"
POSITIONS = rb"\s*+(?:" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+(?=[\s,<])\s*+)*+,?+\s*+"
"""Positions of two or three numbers. No byte is read twice."""
POSITION = rb"\s*+" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+,?+\s*+(?=<)"
"""A single one."""
_TO_COORDINATES = rb"(?:[^<]*+<(?!coordinates\b|/?Point\b))*+[^<]*+"
FURTHER_POSITIONS = (
    rb"<Point\b[^<>]*+(?<!/)>" + _TO_COORDINATES + rb"<coordinates>(?!" + POSITION + rb")" + POSITIONS + rb"(?<=\d)</"
)
"""A point with more positions than one."""
UNREAD_POSITIONS = rb"<coordinates>" + POSITIONS + rb"(?:[^<]{200}|[^<]{1,199}</)"
"""An element with anything else, unless that follows more positions than are looked at together.

A position is shorter than 200 bytes, so that one is not mistaken of which the rest is in the next piece.
"""
_PLACE = rb"(?:Point|LineString|LinearRing|Polygon|MultiGeometry|Model|gx:(?:Multi)?Track)\b"
MISPLACED_POSITIONS = (
    rb"<(?:Polygon\b[^<>]*+>\s*+(?:<(?:extrude|tessellate|altitudeMode)>[^<]*+</\w++>\s*+)*+<(?:LinearRing|LineString)\b"
    rb"|(?:Point|LineString|LinearRing)\b[^<>]*+(?<!/)>\s*+[^<\s]"
    rb"|Placemark\b[^<]*+(?:<(?!" + _PLACE + rb"|coordinates\b|/?Placemark\b)[^<]*+)*+<coordinates\b)"
)
"""A ring, or the line that was made of it, of an area that is in no boundary; positions outside of coordinates; and
coordinates outside of geometries."""

_TRACKED = rb"<gx:coord\s*+>"
_BY_BLANKS = rb"\s*+" + _NUMBER + rb"(?:\s++" + _NUMBER + rb"){1,2}+\s*+"
_BY_COMMAS = rb"\s*+" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+\s*+"
SPACED = _NUMBER + rb"(?: " + _NUMBER + rb"){1,2}+"
"""A position of a track as the driver reads it."""
ODD_POSITIONS = rb"<gx:coord\s*+(?:/>|>\s*+</)|" + _TRACKED + rb"(?!" + SPACED + rb"<)[^<]{1,199}+<"
"""Others, and empty elements, which stand for a position that is not known."""
UNREAD_TRACK_POSITIONS = (
    _TRACKED + rb"\s*+(?!(?:" + _BY_BLANKS + rb"|" + _BY_COMMAS + rb")<)(?:[^<]{200}|[^<]{1,199}+<)"
)
_POSITION = re.compile(rb"(?:" + _BY_BLANKS + rb"|" + _BY_COMMAS + rb")")
_SEPARATOR = re.compile(rb"[\s,]++")


def spaced(numbers: bytes, element: bytes) -> bytes:
    """The `element` of a position with these `numbers` as the driver reads it, itself if they are not understood."""
    if not _POSITION.fullmatch(numbers):
        return element
    return b"<gx:coord>" + b" ".join(filter(None, _SEPARATOR.split(numbers))) + b"</gx:coord>"
