"""Reads a GeoJSON document as batches of features, in one pass and in bounded memory.

Theory of operation. The reader walks the outermost object member by member. It cuts the array `features` into windows
that end between two elements. It guesses the cut by searching backwards for the bytes that last separated two elements,
and proves it by decoding: a window cut anywhere else is not valid JSON. A window that does not decode is read again
element by element, and an element that the strict decoder rejects is read by the lenient one.
"""

import codecs
import mmap
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import NoneType
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from service.formats.geometry import FAMILIES
from service.geojson.cursor import SPACE_OR_SEPARATOR, Cursor, text_of
from service.geojson.decoding import FeatureDecoder
from service.geojson.features import Feature, Geometry, geometry_of, lenient_decode, normalized
from service.geojson.members import OF_GEOMETRIES, OWN, foreign_to_geometry, is_repeated, may_repeat, member, repeats
from service.geojson.refusals import Reason, Unreadable
from service.geojson.surrogates import find_lone, replace_lone

WINDOW_BYTES = 1 << 20
KEPT_MEMBER_BYTES = 1 << 16
KEPT_NAMES = 50
KEPT_NAME_CHARACTERS = 200
KEPT_MEMBERS = frozenset({"type", "name", "crs"})
OF_FEATURES = frozenset({*OWN, "bbox", "crs"})
UNDERSTOOD = frozenset({*OWN, *KEPT_MEMBERS, "features", "bbox"})
ESRI_MEMBERS = frozenset({"geometryType", "spatialReference", "fieldAliases", "objectIdFieldName", "displayFieldName"})
COLLECTION, FEATURE = "FeatureCollection", "Feature"
LINE_STARTS = frozenset({b"\n", b"\r", b"\x1e"})
"""What precedes an object of a sequence."""

_BETWEEN = re.compile(rb'[^ \t\r\n][ \t\r\n]*,[ \t\r\n]*\{(?:[ \t\r\n]*"[^"\\]{0,64}"[ \t\r\n]*:)?')
_KINDS = {name.lower(): name for name in (COLLECTION, FEATURE, *FAMILIES)}
_ELEMENTS, _ELEMENT = msgspec.json.Decoder(list[Raw]), msgspec.json.Decoder(Raw)
_GEOMETRY = msgspec.json.Decoder(Geometry)
_OBJECT_OR_NULL = frozenset({dict, NoneType})
_properties, _geometry, _type = attrgetter("properties"), attrgetter("geometry"), attrgetter("type")


