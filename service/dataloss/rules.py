"""The rules of the data-loss report: what a Shapefile does to the findings of a scan (interface 2.4)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from service.formats.dbf_names import VALUE_BYTES, shortened
from service.formats.facts import FieldType, Flaw, Occurrence
from service.formats.geometry import FAMILIES, SPLIT_FAMILIES, Family
from service.formats.names import shown
from service.geojson.findings import FieldFindings, Scan

COLLECTION = "GeometryCollection"


class JsonRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record that is sent as JSON."""


class FieldNameTruncation(JsonRecord, frozen=True):
    """A name that is too long, and the name written instead, unless that collides."""

    original: str
    truncated: str


class FieldNameCollision(JsonRecord, frozen=True):
    """Names that are shortened to the same name, ignoring case as the table does."""

    truncated_name: str
    fields: tuple[str, ...]


class ValueTruncation(JsonRecord, frozen=True):
    """A column with values that are too long; lengths are in bytes of UTF-8."""

    field: str
    max_length: int
    limit: int
    affected_features: int


class GeometryCoercion(JsonRecord, frozen=True):
    """Geometries that a Shapefile cannot hold unchanged."""

    issue: str
    types: tuple[str, ...]
    detail: str


class Summary(JsonRecord, frozen=True):
    """The number of entries of each kind."""

    fields_truncated: int = 0
    field_name_collisions: int = 0
    fields_with_value_truncation: int = 0
    geometry_issues: int = 0


class Report(JsonRecord, frozen=True):
    """What a conversion from GeoJSON to Shapefile loses (interface 2.4)."""

    applicable: bool
    has_warnings: bool = False
    has_data_loss: bool = False
    feature_count: int = 0
    field_name_truncations: tuple[FieldNameTruncation, ...] = ()
    field_name_collisions: tuple[FieldNameCollision, ...] = ()
    value_truncations: tuple[ValueTruncation, ...] = ()
    geometry_coercions: tuple[GeometryCoercion, ...] = ()
    summary: Summary = Summary()


def not_applicable() -> Report:
    """The report for every conversion other than GeoJSON to Shapefile (interface 4.4)."""
    return Report(applicable=False)


def report(*scans: Scan) -> Report:
    """The report for a scanned document, or for the layers of another source, with one scan each.

    Each layer becomes a Shapefile of its own, so names collide and geometries mix only within a layer.
    """
    truncations = tuple(dict.fromkeys(entry for scan in scans for entry in _truncations(scan)))
    collisions = tuple(dict.fromkeys(entry for scan in scans for entry in _collisions(scan)))
    values = _value_truncations(scans)
    geometries = tuple(_named(entry, scan, scans) for scan in scans for entry in _coercions(scan))
    return Report(
        applicable=True,
        has_warnings=bool(truncations or collisions or values or geometries),
        has_data_loss=bool(collisions or values or geometries),
        feature_count=sum(scan.features for scan in scans),
        field_name_truncations=truncations,
        field_name_collisions=collisions,
        value_truncations=values,
        geometry_coercions=geometries,
        summary=Summary(
            fields_truncated=len(truncations),
            field_name_collisions=len(collisions),
            fields_with_value_truncation=len(values),
            geometry_issues=len(geometries),
        ),
    )


def _truncations(scan: Scan) -> Iterator[FieldNameTruncation]:
    for field in scan.fields:
        if shortened(field.name) != field.name:
            yield FieldNameTruncation(original=field.name, truncated=shortened(field.name))


def _collisions(scan: Scan) -> Iterator[FieldNameCollision]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for field in scan.fields:
        groups[shortened(field.name).casefold()].append(field.name)
    for names in groups.values():
        if len(names) > 1:
            yield FieldNameCollision(truncated_name=shortened(names[0]), fields=tuple(names))


