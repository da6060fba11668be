"""Losses for which the report has no member; they are reported in `warnings` (interface 2.6).

Some occur when GeoJSON is read, whatever the target; the others only if the target is Shapefile.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from service.formats.facts import FieldType
from service.formats.names import first_of, listed, shown
from service.geojson.findings import FieldFindings, Scan

NAMES_SHOWN = 5

OVERSIZE = "{count} in {fields}: numbers beyond 1e24 or -1e23 do not fit into a Shapefile; 1e30 becomes 1e23, say."
_FIRST = {OVERSIZE: attrgetter("first_oversize")}
"""What finds the number of the first feature, from 1, by the sentence that names it."""

_FieldWarnings = tuple[tuple[Callable[[FieldFindings], int], str], ...]
_READING: _FieldWarnings = (
    (
        attrgetter("kept_texts"),
        "{count} in {fields}: only the start of the text is a date or time, so all dates of the file stay text.",
    ),
    (
        attrgetter("rounded_moments"),
        "{count} in {fields}: times are kept with millisecond precision.",
    ),
)
_FIELD_WARNINGS: _FieldWarnings = (
    (
        attrgetter("nested"),
        "{count} in {fields}: objects and arrays are written as JSON text.",
    ),
    (
        attrgetter("clamped_integers"),
        "{count} in {fields}: integers beyond 64 bits are clamped to the 64-bit range.",
    ),
    (
        attrgetter("inexact_numbers"),
        "{count} in {fields}: numbers with more digits than a Shapefile can hold are rounded.",
    ),
    (
        attrgetter("oversize_numbers"),
        OVERSIZE,
    ),
    (
        attrgetter("infinite_numbers"),
        "{count} in {fields}: a Shapefile cannot hold infinite numbers; programs read what is written differently.",
    ),
    (
        lambda field: field.values - field.nulls if field.type in {FieldType.DATETIME, FieldType.TIME} else 0,
        "{count} in {fields}: times are written as text, because a Shapefile has only dates.",
    ),
    (
        attrgetter("empty"),
        "{count} in {fields}: a Shapefile cannot tell empty text from a missing value.",
    ),
    (
        attrgetter("trailing_blanks"),
        "{count} in {fields}: trailing blanks are lost.",
    ),
    (
        attrgetter("cut_at_nul"),
        "{count} in {fields}: text is cut off at its first NUL character.",
    ),
)

_ScanWarnings = tuple[tuple[Callable[[Scan], int], Callable[[Scan], int] | None, str], ...]
"""What finds the count, and perhaps the number of the first feature, for each sentence."""
_READ_POSITIONS: _ScanWarnings = (
    (
        attrgetter("half_raised_geometries"),
        attrgetter("first_half_raised"),
        "{count} with elevations in some positions of the geometry only: the others got the elevation 0.",
    ),
    (
        attrgetter("longer_geometries"),
        attrgetter("first_longer"),
        "{count} with more than three numbers in positions, such as measures (M): only three of each were kept.",
    ),
)
_SCAN_WARNINGS: _ScanWarnings = (
    (attrgetter("null_geometries"), None, "{count} without geometry: the row is written with an empty shape."),
    (attrgetter("empty_geometries"), None, "{count} with an empty geometry: the row is written with an empty shape."),
)


def extra_warnings(*scans: Scan) -> list[str]:
    """One sentence for each kind of loss in a Shapefile that the report has no member for; a scan for each layer."""
    return [*_field_warnings(scans, _FIELD_WARNINGS), *_scan_warnings(scans, _SCAN_WARNINGS)]


def reading_warnings(scan: Scan, *, into_json: bool = False) -> list[str]:
    """What is lost when a document is read; `into_json`: the target is JSON, which keeps texts and members."""
    return list(_reading_warnings(scan, into_json=into_json))


def _reading_warnings(scan: Scan, *, into_json: bool) -> Iterator[str]:
    if scan.half_letters:
        count = _counted(scan.half_letters, "escape")
        yield rf"{count} of an unpaired surrogate, such as \ud83d without its second half: U+FFFD is written instead."
    if scan.repeated_members:
        count = _counted(scan.repeated_members, "feature")
        yield f"{count} with geometry, properties, id or type more than once (ignoring case): only one of each is read."
    if scan.foreign_members and not into_json:
        names = listed([shown(name) for name in scan.foreign_members], NAMES_SHOWN)
        yield f"Members that are not part of GeoJSON are not kept: {names}. Put them into the properties to keep them."
    if scan.dropped_ids and not into_json:
        count = _counted(scan.dropped_ids, "feature")
        yield f"{count} with an id outside the properties: it is not written; copy it into the properties to keep it."
    yield from _scan_warnings((scan,), _READ_POSITIONS)
    if not into_json:
        yield from _field_warnings((scan,), _READING)


def _field_warnings(scans: Sequence[Scan], table: _FieldWarnings) -> Iterator[str]:
    fields = [field for scan in scans for field in scan.fields]
    for count_in, sentence in table:
        affected = [(field.name, count) for field in fields if (count := count_in(field))]
        if affected:
            names = listed(list(dict.fromkeys(name for name, _ in affected)), NAMES_SHOWN)
            values = _counted(sum(count for _, count in affected), "value")
            first = _FIRST.get(sentence)
            yield sentence.format(count=values, fields=names) + (_first(first, scans) if first else "")


def _first(first_in: Callable[[FieldFindings], int], scans: Sequence[Scan]) -> str:
    return first_of((scan.layer_name or "", map(first_in, scan.fields)) for scan in scans)


def _scan_warnings(scans: Sequence[Scan], table: _ScanWarnings) -> Iterator[str]:
    for count_in, first_in, sentence in table:
        count = sum(map(count_in, scans))
        if count:
            first = first_of((scan.layer_name or "", (first_in(scan),)) for scan in scans) if first_in else ""
            yield sentence.format(count=_counted(count, "feature")) + first


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
