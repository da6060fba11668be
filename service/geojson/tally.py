"""The tally of a document's features: fields, ids and geometries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import UnsetType

from service.formats.facts import MAX_NAMES_CHARACTERS, Flaw
from service.formats.geometry import FAMILIES
from service.geojson.crs import crs_epsg, crs_name
from service.geojson.document import Document
from service.geojson.features import Feature
from service.geojson.fields import FieldTally
from service.geojson.findings import MAX_FOREIGN, Scan
from service.geojson.geometries import GeometryTally
from service.geojson.ids import IdTally
from service.geojson.refusals import MAX_FIELDS, MAX_NAME_CHARACTERS, Reason, Unreadable

FEATURE = "Feature"
_id, _properties, _type = attrgetter("id"), attrgetter("properties"), attrgetter("type")


class Tally:
    """Counts batches of features."""

    def __init__(self, *, seeks_edges: bool = False) -> None:
        self._features = 0
        self._untyped = 0
        self._fields: dict[str, FieldTally] = {}
        self._names_characters = 0
        self._geometries = GeometryTally(seeks_edges=seeks_edges)
        self._ids = IdTally()

    def add(self, batch: Sequence[Feature]) -> None:
        """Count a batch of features.

        Raises:
            Unreadable: the features have more properties, or longer property names, than a table can have.
        """
        are_typed = list(map(_type, batch)).count(FEATURE) == len(batch)
        typed = batch if are_typed else [feature for feature in batch if feature.type == FEATURE]
        self._geometries.add(batch, self._features)
        self._untyped += len(batch) - len(typed)
        if not set(map(type, map(_id, typed))) <= {UnsetType}:
            self._ids.add(typed, has_property="id" in self._fields)
        self._add_properties(typed)
        for name, field in self._fields.items():
            if field.is_to_locate:
                field.locate(_values(name, batch, self._features + 1))
        self._features += len(batch)

    def findings(self, document: Document) -> Scan:
        """The findings about `document`, whose batches were added.

        Raises:
            Unreadable: the document is one geometry that cannot be read.
        """
        geometries = self._geometries
        if document.kind in FAMILIES and geometries.flawed[Flaw.UNREADABLE] == self._features:
            raise Unreadable(Reason.BAD_GEOMETRY)
        id_column = self._ids.column(self._fields.get("id"))
        fields = self._fields if id_column is None else {"id": id_column} | self._fields
        layer_name = document.members.get("name")
        epsg = crs_epsg(document.members.get("crs"))
        foreign = dict.fromkeys((*document.foreign, *geometries.foreign))
        return Scan(
            kind=document.kind,
            layer_name=layer_name[:MAX_NAME_CHARACTERS] if isinstance(layer_name, str) else None,
            features=self._features,
            not_features=document.skipped + self._untyped,
            repeated_members=document.repeated,
            foreign_members=tuple(name[:MAX_NAME_CHARACTERS] for name in [*foreign][:MAX_FOREIGN]),
            half_letters=document.half_letters,
            fields=tuple(field.findings(name) for name, field in fields.items()),
            dropped_ids=self._ids.dropped,
            geometry_types=+geometries.types,
            types_with_z=+geometries.types_with_z,
            parts=geometries.parts,
            first={name: number for name, number in geometries.first.items() if name in geometries.types},
            null_geometries=geometries.null,
            empty_geometries=geometries.empty,
            flaws=geometries.flaws(epsg),
            exceeds_degrees=geometries.exceeds_degrees,
            near_edges=geometries.near_edges,
            may_be_infinite=geometries.may_be_infinite,
            may_be_faulty=geometries.may_be_faulty,
            has_many_rings=geometries.has_many_rings,
            crs_epsg=epsg,
            crs_name=crs_name(document.members.get("crs"))[:MAX_NAME_CHARACTERS],
        )

    def _add_properties(self, features: Sequence[Feature]) -> None:
        """Count the values of all properties, column by column."""
        for name, column in _columns(list(filter(None, map(_properties, features)))):
            self._field(name).add(column)

    def _field(self, name: str) -> FieldTally:
        """The tally of one property, created on first use."""
        field = self._fields.get(name)
        if field is None:
            if "\0" in name:
                raise Unreadable(Reason.ZERO_IN_NAMES)
            self._names_characters += len(name)
            if len(self._fields) == MAX_FIELDS:
                raise Unreadable(Reason.TOO_MANY_FIELDS)
            if len(name) > MAX_NAME_CHARACTERS or self._names_characters > MAX_NAMES_CHARACTERS:
                raise Unreadable(Reason.LONG_NAMES)
            field = self._fields.setdefault(name, FieldTally())
        return field


def _values(name: str, batch: Sequence[Feature], number: int) -> Iterator[tuple[int, Any]]:
    """The values of a property, with the numbers of their features, of which the first has `number`."""
    for at, feature in enumerate(batch, number):
        if feature.type == FEATURE and feature.properties:
            yield at, feature.properties.get(name)


def _columns(rows: list[dict[str, Any]]) -> Iterable[tuple[str, list[Any]]]:
    """The names in rows, each with its values; usually all rows have the same names."""
    names = rows[0] if rows else {}
    if len(names) <= MAX_FIELDS and set(map(len, rows)) <= {len(names)}:
        with suppress(KeyError):
            return [(name, list(map(itemgetter(name), rows))) for name in names]
    return _columns_by_names(rows)


def _columns_by_names(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """The same for rows with different names, grouped by their names."""
    groups: defaultdict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row)].append(row)
    for names, group in groups.items():
        for name in names:
            yield name, list(map(itemgetter(name), group))