def _value_truncations(scans: Iterable[Scan]) -> tuple[ValueTruncation, ...]:
    columns: defaultdict[str, list[FieldFindings]] = defaultdict(list)
    for field in (field for scan in scans for field in scan.fields):
        if field.over_dbf_limit and field.type is FieldType.TEXT:
            columns[field.name].append(field)
    return tuple(
        ValueTruncation(
            field=name,
            max_length=max(field.longest_bytes for field in fields),
            limit=VALUE_BYTES,
            affected_features=sum(field.over_dbf_limit for field in fields),
        )
        for name, fields in columns.items()
    )


def _named(entry: GeometryCoercion, scan: Scan, scans: Sequence[Scan]) -> GeometryCoercion:
    """The entry, with the name of its layer if there are several."""
    if len(scans) == 1:
        return entry
    return msgspec.structs.replace(entry, detail=f"Layer {shown(scan.layer_name or '')!r}: {entry.detail}")


def _coercions(scan: Scan) -> Iterator[GeometryCoercion]:
    simple = Counter({name: count for name, count in scan.geometry_types.items() if name != COLLECTION})
    present = _in_order([*simple, *scan.parts])
    families = [family for family in SPLIT_FAMILIES if family in {FAMILIES[name] for name in present}]
    if len(families) > 1:
        yield GeometryCoercion(
            issue="mixed_geometry_families",
            types=present,
            detail=f"The features hold {_counts(scan, simple)}. {_whereabouts(families)}",
        )
    if scan.geometry_types.get(COLLECTION):
        yield GeometryCoercion(
            issue="geometry_collection", types=(COLLECTION,), detail=_collection_detail(scan, families)
        )
    unreadable, damaged = (scan.flaws.get(flaw, Occurrence()).count for flaw in (Flaw.UNREADABLE, Flaw.DAMAGED))
    if unreadable or damaged:
        yield GeometryCoercion(
            issue="unreadable_geometry",
            types=(),
            detail=(
                f"{_features(unreadable)} with a geometry that is not valid or has no coordinates, and is left out, "
                f"and {damaged} with a geometry that can be read only in part."
            ),
        )
    if scan.repeated_members:
        yield GeometryCoercion(
            issue="repeated_member",
            types=(),
            detail=(
                f"{_features(scan.repeated_members)} with geometry, properties, id or type more than once (ignoring "
                "case); only one of each is read."
            ),
        )
    if scan.not_features:
        yield GeometryCoercion(
            issue="not_a_feature",
            types=(),
            detail=f"{scan.not_features} of the elements of features are not Features and are not kept unchanged.",
        )


def _counts(scan: Scan, counts: Counter[str]) -> str:
    """Counts and first positions, as in: 3 Point (first in feature 1), 2 Polygon (first in feature 4)."""
    entries = [f"{counts[name]} {name}{_first(scan, name)}" for name in _in_order(counts)]
    collections = scan.geometry_types.get(COLLECTION, 0)
    if collections:
        entries.append(f"{collections} {COLLECTION}{_first(scan, COLLECTION)}")
    return ", ".join(entries)


def _whereabouts(families: Sequence[Family]) -> str:
    """Which Shapefiles the geometries are written to."""
    names = ", ".join(f"{family}s in the one whose name ends in _{family}" for family in families)
    return f"A Shapefile holds one family, so the archive holds {len(families)} Shapefiles: {names}."


def _collection_detail(scan: Scan, families: Sequence[Family]) -> str:
    count = scan.geometry_types[COLLECTION]
    parts = ", ".join(f"{scan.parts[name]} {name}" for name in _in_order(scan.parts))
    where = "the Shapefile" if len(families) == 1 else "the Shapefiles of their families"
    return (
        f"{_features(count)} with a GeometryCollection{_first(scan, COLLECTION)}, "
        f"which a Shapefile cannot hold. The geometries in them ({parts}) are written to {where}."
    )


def _first(scan: Scan, name: str) -> str:
    """The position of the first geometry of a type, if known."""
    return f" (first in feature {scan.first[name]})" if name in scan.first else ""


def _features(count: int) -> str:
    return "1 feature" if count == 1 else f"{count} features"


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The types among `names`, each once, simple types first."""
    present = set(names)
    return tuple(name for name in FAMILIES if name in present)
