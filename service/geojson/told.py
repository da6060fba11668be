"""What is lost when a document is read, whatever its target: the sentences about the findings of its scan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from service.formats.geometry import FAMILIES
from service.formats.losses import HOLLOW
from service.formats.names import counted, first_of, listed, shown
from service.geojson.findings import Scan

NAMES_SHOWN = 5


class LossCount(msgspec.Struct, frozen=True):
    """Counts what is lost in a column or a document, and says so; `first` finds the first feature, from 1."""

    count: Callable[[Any], int]
    sentence: str
    first: Callable[[Any], int] | None = None


_READING = (
    LossCount(
        attrgetter("kept_texts"),
        "{count} in {fields}: the text is more than a date or time, or names a day that no calendar has, so all dates "
        "of the file stay text.",
    ),
    LossCount(attrgetter("rounded_moments"), "{count} in {fields}: times are kept with millisecond precision."),
)
_READ_VALUES = (
    LossCount(
        attrgetter("clamped_integers"), "{count} in {fields}: integers beyond 64 bits are clamped to the 64-bit range."
    ),
    LossCount(attrgetter("cut_at_nul"), "{count} in {fields}: text is cut off at its first NUL character."),
    LossCount(
        attrgetter("nans"),
        "{count} in {fields}: NaN is not a number; the value is missing in results of formats that cannot hold it.",
    ),
    LossCount(
        attrgetter("reals_as_texts"),
        "{count} in {fields}: decimal numbers became texts, because other values of the column are texts, lists or "
        "objects; they may have other digits, such as 0.10000000000000001 for 0.1 and 1000.0 for 1e3. Write them as "
        "texts to keep them.",
    ),
    LossCount(
        attrgetter("others_as_texts"),
        "{count} in {fields}: integers, true and false became texts, because other values of the column are "
        "texts, lists or objects.",
    ),
    LossCount(
        attrgetter("booleans_as_numbers"),
        "{count} in {fields}: true and false became 1 and 0, because other values of the column are numbers.",
    ),
)
_ROUNDED = (
    LossCount(
        attrgetter("rounded_integers"),
        "{count} in {fields}: integers beyond 53 bits may have been rounded, because the GDAL of this host reads "
        "columns with negative ones of 19 digits as reals. Send them as texts to keep them.",
    ),
)
_READ_PARTS = (LossCount(attrgetter("hollow_geometries"), HOLLOW, attrgetter("first_hollow")),)
_READ_POSITIONS = (
    LossCount(
        attrgetter("own_systems"),
        "{count} with a coordinate system (crs) in the feature or its geometry: it is not read, and the coordinates "
        "are taken for those of the document's system. Name the system in a member crs of the whole document.",
        attrgetter("first_own_system"),
    ),
    LossCount(
        attrgetter("unreadable_geometries"),
        "{count} with a geometry that cannot be read, such as one with texts or null in place of numbers: only the "
        "properties were kept.",
        attrgetter("first_unreadable"),
    ),
    LossCount(
        attrgetter("damaged_geometries"),
        "{count} with a geometry of which some parts cannot be read: the others were kept.",
        attrgetter("first_damaged"),
    ),
    LossCount(
        attrgetter("half_raised_geometries"),
        "{count} with elevations in some positions of the geometry only: the others got the elevation 0.",
        attrgetter("first_half_raised"),
    ),
    LossCount(
        attrgetter("longer_geometries"),
        "{count} with more than three numbers in positions, such as measures (M): only three of each were kept.",
        attrgetter("first_longer"),
    ),
)


def reading_warnings(scan: Scan, *, into_json: bool = False, rounds: bool = False) -> list[str]:
    """What is lost when a document is read.

    `into_json`: the target is JSON, which keeps texts, and the members of features; `rounds`: the driver reads some
    integers as reals.
    """
    return list(_reading_warnings(scan, into_json=into_json, rounds=rounds))


def _reading_warnings(scan: Scan, *, into_json: bool, rounds: bool) -> Iterator[str]:
    if scan.half_letters:
        count = counted(scan.half_letters, "escape")
        yield rf"{count} of an unpaired surrogate, such as \ud83d without its second half: U+FFFD is written instead."
    if scan.repeated_members:
        count = counted(scan.repeated_members, "feature")
        yield f"{count} with geometry, properties, id or type more than once (ignoring case): only one of each is read."
    if scan.not_features:
        count = counted(scan.not_features, "element")
        yield f"{count} of 'features' without the type Feature: content of such elements may have been left out."
    if scan.foreign_members and (not into_json or scan.kind in FAMILIES):
        names = listed([shown(name) for name in scan.foreign_members], NAMES_SHOWN)
        yield f"Members that are not part of GeoJSON are not kept: {names}. Put them into the properties to keep them."
    if scan.dropped_ids and not into_json:
        count = counted(scan.dropped_ids, "feature")
        yield f"{count} with an id outside the properties: it is not written; copy it into the properties to keep it."
    if rounds:
        yield from field_warnings((scan,), _ROUNDED)
    yield from scan_warnings((scan,), _READ_POSITIONS)
    yield from field_warnings((scan,), _READ_VALUES)
    if not into_json:
        yield from scan_warnings((scan,), _READ_PARTS)
        yield from field_warnings((scan,), _READING)


def field_warnings(scans: Sequence[Scan], losses: Sequence[LossCount]) -> Iterator[str]:
    """A sentence for each kind of loss in columns, with the columns."""
    fields = [field for scan in scans for field in scan.fields]
    for loss in losses:
        affected = [(field.name, count) for field in fields if (count := loss.count(field))]
        if affected:
            names = listed(list(dict.fromkeys(name for name, _ in affected)), NAMES_SHOWN)
            values = counted(sum(count for _, count in affected), "value")
            told = loss.sentence.format(count=values, fields=names)
            yield told + _first(loss.first, ((scan, scan.fields) for scan in scans))


def scan_warnings(scans: Sequence[Scan], losses: Sequence[LossCount]) -> Iterator[str]:
    """A sentence for each kind of loss in whole documents."""
    for loss in losses:
        count = sum(map(loss.count, scans))
        if count:
            told = loss.sentence.format(count=counted(count, "feature"))
            yield told + _first(loss.first, ((scan, (scan,)) for scan in scans))


def _first(first_in: Callable[[Any], int] | None, places: Iterable[tuple[Scan, Iterable[Any]]]) -> str:
    """The sentence about the first feature among those that the columns of each scan, or the scan itself, know."""
    if first_in is None:
        return ""
    return first_of((scan.layer_name or "", map(first_in, found)) for scan, found in places)
