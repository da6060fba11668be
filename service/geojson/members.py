"""The members of a feature as the converter finds them, whose names it compares without regard to case.

Of several that are called the same but for case it takes the first; of geometries the last, and none at all where one
of them is null.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

OWN = frozenset({"type", "id", "geometry", "properties"})
"""What the converter reads of a feature."""
GEOMETRY, PROPERTIES = "geometry", "properties"
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_MARKS = {GEOMETRY: b'"geometry"', PROPERTIES: b'"properties"'}


def member(value: dict[str, Any], name: str) -> Any:
    """A member by its name in any case, UNSET where there is none."""
    return next((value[key] for key in value if key.lower() == name), UNSET)


def geometry_member(value: dict[str, Any]) -> Any:
    """The geometry of a feature, UNSET where it has none."""
    found = [value[key] for key in value if key.lower() == GEOMETRY]
    return None if None in found else found[-1] if found else UNSET


def is_repeated(names: Iterable[str]) -> bool:
    """Whether what the converter reads once is there more than once."""
    counts = Counter(map(str.lower, names))
    return any(counts[name] > 1 for name in OWN)


def may_repeat(text: bytes, properties: Sequence[Any]) -> bool:
    """Whether features with these properties, whose text this is, may have geometry or properties twice; a glance."""
    for name, mark in _MARKS.items():
        found = text.count(mark)
        if found > len(properties) and found > len(properties) + sum(name in (row or ()) for row in properties):
            return True
    return False


def repeats(text: bytes) -> bool:
    """Whether an object has what the converter reads once more than once, under equal names or names alike."""
    try:
        members = _MEMBERS.decode(text)
    except msgspec.DecodeError:
        return is_repeated(_names(text.decode("utf-8", "replace")))
    insides = list(map(bytes, members.values()))
    return is_repeated(members) or any(
        text.count(mark) - sum(inside.count(mark) for inside in insides) > 1 for mark in _MARKS.values()
    )


def _names(text: str) -> list[str]:
    """The names of an object's members as they are written, each as often as it is there."""
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [name for name, _ in pairs]  # the outermost object is the last that ends

    json.JSONDecoder(object_pairs_hook=note, strict=False).raw_decode(text)
    return names
