"""Reads a GeoJSON document as batches of features, in one pass and in bounded memory.

Theory of operation. The outermost object is walked member by member. Its array `features` is cut into windows that end
where one element ends and the next begins. The cut is guessed, by searching backwards for the bytes that stood between
two elements before, and proved by decoding: a window that was cut elsewhere is not valid JSON. A window that does not
decode is read again element by element, and an element that the strict decoder refuses is read by the lenient one.
Pages that have been read are given back, so that a mapped file of any size costs a few windows of memory.
"""

import codecs
import json
import mmap
import re
from collections.abc import Iterator
from operator import attrgetter
from types import NoneType
from typing import Any

import msgspec
from msgspec import Raw

from service.dataloss.features import Feature, Geometry, lenient_decode, normalised
from service.dataloss.refusals import Reason, Unreadable
from service.formats.geometry import FAMILIES

WINDOW_BYTES = 1 << 20
RELEASE_BYTES = 16 << 20
FIRST_GLANCE_BYTES = 1 << 12
KEPT_MEMBER_BYTES = 1 << 16
KEPT_MEMBERS = frozenset({"type", "name", "crs"})
ESRI_MEMBERS = frozenset({"geometryType", "spatialReference", "fieldAliases"})
BOM = codecs.BOM_UTF8

