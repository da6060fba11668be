"""Writes the radii of circles and arcs around a center in units that the driver of GML knows.

It knows few notations, and only where coordinates are degrees: elsewhere, a kilometer would become a meter.
"""

import re
from decimal import Decimal, InvalidOperation

from service.formats.mending import Mending

METER, FOOT = b"m", b"ft"
_NAMES = {
    ("1", METER): "m M metre meter metres meters {epsg}9001",
    ("1", FOOT): "ft FT [ft_i] {epsg}9002",
    ("1000", METER): "km KM {epsg}9036",
    ("1852", METER): "nm NM [nmi_i] {epsg}9030",
    ("1609.344", METER): "mi MI [mi_i] {epsg}9093",
}
UNITS = {
    name.format(epsg=start).encode(): (Decimal(factor), unit)
    for (factor, unit), names in _NAMES.items()
    for name in names.split()
    for start in ("urn:ogc:def:uom:EPSG::", "http://www.opengis.net/def/uom/EPSG/0/", "#")
}
"""By the name of a unit: the factor to the one that is written, and its name."""
_UOM = rb"uom\s*+=\s*+[\"'](?:%b)[\"']"
_KNOWN = rb"|".join(map(re.escape, UNITS))
RADIUS = re.compile(
    rb"<gml:radius\s++uom\s*+=\s*+[\"'](?P<unit>(?!(?:m|ft)[\"'])(?:"
    + _KNOWN
    + rb"))[\"']\s*+>\s*+(?P<radius>[\d.]{1,40}+)\s*+</"
)
"""A radius to rewrite."""
_CENTERED = rb"(?:\w{1,20}+:)?+(?:Circle|Arc)ByCenterPoint\b"
UNKNOWN_RADII = (
    rb"<"
    + _CENTERED
    + rb"[^<>]*+>(?:[^<]*+<(?!(?:\w{1,20}+:)?+radius\b|/?"
    + _CENTERED
    + rb")[^<>]*+>)*+[^<]*+<(?:\w{1,20}+:)?+radius\b(?![^<>]*?\s"
    + _UOM % _KNOWN
    + rb")[^<>]*+>"
)
"""Radii in other units, and without any. So that no byte is read twice, no match goes on to another arc."""
_FEET = rb"|".join(re.escape(name) for name, known in UNITS.items() if known == (Decimal(1), FOOT))
RADII_IN_FEET = rb"<gml:radius\s++uom\s*+=\s*+[\"'](?:%b)[\"']" % _FEET
IN_METERS = re.compile(rb"<gml:radius\s++uom\s*+=\s*+[\"']%b[\"']" % METER)
"""A radius in meters, as it is written here, too."""


def _in_known_unit(found: re.Match[bytes]) -> bytes:
    factor, unit = UNITS[found["unit"]]
    try:
        radius = format(Decimal(found["radius"].decode()) * factor, "f").encode()
    except InvalidOperation:
        return found[0]  # the driver tells that it is no number
    return b'<gml:radius uom="%b">%b</' % (unit, radius)


with_known_radii = Mending(RADIUS, _in_known_unit, within=b"radius", end=b"</")
