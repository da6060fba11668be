"""Decodes features strictly and fast, and records their foreign members.

The decoder rejects a feature with an unknown member, which costs nothing if there is none. Each rejected name is added
to the decoder, so that the next feature with such a member is decoded as fast as any other.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from service.geojson.features import Feature, Geometry
from service.geojson.members import INSIDE, OF_GEOMETRIES, OWN

MAX_LEARNED = 50
_UNKNOWN = re.compile(
    r"unknown field `(?P<name>.*?)`(?: - at `\$(?:\[(?:\.\.\.|\d+)\])?(?P<inside>\.geometry)?`)?$", re.DOTALL
)
_NOT_TO_LEARN = re.compile(r'["\\\x00-\x1f]')
"""Characters of names that a decoder cannot be told."""
_geometry = attrgetter("geometry")
T = TypeVar("T")

# Making a decoder costs as much as decoding a few dozen features.
_SEVERAL = msgspec.json.Decoder(list[Feature])
_ONE = msgspec.json.Decoder(Feature)


class FeatureDecoder:
    """Decodes features; `foreign` holds the names of the foreign members recorded so far, also of geometries."""

    def __init__(self) -> None:
        self.foreign: dict[str, None] = {}
        self._learned: list[str] = []
        self._of_geometries: list[str] = []
        self._several: msgspec.json.Decoder[list[Feature]] = _SEVERAL
        self._one: msgspec.json.Decoder[Feature] = _ONE

    def several(self, text: bytes) -> list[Feature]:
        """The features in an array; raises `msgspec.DecodeError` if one is not a regular feature."""
        return self._decoded(lambda: self._several.decode(text))

    def in_a_row(self, text: bytes) -> list[Feature]:
        """The features that follow each other without commas; raises `msgspec.DecodeError` as `several` does."""
        return self._decoded(lambda: self._one.decode_lines(text))

    def one(self, text: memoryview | Raw) -> Feature:
        """The feature in an object; raises `msgspec.DecodeError` if it is not a regular feature."""
        return self._decoded(lambda: self._one.decode(text))

    def note(self, features: Sequence[Feature]) -> None:
        """Record the foreign members of features that this decoder returned."""
        self._note(self._learned, features)
        if self._of_geometries:
            geometries = [geometry for geometry in map(_geometry, features) if isinstance(geometry, Geometry)]
            self._note(self._of_geometries, geometries, INSIDE)

    def _note(self, names: Sequence[str], found: Sequence[object], prefix: str = "") -> None:
        for name, attribute in _attributes(names):
            shown = prefix + name
            if shown not in self.foreign and not set(map(type, map(attrgetter(attribute), found))) <= {UnsetType}:
                self.foreign[shown] = None

    def _decoded(self, decode: Callable[[], T]) -> T:
        while True:
            try:
                return decode()
            except msgspec.ValidationError as error:
                unknown = _UNKNOWN.search(str(error))
                if unknown is None or not self._learn(unknown["name"], is_inside=bool(unknown["inside"])):
                    raise

    def _learn(self, name: str, *, is_inside: bool) -> bool:
        """Accept a member `name`, perhaps of geometries, from now on; returns whether that is possible."""
        own, learned = (OF_GEOMETRIES, self._of_geometries) if is_inside else (OWN, self._learned)
        is_known = name.lower() in own or name in learned
        if is_known or len(learned) == MAX_LEARNED or _NOT_TO_LEARN.search(name):
            return False
        learned.append(name)
        geometry: Any = _extended(Geometry, self._of_geometries)
        known: Any = _extended(Feature, self._learned, ("geometry", geometry | UnsetType | None, UNSET))
        self._several = msgspec.json.Decoder(list[known])
        self._one = msgspec.json.Decoder(known)
        return True


def _attributes(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The names of foreign members, each with that of its attribute."""
    return ((name, f"foreign_{number}") for number, name in enumerate(names))


def _extended(base: type[msgspec.Struct], names: Sequence[str], *others: tuple[str, Any, Any]) -> type[msgspec.Struct]:
    """`base` with further members `names`, and `others` in place of its own."""
    rename = {attribute: name for name, attribute in _attributes(names)}
    fields = [*others, *((attribute, Raw | UnsetType, UNSET) for attribute in rename)]
    return msgspec.defstruct(base.__name__, fields, bases=(base,), rename=rename, gc=False, forbid_unknown_fields=True)
