"""Losses for which the report has no member; they are reported in `warnings` (interface 2.6).

They occur only if the target is Shapefile.
"""

from operator import attrgetter

from service.formats.facts import FieldType
from service.geojson.findings import Scan
from service.geojson.told import LossCount, field_warnings, scan_warnings

_FIELD_LOSSES = (
    LossCount(attrgetter("nested"), "{count} in {fields}: objects and arrays are written as JSON text."),
    LossCount(
        attrgetter("inexact_in_dbf"),
        "{count} in {fields}: numbers with more digits than a Shapefile can hold are rounded.",
    ),
    LossCount(
        attrgetter("beyond_dbf"),
        "{count} in {fields}: numbers beyond 1e24 or -1e23 do not fit into a Shapefile; 1e30 becomes 1e23, say.",
        attrgetter("first_beyond_dbf"),
    ),
    LossCount(
        attrgetter("infinite"),
        "{count} in {fields}: a Shapefile cannot hold infinite numbers; programs read what is written differently.",
    ),
    LossCount(
        lambda field: field.filled or 0 if field.type in {FieldType.DATETIME, FieldType.TIME} else 0,
        "{count} in {fields}: times are written as text, because a Shapefile has only dates.",
    ),
    LossCount(attrgetter("empty"), "{count} in {fields}: a Shapefile cannot tell empty text from a missing value."),
    LossCount(attrgetter("trailing_blanks"), "{count} in {fields}: trailing blanks are lost."),
)
_SCAN_LOSSES = (
    LossCount(attrgetter("null_geometries"), "{count} without geometry: the row is written with an empty shape."),
    LossCount(
        attrgetter("empty_geometries"), "{count} with an empty geometry: the row is written with an empty shape."
    ),
)


def extra_warnings(*scans: Scan) -> list[str]:
    """One sentence for each kind of loss in a Shapefile that the report has no member for; a scan for each layer."""
    return [*field_warnings(scans, _FIELD_LOSSES), *scan_warnings(scans, _SCAN_LOSSES)]
