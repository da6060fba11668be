"""Coordinates in KML that the driver does not read: texts that are not numbers, which become 0, and other places."""

_NUMBER = rb"[\d.eE+-]++"
POSITIONS = rb"\s*+(?:" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+(?=[\s,<])\s*+)*+,?+\s*+"
"""Positions of two or three numbers. No byte is read twice."""
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