_SPACE = re.compile(rb"[ \t\r\n]*")
_SPACE_OR_SEPARATOR = re.compile(rb"[ \t\r\n\x1e]*")
_KEY = re.compile(rb'("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_CUT_OFF_NAME = re.compile(rb'(?:"(?:[^"\\]|\\.)*(?:\\|"[ \t\r\n]*)?)?\Z', re.DOTALL)
_BETWEEN = re.compile(rb'[^ \t\r\n][ \t\r\n]*,[ \t\r\n]*\{(?:[ \t\r\n]*"[^"\\]{0,64}"[ \t\r\n]*:)?')
_UNFINISHED = ("true", "false", "null", "NaN", "-Infinity", "Infinity", ".", "e+", "e-", "E+", "E-")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_FEATURES = msgspec.json.Decoder(list[Feature])
_FEATURE = msgspec.json.Decoder(Feature)
_GEOMETRY = msgspec.json.Decoder(Geometry)
_VALUE = msgspec.json.Decoder(Raw)
_KINDS = {name.lower(): name for name in ("FeatureCollection", "Feature", *FAMILIES)}
_properties, _geometry = attrgetter("properties"), attrgetter("geometry")


class Document:
    """A GeoJSON document, read once by iterating over `batches`.

    `kind` (the type of its outermost object), `members` (those that say something about the whole) and `skipped`
    (elements of `features` that are no objects) are known when the iteration has ended.
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.kind = ""
        self.members: dict[str, Any] = {}
        self.skipped = 0
        self._esri = False
        self._has_features = False
        self._data = data
        self._view = memoryview(data)
        self._separator = b""
        self._position = 0
        self._released = 0

    def batches(self) -> Iterator[list[Feature]]:
        """The features in the order of the document, some at a time.

        Raises:
            Unreadable: the document is not GeoJSON that the converter would read.
        """
        start = self._open()
        for name in self._names():
            if name == "features" and self._byte() == b"[":
                self._has_features = True
                yield from self._elements()
            else:
                self._pass_member(name)
        self._conclude()
        if self.kind != "FeatureCollection":
            yield [self._whole(start, self._position)]
        yield from self._sequence()

    def _open(self) -> int:
        """Step into the outermost object and return where it begins."""
        head = bytes(self._data[:4])
        if b"\0" in head or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise Unreadable(Reason.NOT_UTF8)
        self._position = len(BOM) if head.startswith(BOM) else 0
        self._skip(_SPACE_OR_SEPARATOR)
        if self._position == len(self._data):
            raise Unreadable(Reason.EMPTY)
        if self._byte() != b"{":
            raise Unreadable(Reason.NOT_GEOJSON if self._byte() in b'["0123456789tfn' else Reason.NOT_JSON)
        self._position += 1
        return self._position - 1

    def _names(self) -> Iterator[str]:
        """The names of the members; each time, the value has to be stepped behind. At last steps behind the object."""
        self._skip()
        if self._byte() != b"}":
            yield self._name()
            self._skip()
            while self._byte() != b"}":
                self._take(b",")
                yield self._name()
                self._skip()
        self._position += 1

    def _name(self) -> str:
        """The name of the member that begins here; steps to its value."""
        match = _KEY.match(self._data, self._position)
        if not match:
            raise self._malformed(len(self._data) if _CUT_OFF_NAME.match(self._data, self._position) else None)
        self._position = match.end()
        return _decode_text(match.group(1))

    def _pass_member(self, name: str) -> None:
        """Step behind the value of a member; keep it when it says something about the document."""
        value_at = self._position
        self._position = self._strict_end(value_at) or self._lenient(value_at)[1]
        self._esri |= name in ESRI_MEMBERS
        if name in KEPT_MEMBERS and self._position - value_at <= KEPT_MEMBER_BYTES:
            self.members[name] = self._lenient(value_at)[0]

    def _conclude(self) -> None:
        """Decide what the document is."""
        kind = self.members.get("type")
        self.kind = _KINDS.get(kind.lower(), "") if isinstance(kind, str) else ""
        if not self.kind:
            topology = kind == "Topology"
            raise Unreadable(Reason.TOPOJSON if topology else Reason.ESRI_JSON if self._esri else Reason.NOT_GEOJSON)
        if self.kind == "FeatureCollection" and not self._has_features:
            raise Unreadable(Reason.NO_FEATURES)

    def _elements(self) -> Iterator[list[Feature]]:
        """The elements of the array that begins here; steps behind it."""
        self._position += 1
        self._skip()
        while self._byte() != b"]":
            features = self._window()
            yield self._one_by_one() if features is None else features
            self._release()
            self._skip()
            if self._byte() == b"]":
                break
            self._take(b",")
            if self._byte() == b"]":
                raise self._malformed()
        self._position += 1

    def _window(self) -> list[Feature] | None:
        """The features of one window, or None when they have to be read one by one."""
        start = self._position
        cut = self._data.rfind(self._separator, start, start + WINDOW_BYTES) if self._separator else -1
        if cut <= start:
            return None
        try:
            features = _FEATURES.decode(b"[%b]" % self._data[start : cut + 1])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if not _are_regular(features):
            return None
        self._position = cut + 1
        return features

    def _one_by_one(self) -> list[Feature]:
        """The features of one window, or just the first one while it is unknown what stands between two."""
        limit = self._position + (WINDOW_BYTES if self._separator else 1)
        features = self._element()
        while between := _BETWEEN.match(self._data, self._last_byte()):
            self._separator = between.group()
            if self._position >= limit:
                break
            self._skip()
            self._take(b",")
            features += self._element()
        return features

    def _element(self) -> list[Feature]:
        """The element that begins here, if it is a feature; steps behind it."""
        start = self._position
        end = self._strict_end(start)
        if end is not None:
            try:
                feature = _FEATURE.decode(self._view[start:end])
            except (msgspec.DecodeError, UnicodeDecodeError):
                feature = Feature()
            if _are_regular([feature]):
                self._position = end
                return [feature]
        value, self._position = self._lenient(start)
        if isinstance(value, dict):
            return [normalised(value)]
        self.skipped += 1
        return []

    def _whole(self, start: int, end: int) -> Feature:
        """The feature that the object between `start` and `end` is; a bare geometry is one without properties."""
        self._position = start
        feature = self._element()[0]
        if isinstance(feature.type, str) and feature.type.lower() == "feature":
            feature.type = "Feature"
        elif isinstance(feature.type, str) and feature.type.lower() in _KINDS:
            feature = Feature(type="Feature", properties={}, geometry=self._bare_geometry(start, end))
        self._position = end
        return feature

    def _bare_geometry(self, start: int, end: int) -> Geometry:
        try:
            return _GEOMETRY.decode(self._view[start:end])
        except (msgspec.DecodeError, UnicodeDecodeError):
            geometry = normalised({"geometry": self._lenient(start)[0]}).geometry
            return geometry if isinstance(geometry, Geometry) else Geometry()

    def _sequence(self) -> Iterator[list[Feature]]:
        """The objects that follow the first one, as in newline-delimited GeoJSON; nothing follows a collection."""
        self._skip(_SPACE_OR_SEPARATOR)
        while self._position < len(self._data):
            if self.kind == "FeatureCollection" or self._byte() != b"{":
                raise Unreadable(Reason.NOT_JSON)
            limit = self._position + WINDOW_BYTES
            batch = []
            while self._position < limit and self._byte() == b"{":
                start = self._position
                batch.append(self._whole(start, self._strict_end(start) or self._lenient(start)[1]))
                self._skip(_SPACE_OR_SEPARATOR)
            yield batch
            self._release()

    def _strict_end(self, start: int) -> int | None:
        """Where the value that begins at `start` ends, or None when it is not strict JSON.

        The decoder tells the end of a value by complaining of what follows it.
        """
        try:
            _VALUE.decode(self._view[start:])
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            return start + int(trailing.group(1)) - 1 if trailing else None
        except RecursionError:
            raise Unreadable(Reason.TOO_DEEP) from None
        return len(self._data)

    def _lenient(self, start: int) -> tuple[Any, int]:
        """The value that begins at `start`, decoded leniently, and where it ends."""
        size = FIRST_GLANCE_BYTES
        while True:
            chunk = self._data[start : start + size]
            is_last = start + size >= len(self._data)
            text = _decode_chunk(chunk, is_last=is_last)
            try:
                value, length = lenient_decode(text)
            except json.JSONDecodeError as error:
                if not _is_cut_off(error, text):
                    raise Unreadable(Reason.NOT_JSON) from None
                if is_last:
                    raise Unreadable(Reason.TRUNCATED) from None
            else:
                if is_last or length < len(text):
                    return value, start + len(text[:length].encode())
            size *= 8

    def _byte(self) -> bytes:
        return bytes(self._data[self._position : self._position + 1])

    def _skip(self, pattern: re.Pattern[bytes] = _SPACE) -> None:
        match = pattern.match(self._data, self._position)
        self._position = match.end() if match else self._position

    def _take(self, expected: bytes) -> None:
        if self._byte() != expected:
            raise self._malformed()
        self._position += 1
        self._skip()

    def _last_byte(self) -> int:
        """Where the last byte of the value is that ends here; blanks may follow it."""
        last = self._position - 1
        while self._data[last] in b" \t\r\n":
            last -= 1
        return last

    def _malformed(self, position: int | None = None) -> Unreadable:
        at = self._position if position is None else position
        return Unreadable(Reason.NOT_JSON if at < len(self._data) else Reason.TRUNCATED)

    def _release(self) -> None:
        """Give back the pages before this position."""
        end = self._position - self._position % mmap.PAGESIZE
        if isinstance(self._data, mmap.mmap) and end - self._released >= RELEASE_BYTES:
            self._data.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end


def _are_regular(features: list[Feature]) -> bool:
    """Whether all have the members that a feature has, so that nothing has to be looked for under other names."""
    return set(map(type, map(_properties, features))) <= {dict, NoneType} and (
        set(map(type, map(_geometry, features))) <= {Geometry, NoneType}
    )


def _is_cut_off(error: json.JSONDecodeError, text: str) -> bool:
    """Whether an error is no more than the end of the text."""
    rest = text[error.pos :].strip()
    if error.msg.startswith("Unterminated"):
        return True
    if error.msg.startswith("Invalid \\"):
        return len(rest) <= len("uXXXX")
    return any(word.startswith(rest) for word in _UNFINISHED)


def _decode_chunk(chunk: bytes, *, is_last: bool) -> str:
    try:
        return codecs.utf_8_decode(chunk, "strict", is_last)[0]
    except UnicodeDecodeError:
        raise Unreadable(Reason.NOT_UTF8) from None


def _decode_text(quoted: bytes) -> str:
    value, _ = lenient_decode(_decode_chunk(quoted, is_last=True))
    return str(value)