class Document:
    """A GeoJSON document, read once by iterating over `batches`.

    The following are known after the iteration: `kind` (the type of the outermost object), `members` (those that
    describe the whole document), `skipped` (the number of elements of `features` that are not objects), `repeated` (the
    number of features with repeated members), `foreign` (names of members that are not part of GeoJSON) and
    `half_letters` (the number of unpaired surrogates).
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.kind = ""
        self.members: dict[str, Any] = {}
        self.skipped = 0
        self.repeated = 0
        self._cursor = Cursor(data)
        self._decoder = FeatureDecoder()
        self._others: list[str] = []
        self._is_esri = False
        self._has_features = False
        self._has_begun = False
        self._separator = b""

    @property
    def foreign(self) -> tuple[str, ...]:
        """The names of the foreign members of features and of the document itself."""
        known = OF_GEOMETRIES if self.kind in FAMILIES else OF_GEOMETRIES | UNDERSTOOD
        own = [name for name in self._others if name not in known] if self.kind != FEATURE else ()
        of_features = (name for name in self._decoder.foreign if name not in OF_FEATURES)
        return tuple(dict.fromkeys((*of_features, *own)))

    @property
    def half_letters(self) -> int:
        """The number of unpaired surrogates, which are read as U+FFFD."""
        return sum(1 for _ in find_lone(self._cursor.data)) if self._cursor.was_lenient else 0

    def batches(self) -> Iterator[list[Feature]]:
        """The features in batches, in document order.

        Raises:
            Unreadable: the document is not GeoJSON that the converter would read.
        """
        cursor = self._cursor
        start = self._open()
        for name in self._names():
            if name == "features" and cursor.byte() == b"[":
                self._has_features = True
                yield from self._elements()
            else:
                self._pass_member(name)
        self._conclude()
        if self.kind != COLLECTION:
            yield [self._whole(start, cursor.position)]
        yield from self._sequence()

    def _open(self) -> int:
        """Enter the outermost object and return its position."""
        cursor = self._cursor
        head = bytes(cursor.data[:4])
        if b"\0" in head or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise Unreadable(Reason.NOT_UTF8)
        cursor.position = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        cursor.skip(SPACE_OR_SEPARATOR)
        if not cursor.byte():
            raise Unreadable(Reason.EMPTY)
        if cursor.byte() != b"{":
            cursor.pass_value()
            cursor.skip()
            raise cursor.no_json() if cursor.byte() else Unreadable(Reason.NOT_GEOJSON)
        cursor.position += 1
        return cursor.position - 1

    def _names(self) -> Iterator[str]:
        """The names of the members; the caller must advance past each value. Ends past the object."""
        cursor = self._cursor
        cursor.skip()
        if cursor.byte() != b"}":
            yield cursor.name()
            cursor.skip()
            while cursor.byte() != b"}":
                cursor.take(b",")
                yield cursor.name()
                cursor.skip()
        cursor.position += 1

    def _pass_member(self, name: str) -> None:
        """Advance past the value of a member; keep it if it describes the document."""
        start = self._cursor.position
        self._cursor.pass_value()
        self._is_esri |= name in ESRI_MEMBERS
        if len(self._others) < KEPT_NAMES:
            self._others.append(name[:KEPT_NAME_CHARACTERS])
        if name in KEPT_MEMBERS and self._cursor.position - start <= KEPT_MEMBER_BYTES:
            content = replace_lone(bytes(self._cursor.view[start : self._cursor.position]))
            self.members[name], _ = lenient_decode(text_of(content))

    def _conclude(self) -> None:
        """Determine the kind of the document."""
        kind = self.members.get("type")
        self.kind = _KINDS.get(kind.lower(), "") if isinstance(kind, str) else ""
        if kind == "Topology":
            raise Unreadable(Reason.TOPOJSON)
        if not self.kind:
            raise Unreadable(Reason.ESRI_JSON if self._is_esri else Reason.NOT_GEOJSON)
        if self.kind == COLLECTION and not self._has_features:
            raise Unreadable(Reason.NO_FEATURES)

    def _elements(self) -> Iterator[list[Feature]]:
        """The elements of the array that starts here; advances past it."""
        cursor = self._cursor
        end = self._end_of_last_member()
        if end and (features := self._decoded(bytes(cursor.view[cursor.position : end]))) is not None:
            cursor.position = end
            yield features
            return
        cursor.take(b"[")
        if cursor.byte() != b"]":
            yield self._window()
            cursor.skip()
            while cursor.byte() != b"]":
                cursor.take(b",")
                yield self._window()
                cursor.release()
                cursor.skip()
        cursor.position += 1

    def _end_of_last_member(self) -> int:
        """Where the array that starts here ends if it is the last member of a document of one window; 0 if not so.

        This is a guess, too: an array that is cut elsewhere does not decode.
        """
        cursor = self._cursor
        if len(cursor.data) > WINDOW_BYTES:
            return 0
        end = cursor.data.rfind(b"]") + 1
        return end if end > cursor.position and cursor.data[end:].strip() == b"}" else 0

    def _window(self) -> list[Feature]:
        """The features of one window; advances past it."""
        cursor = self._cursor
        start, end = cursor.position, cursor.position + WINDOW_BYTES
        cut = cursor.data.rfind(self._separator, start, end) if self._separator else -1
        if cut > start:
            features = self._decoded(b"".join((b"[", cursor.view[start : cut + 1], b"]")))
            if features is not None:
                cursor.position = cut + 1
                return features
        return self._one_by_one(end if self._has_begun else start)

    def _decoded(self, chunk: bytes) -> list[Feature] | None:
        """The features of a window, or None if the window is not strict JSON."""
        features = self._regular(chunk, self._decoder.several, _ELEMENTS.decode)
        if features is not None:
            return features
        try:
            return [feature for element in _ELEMENTS.decode(chunk) for feature in self._feature(element)]
        except (msgspec.DecodeError, RecursionError):
            return None

    def _regular(
        self, text: bytes, decode: Callable[[bytes], list[Feature]], divide: Callable[[bytes], list[Raw]]
    ) -> list[Feature] | None:
        """The features in a text, or None if one of them is not regular or the text is not strict JSON."""
        try:
            features = decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        properties = list(map(_properties, features))
        if not set(map(type, properties)) <= _OBJECT_OR_NULL or UnsetType in map(type, map(_geometry, features)):
            return None
        self._decoder.note(features)
        if may_repeat(text, properties):
            self.repeated += sum(repeats(bytes(element)) for element in divide(text))
        return features

    def _one_by_one(self, limit: int) -> list[Feature]:
        """The features of the elements that start before `limit`; reads at least one element."""
        cursor = self._cursor
        features = self._element()
        self._has_begun = True
        while True:
            between = _BETWEEN.match(cursor.data, cursor.last_byte())
            self._separator = between.group() if between else self._separator
            cursor.skip()
            if cursor.position >= limit or cursor.byte() != b",":
                return features
            cursor.take(b",")
            features += self._element()

    def _element(self) -> list[Feature]:
        """The element that starts here, if it is a feature; advances past it."""
        cursor = self._cursor
        start, end = cursor.position, cursor.strict_end()
        if end is None:
            value = cursor.lenient()
            return self._as_feature(value, bytes(cursor.view[start : cursor.position]))
        cursor.position = end
        return self._feature(cursor.view[start:end])

    def _feature(self, element: memoryview | Raw) -> list[Feature]:
        """The feature in an element that is strict JSON, if it is one."""
        try:
            feature = self._decoder.one(element)
        except (msgspec.DecodeError, UnicodeDecodeError):
            feature = Feature()
        text = bytes(element)
        if type(feature.properties) is dict and feature.geometry is not UNSET:
            self._decoder.note([feature])
            self.repeated += may_repeat(text, [feature.properties]) and repeats(text)
            return [feature]
        return self._as_feature(lenient_decode(text_of(text))[0], text)

    def _as_feature(self, value: Any, text: bytes) -> list[Feature]:
        """The feature in a leniently decoded element, if it is one."""
        if not isinstance(value, dict):
            self.skipped += 1
            return []
        self.repeated += is_repeated(value) or (may_repeat(text, [None]) and repeats(text))
        foreign = [] if _becomes_columns(value) else [name for name in value if name.lower() not in OWN]
        self._decoder.foreign.update(dict.fromkeys([*foreign, *foreign_to_geometry(value)][:KEPT_NAMES]))
        return [normalized(value)]

    def _whole(self, start: int, end: int) -> Feature:
        """The object between `start` and `end` as a feature; a bare geometry becomes one without properties.

        Raises:
            Unreadable: it is neither; some versions of the converter would leave it out.
        """
        cursor = self._cursor
        cursor.position = start
        feature = self._element()[0]
        cursor.position = end
        kind = feature.type.lower() if isinstance(feature.type, str) else ""
        if kind == "feature":
            feature.type = "Feature"
            return feature
        if _KINDS.get(kind, COLLECTION) == COLLECTION:
            raise Unreadable(Reason.OTHER_LINES)
        return Feature(type="Feature", properties={}, geometry=_bare_geometry(cursor.view[start:end]))

    def _sequence(self) -> Iterator[list[Feature]]:
        """The objects after the first one, as in newline-delimited GeoJSON; nothing may follow a collection."""
        cursor = self._cursor
        cursor.skip(SPACE_OR_SEPARATOR)
        while cursor.byte():
            begins_line = cursor.data[cursor.position - 1 : cursor.position] in LINE_STARTS
            if self.kind == COLLECTION and not (cursor.byte() == b"{" and begins_line):
                raise cursor.no_json()
            if self.kind == COLLECTION or cursor.byte() != b"{":
                raise Unreadable(Reason.OTHER_LINES)
            limit = cursor.position + WINDOW_BYTES
            batch = self._in_a_row()
            while cursor.position < limit and cursor.byte() == b"{":
                start = cursor.position
                cursor.pass_value()
                batch.append(self._whole(start, cursor.position))
                cursor.skip(SPACE_OR_SEPARATOR)
            yield batch
            cursor.release()

    def _in_a_row(self) -> list[Feature]:
        """The features of one window of a sequence; advances past it. None if one is not regular."""
        cursor = self._cursor
        end = cursor.data.rfind(b"\n", cursor.position, cursor.position + WINDOW_BYTES) + 1
        text = bytes(cursor.view[cursor.position : end])

        def decode(text: bytes) -> list[Feature]:
            features = self._decoder.in_a_row(text)
            if any(kind != "Feature" for kind in map(_type, features)):
                raise msgspec.ValidationError
            return features

        features = self._regular(text, decode, _ELEMENT.decode_lines) or []
        if features:
            cursor.position = end
            cursor.skip(SPACE_OR_SEPARATOR)
        return features


def _bare_geometry(text: memoryview) -> Geometry:
    try:
        return _GEOMETRY.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return geometry_of(lenient_decode(text_of(bytes(text)))[0])


def _becomes_columns(value: dict[str, Any]) -> bool:
    """Whether the feature's own members become columns, because it has no properties."""
    properties = member(value, "properties")
    return not (isinstance(properties, dict) or properties is None or properties == [])
