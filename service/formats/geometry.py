"""Geometry types by their GeoJSON names, and the families in which targets store them."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache


class Family(StrEnum):
    """Geometry types that one dataset of a typed target can hold together."""

    POINT = "point"
    LINE = "line"
    POLYGON = "polygon"
    COLLECTION = "collection"


FAMILIES: Mapping[str, Family] = {
    "Point": Family.POINT,
    "MultiPoint": Family.POINT,
    "LineString": Family.LINE,
    "MultiLineString": Family.LINE,
    "Polygon": Family.POLYGON,
    "MultiPolygon": Family.POLYGON,
    "GeometryCollection": Family.COLLECTION,
}
"""The family of each geometry type."""

NO_GEOMETRY = "None"
"""The `geometryType` of a table."""

SPLIT_FAMILIES = (Family.POINT, Family.LINE, Family.POLYGON)
"""The families that a collection falls apart into, in the order in which they are written."""

ALL_FAMILIES = frozenset(Family)


@lru_cache
def families_of(types: tuple[str, ...]) -> frozenset[Family]:
    """The families among `types`."""
    return frozenset(FAMILIES[name] for name in types)


def dominant_type(histogram: Mapping[str, int]) -> str:
    """The most frequent type; of two equally frequent ones, the simpler; "None" if nothing has geometry."""
    present = {name: count for name, count in histogram.items() if count}
    if not present:
        return NO_GEOMETRY
    order = list(FAMILIES)
    return max(present, key=lambda name: (present[name], -order.index(name)))


def declared_type(types: Iterable[str]) -> str | None:
    """The one type under which all of `types` can be stored, or None if they are of several families.

    A single type stands for itself; types of one family share its Multi type.
    """
    names = set(types)
    if len(names) == 1:
        return names.pop()
    if len(families_of(tuple(names))) != 1:
        return None
    return next(name for name in names if name.startswith("Multi"))
