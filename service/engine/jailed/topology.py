"""The geometries of a topology as GeoJSON text, made of the arcs that they share.

No part of the document is decoded before it is needed, and a geometry is written arc by arc, so that memory is bounded
by the document.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw

COLLECTION = "GeometryCollection"
MOST_BYTES_EACH = 100
"""The text of an arc with more bytes for each position is mostly blanks, or digits that no number keeps."""
FEWEST_IN_RING = 4
Members = dict[str, Raw]
Position = list[float]
_ENCODE = msgspec.json.Encoder().encode
_MEMBERS = msgspec.json.Decoder(Members | None)
_LIST = msgspec.json.Decoder(list[Raw])
_POSITION = msgspec.json.Decoder(Position)
_POSITIONS = msgspec.json.Decoder(list[Position])
_OF_LINES: Mapping[str, tuple[int, msgspec.json.Decoder[Any]]] = {
    "LineString": (0, msgspec.json.Decoder(list[int])),
    "MultiLineString": (1, msgspec.json.Decoder(list[list[int]])),
    "Polygon": (1, msgspec.json.Decoder(list[list[int]])),
    "MultiPolygon": (2, msgspec.json.Decoder(list[list[list[int]]])),
}
"""How many lists are around the lists of arcs of a geometry, and what decodes all of them."""


class Damaged(Exception):
    """The document is not a topology."""


class Transform(msgspec.Struct, frozen=True):
    """How whole numbers became of coordinates; positions of arcs count from the one before."""

    scale: tuple[float, float]
    translate: tuple[float, float]

    def place(self, x: float, y: float, others: Sequence[float]) -> Position:
        """The position of two whole numbers; those after them are not transformed."""
        return [x * self.scale[0] + self.translate[0], y * self.scale[1] + self.translate[1], *others]


class Topology:
    """The arcs of a document, and what makes positions of its numbers."""

    def __init__(self, arcs: Raw, transform: Raw) -> None:
        try:
            self._arcs = _LIST.decode(arcs)
            self._transform = msgspec.json.decode(transform, type=Transform | None)
        except msgspec.DecodeError:
            raise Damaged from None

    def geometry(self, members: Members) -> Iterator[bytes]:
        """The pieces of a geometry.

        Raises:
            LookupError, msgspec.DecodeError: it is none, before the first piece.
            Damaged: an arc is none.
        """
        kind = msgspec.json.decode(members["type"])
        if kind is None:
            return iter((b"null",))
        if kind == COLLECTION:
            inner = [self.geometry(members_of(part)) for part in _LIST.decode(members["geometries"])]
            return _wrapped(kind, b"geometries", _between(inner))
        if kind in _OF_LINES:
            depth, decoder = _OF_LINES[kind]
            arcs = decoder.decode(members["arcs"])
            self._require(arcs, depth)
            return _wrapped(kind, b"coordinates", self._lines(arcs, depth, is_ring=kind.endswith("Polygon")))
        place = {"Point": self._point, "MultiPoint": self._points}[kind]
        return _wrapped(kind, b"coordinates", iter((place(members["coordinates"]),)))

    def _point(self, text: Raw) -> bytes:
        return _ENCODE(self._placed(_POSITION.decode(text)))

    def _points(self, text: Raw) -> bytes:
        return _ENCODE([self._placed(position) for position in _POSITIONS.decode(text)])

    def _placed(self, position: Position) -> Position:
        x, y, *others = position
        return position if self._transform is None else self._transform.place(x, y, others)

    def _require(self, arcs: Any, depth: int) -> None:
        """Raise `LookupError` if one of the numbers of arcs, in lists of lists of this depth, is not that of an arc."""
        for _ in range(depth):
            arcs = chain.from_iterable(arcs)
        numbers = {number if number >= 0 else ~number for number in arcs}
        if numbers and max(numbers) >= len(self._arcs):
            raise LookupError

    def _lines(self, arcs: Any, depth: int, *, is_ring: bool) -> Iterator[bytes]:
        parts = (self._lines(line, depth - 1, is_ring=is_ring) for line in arcs) if depth else ()
        inner = _between(parts) if depth else self._line(arcs, is_ring=is_ring)
        return chain((b"[",), inner, (b"]",))

    def _line(self, arcs: Sequence[int], *, is_ring: bool) -> Iterator[bytes]:
        """The positions of arcs that continue each other: each begins where the one before ends, a ring where it does.

        A ring whose last arc ends elsewhere is closed; one that was simplified to a line or a point gets the four
        positions that GeoJSON requires, as the reference implementation of the format does.
        """
        first: Position = []
        last: Position = []
        count = 0
        for number in arcs:
            positions = self._positions(~number)[::-1] if number < 0 else self._positions(number)
            if text := _ENCODE(positions[1:] if first else positions)[1:-1]:
                yield b"," + text if first else text
                count += len(positions) - bool(first)
                first, last = first or positions[0], positions[-1]
        if is_ring and first:
            yield (b"," + _ENCODE(first)) * max(first != last, FEWEST_IN_RING - count)

    def _positions(self, number: int) -> list[Position]:
        try:
            arc = _POSITIONS.decode(self._arcs[number])
            if memoryview(self._arcs[number]).nbytes > MOST_BYTES_EACH * (len(arc) + 1):
                self._arcs[number] = Raw(_ENCODE(arc))  # many geometries may use it: read the blanks once
            return arc if self._transform is None else list(_summed(arc, self._transform.place))
        except (msgspec.DecodeError, ValueError):
            raise Damaged from None


def members_of(text: Raw) -> Members:
    """The members of an object; none of null.

    Raises:
        msgspec.DecodeError: it is neither.
    """
    return _MEMBERS.decode(text) or {}


def _summed(arc: Sequence[Position], place: Callable[[float, float, Sequence[float]], Position]) -> Iterator[Position]:
    at_x = at_y = 0.0
    for x, y, *others in arc:
        at_x += x
        at_y += y
        yield place(at_x, at_y, others)


def _wrapped(kind: str, name: bytes, content: Iterator[bytes]) -> Iterator[bytes]:
    around = (b"[", b"]") if kind == COLLECTION else (b"", b"")
    return chain((b'{"type":"%b","%b":%b' % (kind.encode(), name, around[0]),), content, (around[1] + b"}",))


def _between(several: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """The pieces of all, with a comma after each but the last."""
    for number, pieces in enumerate(several):
        if number:
            yield b","
        yield from pieces
