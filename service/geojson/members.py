"""The members of a feature as the converter finds them: it ignores the case of their names.

Of several members whose names differ only in case it takes the first; of geometries the last, and none if one of them
is null.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

OWN = frozenset({"type", "id", "geometry", "properties"})
"""The members of a feature that the converter reads."""
OF_GEOMETRIES = frozenset({"type", "coordinates", "geometries", "bbox", "crs"})
"""The members of a geometry that GeoJSON defines, and the obsolete one."""
INSIDE = "geometry."
"""What precedes the names of foreign members of geometries."""
GEOMETRY, PROPERTIES = "geometry", "properties"
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_MARKS = {GEOMETRY: b'"geometry"', PROPERTIES: b'"properties"'}


def member(value: dict[str, Any], name: str) -> Any:
    """A member by its name, ignoring case; UNSET if there is none."""
    return next((value[key] for key in value if key.lower() == name), UNSET)


def geometry_member(value: dict[str, Any]) -> Any:
    """The geometry of a feature; UNSET if it has none."""
    found = [value[key] for key in value if key.lower() == GEOMETRY]
    return None if None in found else found[-1] if found else UNSET


def foreign_to_geometry(value: dict[str, Any]) -> list[str]:
    """The names of members of the geometry of a feature that GeoJSON does not define."""
    geometry = geometry_member(value)
    return foreign_to(geometry) if isinstance(geometry, dict) else []


def foreign_to(geometry: dict[str, Any]) -> list[str]:
    """The names of members of a geometry that GeoJSON does not define."""
    return [f"{INSIDE}{name}" for name in geometry if name.lower() not in OF_GEOMETRIES]


def is_repeated(names: Iterable[str]) -> bool:
    """Whether a member that the converter reads occurs more than once."""
    counts = Counter(map(str.lower, names))
    return any(counts[name] > 1 for name in OWN)


def may_repeat(text: bytes, properties: Sequence[Any]) -> bool:
    """A quick check whether features with this text and these properties may repeat geometry or properties."""
    for name, mark in _MARKS.items():
        found = text.count(mark)
        if found > len(properties) and found > len(properties) + sum(name in (row or ()) for row in properties):
            return True
    return False


def repeats(text: bytes) -> bool:
    """Whether an object repeats a member that the converter reads, ignoring case."""
    try:
        members = _MEMBERS.decode(text)
    except msgspec.DecodeError:
        return is_repeated(_names(text.decode("utf-8", "replace")))
    insides = list(map(bytes, members.values()))
    return is_repeated(members) or any(
        text.count(mark) - sum(inside.count(mark) for inside in insides) > 1 for mark in _MARKS.values()
    )


def _names(text: str) -> list[str]:
    """The names of an object's members as written, including repeated ones."""
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [name for name, _ in pairs]  # the outermost object is the last that ends

    json.JSONDecoder(object_pairs_hook=note, strict=False).raw_decode(text)
    return names
