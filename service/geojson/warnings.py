"""What is lost when a document is read, whatever its target: the sentences about the findings of its scan."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from service.formats.facts import Flaw
from service.formats.geometry import FAMILIES
from service.formats.losses import HOLLOW, flaw_warnings
from service.formats.names import counted, first_of, listed, shown
from service.geojson.findings import Scan

NAMES_SHOWN = 5


_READING = {
    "kept_texts": "{count} in {fields}: the text would change as a date or time (it is more than one, has no seconds, "
    "or names a day that no calendar has), so all dates of the file stay text.",
    "rounded_moments": "{count} in {fields}: times are kept with millisecond precision.",
}
"""Sentences about members of `FieldFindings`, which count values."""
_READ_VALUES = {
    "clamped_integers": "{count} in {fields}: integers beyond 64 bits are clamped to the 64-bit range.",
    "cut_at_nul": "{count} in {fields}: text is cut off at its first NUL character.",
    "nans": "{count} in {fields}: NaN is not a number; the value is missing in results of formats that cannot hold it.",
    "reals_as_texts": "{count} in {fields}: decimal numbers became texts, because other values of the column are "
    "texts, lists or objects; they may have other digits, such as 0.10000000000000001 for 0.1 and 1000.0 for 1e3. "
    "Write them as texts to keep them.",
    "others_as_texts": "{count} in {fields}: integers, true and false became texts, because other values of the column "
    "are texts, lists or objects.",
    "integers_as_reals": "{count} in {fields}: integers beyond 53 bits lost digits, because other values of the column "
    "are decimal numbers. Write them as texts to keep them.",
    "booleans_as_numbers": "{count} in {fields}: true and false became 1 and 0, because other values of the column are "
    "numbers.",
}
_ROUNDED = {
    "rounded_integers": "{count} in {fields}: integers beyond 53 bits may have been rounded, because this host reads "
    "columns with negative ones of 19 digits as reals. Send them as texts to keep them."
}
_READ_PARTS = {Flaw.HOLLOW: HOLLOW}
_READ_POSITIONS = {
    Flaw.OTHER_SYSTEM: "{count} with a coordinate system (crs) in the feature or its geometry: it is not read, and the "
    "coordinates are read as those of the document's system. Name the system in a member crs of the whole document.",
    Flaw.UNREADABLE: "{count} with a geometry that cannot be read, such as one without coordinates, or with texts or "
    "null in place of numbers: only the properties were kept.",
    Flaw.DAMAGED: "{count} with a geometry of which some parts cannot be read: the others were kept.",
    Flaw.HALF_RAISED: "{count} with elevations in some positions of the geometry only: the others got the elevation 0.",
    Flaw.LONGER: "{count} with more than three numbers in positions, such as measures (M): only three of each were "
    "kept.",
}


def reading_warnings(scan: Scan, *, into_json: bool = False, rounds: bool = False) -> list[str]:
    """What is lost when a document is read.

    `into_json`: the target is JSON, which keeps texts, and the members of features; `rounds`: the driver reads some
    integers as reals.
    """
    return list(_reading_warnings(scan, into_json=into_json, rounds=rounds))


def _reading_warnings(scan: Scan, *, into_json: bool, rounds: bool) -> Iterator[str]:
    if scan.half_letters:
        count = counted(scan.half_letters, "escape")
        yield (
            rf"{count} of an unpaired surrogate, such as \ud83d without its second half: U+FFFD is written instead. Of "
            "names in one object that become the same by this, only the last one is kept, with its value."
        )
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
    flaws = [("", scan.flaws)]
    yield from flaw_warnings(_READ_POSITIONS, flaws)
    yield from field_warnings((scan,), _READ_VALUES)
    if not into_json:
        yield from flaw_warnings(_READ_PARTS, flaws)
        yield from field_warnings((scan,), _READING)


def field_warnings(scans: Sequence[Scan], sentences: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each kind of loss in columns, by the member that counts it, with the columns."""
    fields = [field for scan in scans for field in scan.fields]
    for kind, sentence in sentences.items():
        if any(map(attrgetter(kind), fields)):  # hardly ever
            affected = [(field.name, count) for field in fields if (count := getattr(field, kind))]
            names = listed(list(dict.fromkeys(name for name, _ in affected)), NAMES_SHOWN)
            values = counted(sum(count for _, count in affected), "value")
            numbers = [[getattr(field, f"first_{kind}", 0) for field in scan.fields] for scan in scans]
            first = first_of((scan.layer_name or "", known) for scan, known in zip(scans, numbers, strict=True))
            yield sentence.format(count=values, fields=names) + first
