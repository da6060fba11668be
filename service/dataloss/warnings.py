"""Losses for which the report has no member; they are reported in `warnings` (interface 2.6).

They occur only if the target is Shapefile.
"""

from collections.abc import Iterator

from service.formats.names import counted
from service.geojson.findings import Scan
from service.geojson.warnings import field_warnings

_FIELD_LOSSES = {
    "nested": "{count} in {fields}: objects and arrays are written as JSON text.",
    "inexact_in_dbf": "{count} in {fields}: numbers with more digits than a Shapefile can hold are rounded.",
    "beyond_dbf": "{count} in {fields}: numbers beyond 1e24 or -1e23 do not fit into a Shapefile; 1e30, for example, "
    "becomes 1e23.",
    "infinite": "{count} in {fields}: a Shapefile cannot hold infinite numbers; programs read what is written "
    "differently.",
    "times": "{count} in {fields}: times are written as text, because a Shapefile has only dates.",
    "empty": "{count} in {fields}: a Shapefile cannot tell empty text from a missing value.",
    "trailing_blanks": "{count} in {fields}: trailing blanks are lost.",
    "leading_blanks": "{count} in {fields}: programs such as QGIS leave out leading blanks.",
}
_SCAN_LOSSES = {
    "null_geometries": "{count} without geometry: the row is written with an empty shape.",
    "empty_geometries": "{count} with an empty geometry: the row is written with an empty shape.",
}
"""Sentences about members of the findings."""


def extra_warnings(*scans: Scan) -> list[str]:
    """One sentence for each kind of loss in a Shapefile that the report has no member for; a scan for each layer."""
    return [*field_warnings(scans, _FIELD_LOSSES), *_scan_warnings(scans)]


def _scan_warnings(scans: tuple[Scan, ...]) -> Iterator[str]:
    for kind, sentence in _SCAN_LOSSES.items():
        if count := sum(getattr(scan, kind) for scan in scans):
            yield sentence.format(count=counted(count, "feature"))
