"""Decodes features strictly and fast, and records their foreign members.

The decoder rejects a feature with an unknown member, which costs nothing if there is none. Each rejected name is added
to the decoder, so that the next feature with such a member is decoded as fast as any other.
"""

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from service.geojson.features import Feature
from service.geojson.members import OWN

MAX_LEARNED = 50
_UNKNOWN = re.compile(r"unknown field `(.*)` - at `\$", re.DOTALL)
_UNKNOWN_IN_ONE = re.compile(r"unknown field `(.*)`$", re.DOTALL)
T = TypeVar("T")

# Making a decoder costs as much as decoding a few dozen features.
_SEVERAL = msgspec.json.Decoder(list[Feature])
_ONE = msgspec.json.Decoder(Feature)


class FeatureDecoder:
    """Decodes features; `foreign` holds the names of the foreign members recorded so far."""

    def __init__(self) -> None:
        self.foreign: dict[str, None] = {}
        self._learned: dict[str, Callable[[Feature], Any]] = {}
        self._several: msgspec.json.Decoder[list[Feature]] = _SEVERAL
        self._one: msgspec.json.Decoder[Feature] = _ONE

    def several(self, text: bytes) -> list[Feature]:
        """The features in an array; raises `msgspec.DecodeError` if one is not a regular feature."""
        return self._decoded(lambda: self._several.decode(text))

    def one(self, text: memoryview | Raw) -> Feature:
        """The feature in an object; raises `msgspec.DecodeError` if it is not a regular feature."""
        return self._decoded(lambda: self._one.decode(text))

    def note(self, features: Sequence[Feature]) -> None:
        """Record the foreign members of features that this decoder returned."""
        for name, member in self._learned.items():
            if name not in self.foreign and set(map(type, map(member, features))) != {UnsetType}:
                self.foreign[name] = None

    def _decoded(self, decode: Callable[[], T]) -> T:
        while True:
            try:
                return decode()
            except msgspec.ValidationError as error:
                unknown = _UNKNOWN.search(str(error)) or _UNKNOWN_IN_ONE.search(str(error))
                if unknown is None or not self._learn(unknown.group(1)):
                    raise

    def _learn(self, name: str) -> bool:
        """Accept a member `name` from now on; returns whether that is possible."""
        if name.lower() in OWN or name in self._learned or len(self._learned) == MAX_LEARNED:
            return False
        names = [*self._learned, name]
        attributes = [f"foreign_{number}" for number in range(len(names))]
        fields = [(attribute, Raw | UnsetType, UNSET) for attribute in attributes]
        rename = dict(zip(attributes, names, strict=True))
        known: Any = msgspec.defstruct(
            "Feature", fields, bases=(Feature,), rename=rename, gc=False, forbid_unknown_fields=True
        )
        self._learned = {name: attrgetter(attribute) for attribute, name in rename.items()}
        self._several = msgspec.json.Decoder(list[known])
        self._one = msgspec.json.Decoder(known)
        return True
