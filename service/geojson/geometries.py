"""Counts geometries by type and dimension, and finds those that the converter cannot read completely.

Regular coordinates are never parsed into numbers: all coordinates of one type in a batch are reduced to their brackets
and commas, which show whether each geometry matches its type and has two or three numbers per position. Only geometries
that this cannot classify are examined one at a time.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from types import NoneType
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from service.formats.facts import Flaw, Occurrence
from service.formats.geometry import FAMILIES
from service.geojson.crs import crs_epsg
from service.geojson.features import Feature, Geometry, geometry_of, lenient_decode
from service.geojson.members import foreign_to
from service.geojson.refusals import Reason, Unreadable

PIECE_BYTES = 1 << 20
MOST_FOREIGN = 50
SAMPLE_BYTES = 1 << 16
FLAT, WITH_Z, WITH_MORE = 2, 3, 4
MAX_COLLECTIONS = 200
"""The maximum nesting depth of collections."""
COLLECTION = "GeometryCollection"
_NUMBER_BYTES = b"0123456789+-.eE \t\r\n"
_SPACE = b" \t\r\n"
_SPREAD = (b"[ ", b"] ", b"\t", b"\r", b"\n")
"""What there is in coordinates with blanks between brackets."""
_SPACE_AND_SIGNS = _SPACE + b"+-"
_ANY_DIGIT = bytes.maketrans(b"0123456789", b"0" * 10)
_TOO_LARGE = {FLAT: (b"[0000", b",000"), WITH_Z: (b"[0000",)}
"""Longitudes from 1000, latitudes from 100; cannot be distinguished from elevations."""
_LONGITUDE_FROM_180 = re.compile(rb"\[[ \t\r\n]*-?(?:1[89]|[2-9]\d)\d")
_LATITUDE_FROM_85 = re.compile(rb",[ \t\r\n]*-?(?:8[5-9]|9\d)")
"""Also some elevations."""
_HUGE = re.compile(rb"[eE]\+?\d{3}")
_EDGES = (_LONGITUDE_FROM_180, _LATITUDE_FROM_85, re.compile(rb"e\+?\d"), re.compile(rb"E\+?\d"))
_LEVELS = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}
_WITH_RINGS = frozenset({"Polygon", "MultiPolygon"})
_LINE_OF_ONE = re.compile(rb"\s*\[\s*\[[^\[\]]*\]\s*\]")
_WITH_LINES = _WITH_RINGS | {"LineString", "MultiLineString"}
_MARKS = (b"p", b"q", b"r", b"s")
_TYPES = {name.lower(): name for name in FAMILIES}
_NO_GEOMETRY = frozenset({NoneType, UnsetType})
_geometry, _type, _crs = attrgetter("geometry"), attrgetter("type"), attrgetter("crs")


class Shape(msgspec.Struct):
    """How the converter reads one geometry. `type` is None if it cannot read it."""

    type: str | None = None
    has_z: bool = False
    has_flat: bool = False
    """Whether a position has no elevation; beside others that have, it gets 0."""
    has_more: bool = False
    """Whether a position has more than three numbers, of which three are read."""
    is_empty: bool = False
    is_hollow: bool = False
    """Whether a part of it, such as a line, has no position."""
    lost_parts: int = 0
    parts: list["Shape"] = []
    """The geometries in a collection, including those of nested collections."""
    foreign: tuple[str, ...] = ()
    """The names of members of these that GeoJSON does not define, as `foreign_to` has them."""

    @property
    def flaws(self) -> Iterator[Flaw]:
        """What is wrong with it."""
        if self.type is None:
            yield Flaw.UNREADABLE
            return
        if self.lost_parts:
            yield Flaw.DAMAGED
        if self.is_hollow and not self.is_empty:
            yield Flaw.HOLLOW
        if self.has_z and self.has_flat:
            yield Flaw.HALF_RAISED
        if self.has_more:
            yield Flaw.LONGER


class GeometryTally:
    """The tally of the geometries of a document. With `seeks_edges`, it also tells whether any are `near_edges`."""

    def __init__(self, *, seeks_edges: bool = False) -> None:
        self._seeks_edges = seeks_edges
        self.types: Counter[str] = Counter()
        self.types_with_z: Counter[str] = Counter()
        self.first: dict[str, int] = {}
        self.parts: Counter[str] = Counter()
        self.empty = 0
        self.null = 0
        self.flawed: Counter[Flaw] = Counter()
        self._first_flawed: dict[Flaw, int] = {}
        self.systems: dict[int | None, tuple[int, int]] = {}
        """How many features or their geometries name each coordinate system, and the first of them, from 1."""
        self.foreign: dict[str, None] = {}
        """The names of members of geometries in collections that GeoJSON does not define, some of them."""
        self.exceeds_degrees = False
        self.near_edges = False
        self.may_be_infinite = False
        self.may_be_faulty = False
        self.has_many_rings = False

    def add(self, features: Sequence[Feature], features_before: int) -> None:
        """Count the geometries of a batch; `features_before` is the number of features in earlier batches."""
        self._count(features, features_before)
        self._note_systems(features, features_before)
        if self._is_to_locate:
            self._locate(features, features_before)

    def _note_systems(self, features: Sequence[Feature], features_before: int) -> None:
        """Count the features that name a system themselves, which hardly any do."""
        geometries = [geometry for geometry in map(_geometry, features) if isinstance(geometry, Geometry)]
        if not any(map(_crs, chain(features, geometries))):
            return
        for number, feature in enumerate(features, features_before + 1):
            member = (feature.geometry.crs if isinstance(feature.geometry, Geometry) else None) or feature.crs
            if member:
                code = crs_epsg(member)
                count, first = self.systems.get(code, (0, number))
                self.systems[code] = (count + 1, first)

    def flaws(self, of_all: int | None) -> dict[Flaw, Occurrence]:
        """The flaws that occur; `of_all` is the coordinate system of the document."""
        found = {flaw: Occurrence(count, self._first_flawed[flaw]) for flaw, count in self.flawed.items()}
        others = [found for code, found in self.systems.items() if code != of_all or code is None]
        if others:
            found[Flaw.OTHER_SYSTEM] = Occurrence(sum(count for count, _ in others), min(first for _, first in others))
        return found

    @property
    def _is_to_locate(self) -> bool:
        """Whether it has counted geometries with a flaw whose first feature it does not know."""
        return not self.flawed.keys() <= self._first_flawed.keys()

    def _locate(self, features: Sequence[Feature], features_before: int) -> None:
        """Find the first features with such geometries, in the first batch with any."""
        for number, feature in enumerate(features, features_before + 1):
            if isinstance(feature.geometry, Geometry):
                for flaw in shape_of(feature.geometry).flaws:
                    self._first_flawed.setdefault(flaw, number)
                if not self._is_to_locate:
                    return

    def _count(self, features: Sequence[Feature], features_before: int) -> None:
        geometries = list(map(_geometry, features))
        kinds = list(map(_type, geometries)) if _NO_GEOMETRY.isdisjoint(map(type, geometries)) else []
        if kinds and isinstance(kinds[0], str) and kinds.count(kinds[0]) == len(kinds):
            kind = _TYPES.get(kinds[0].lower(), "")
            self.first.setdefault(kind, features_before + 1)
            self._add_group(kind, geometries)
            return
        groups: defaultdict[Any, list[Geometry]] = defaultdict(list)
        for number, feature in enumerate(features, features_before + 1):
            geometry = feature.geometry
            if not isinstance(geometry, Geometry):
                self.null += 1
                continue
            kind = geometry.type
            group = groups[kind if isinstance(kind, str) else ""]
            group.append(geometry)
            if len(group) == 1:
                self.first.setdefault(_TYPES.get(str(kind).lower(), ""), number)
        for kind, group in groups.items():
            self._add_group(_TYPES.get(kind.lower(), ""), group)

    def _add_group(self, kind: str, group: list[Geometry]) -> None:
        """Count geometries of one type."""
        coordinates = [geometry.coordinates for geometry in group]
        dimensions = _regular_dimensions(kind, coordinates)
        if self._seeks_edges and not self.near_edges:
            self.near_edges = kind == COLLECTION or _are_near_edges(coordinates)
        content = [each.geometries for each in group] if kind == COLLECTION else coordinates
        self.may_be_infinite = self.may_be_infinite or _may_be_infinite(content)
        self._look_at_lines(kind, coordinates)
        self.exceeds_degrees = self.exceeds_degrees or _exceed_degrees(coordinates, dimensions or WITH_Z)
        if dimensions is None:
            for geometry in group:
                self._add_shape(shape_of(geometry))
            return
        self.types[kind] += len(group)
        if dimensions == WITH_Z:
            self.types_with_z[kind] += len(group)

    def _look_at_lines(self, kind: str, coordinates: Sequence[Raw]) -> None:
        """Note whether lines, or rings of areas, may be faulty, and whether areas have several rings."""
        if kind == COLLECTION:
            self.may_be_faulty = self.has_many_rings = True
        elif kind == "LineString":
            self.may_be_faulty = self.may_be_faulty or any(map(_LINE_OF_ONE.match, coordinates))
        elif kind in _WITH_LINES and not (self.may_be_faulty and self.has_many_rings):
            text, has_rings = _compact(coordinates), kind in _WITH_RINGS
            self.may_be_faulty = self.may_be_faulty or _may_be_faulty(text, has_rings=has_rings)
            self.has_many_rings = self.has_many_rings or (has_rings and b"]]," in text)

    def _add_shape(self, shape: Shape) -> None:
        """Count one geometry that was examined individually."""
        for flaw in shape.flaws:
            self.flawed[flaw] += 1
        if shape.type is None:
            return
        if shape.foreign and len(self.foreign) < MOST_FOREIGN:
            self.foreign.update(dict.fromkeys(shape.foreign))
        if shape.is_empty:
            self.empty += 1
            return
        self.types[shape.type] += 1
        self.types_with_z[shape.type] += shape.has_z
        self.parts.update(part.type for part in shape.parts if part.type)


def _regular_dimensions(kind: str, coordinates: Sequence[Raw]) -> int | None:
    """2 or 3 if all coordinates match their type and have that many numbers per position, else None."""
    if kind not in _LEVELS:
        return None
    levels = _LEVELS[kind]
    for dimensions, position in ((FLAT, b"[,]"), (WITH_Z, b"[,,]")):
        rest = b"".join(
            piece.replace(position, _MARKS[0]).replace(_MARKS[0] + b",", b"") for piece in _brackets(coordinates)
        )
        for inner, outer in pairwise(_MARKS[: levels + 1]):
            rest = rest.replace(inner + b",", b"").replace(b"[" + inner + b"]", outer)
        if rest == _MARKS[levels] * len(coordinates):
            return dimensions
    return None


def _brackets(coordinates: Sequence[Raw]) -> Iterator[bytes]:
    """The coordinates without their numbers, in pieces that end with a position."""
    rest = b""
    for piece in _pieces(coordinates):
        text = rest + piece.translate(None, _NUMBER_BYTES)
        cut = text.rfind(b"],") + len(b"],") if b"]," in text else 0
        yield text[:cut]
        rest = text[cut:]
    yield rest


def _exceed_degrees(coordinates: Sequence[Raw], dimensions: int) -> bool:
    """Whether numbers are too large to be degrees.

    Counts digits instead of parsing values, and samples only the first of many, because a document in another
    coordinate system has only such coordinates.
    """
    first = next(_pieces(coordinates))[:SAMPLE_BYTES].translate(_ANY_DIGIT, _SPACE_AND_SIGNS)
    return any(mark in first for mark in _TOO_LARGE[dimensions])


def _may_be_infinite(coordinates: Sequence[Raw]) -> bool:
    """Whether coordinates may have numbers that are infinite or none, such as NaN and 1e999."""
    return any(
        b"N" in text or b"I" in text or ((b"e" in text or b"E" in text) and _HUGE.search(text) is not None)
        for text in _pieces(coordinates)
    )


def _compact(coordinates: Sequence[Raw]) -> bytes:
    """The text of coordinates, without blanks between brackets."""
    text = b"".join(coordinates)
    is_spread = any(spread in text[:SAMPLE_BYTES] for spread in _SPREAD)  # one program writes all of them alike
    return text.translate(None, _SPACE) if is_spread else text


def _may_be_faulty(text: bytes, *, has_rings: bool) -> bool:
    """Whether lines may have a single position, or rings of areas a last position other than the first."""
    for line in text.split(b"]]"):
        end = line.find(b"]", 1)
        first = line[:end]
        if b"[[" in first and (end < 0 or (has_rings and not line.endswith(first[first.rfind(b"[") :]))):
            return True
    return False


def _are_near_edges(coordinates: Sequence[Raw]) -> bool:
    """Whether positions may be at or beyond 180 degrees of longitude or 85 of latitude; no such position is missed."""
    text = coordinates[0] if len(coordinates) == 1 else b"".join(coordinates)
    return any(edge.search(text) for edge in _EDGES)


def _pieces(coordinates: Sequence[Raw]) -> Iterator[bytes]:
    """The text of coordinates: of many geometries at once, or of one, which may be huge, in pieces."""
    if len(coordinates) > 1:
        yield b"".join(coordinates)
        return
    view = memoryview(coordinates[0])
    for start in range(0, max(len(view), 1), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


def shape_of(geometry: Geometry) -> Shape:
    """How the converter reads one geometry.

    Raises:
        Unreadable: collections are nested too deeply.
    """
    try:
        return _shape(geometry, MAX_COLLECTIONS)
    except RecursionError:  # deeper still: the encoding on each level exceeds the stack
        raise Unreadable(Reason.TOO_DEEP) from None


def _shape(geometry: Geometry, collections: int) -> Shape:
    """The shape, if at most `collections` collections are nested in it."""
    kind = _TYPES.get(geometry.type.lower()) if isinstance(geometry.type, str) else None
    content = geometry.geometries if kind == COLLECTION else geometry.coordinates
    if kind is None or not bytes(content):
        return Shape()
    decoded = lenient_decode(bytes(content).decode())[0]
    shape = _collection(decoded, collections) if kind == COLLECTION else _READERS[kind](decoded)
    if shape is None:
        return Shape()
    shape.type = kind
    return shape


def _dimensions(position: Any) -> int:
    """How many numbers a position has: 2, 3, or 4 for more, or 0 if it is not a position."""
    if not isinstance(position, list) or len(position) < FLAT:
        return 0
    if any(type(number) not in {int, float} for number in position[:WITH_Z]):
        return 0
    return min(len(position), WITH_MORE)


def _point(position: Any) -> Shape | None:
    dimensions = _dimensions(position)
    return _of_positions({dimensions}) if dimensions else None


def _line(positions: Any) -> Shape | None:
    """A line, a ring or a MultiPoint: one bad position makes it unreadable."""
    if not isinstance(positions, list):
        return None
    dimensions = set(map(_dimensions, positions))
    return None if 0 in dimensions else _of_positions(dimensions)


def _of_positions(dimensions: set[int]) -> Shape:
    """The shape of positions that have such numbers of numbers."""
    return Shape(
        has_z=max(dimensions, default=0) >= WITH_Z,
        has_flat=FLAT in dimensions,
        has_more=WITH_MORE in dimensions,
        is_empty=not dimensions,
    )


def _polygon(rings: Any) -> Shape | None:
    """A polygon: a bad outer ring makes it unreadable; a bad inner ring is left out."""
    if not isinstance(rings, list) or not rings:
        return None
    if rings[0] is None:
        return Shape(is_empty=True, lost_parts=1)
    outer = _line(rings[0])
    return None if outer is None else _joined([outer, *map(_line, rings[1:])], is_empty=outer.is_empty)


def _multi_line(lines: Any) -> Shape | None:
    return _joined(list(map(_line, lines))) if isinstance(lines, list) else None


def _multi_polygon(polygons: Any) -> Shape | None:
    if not isinstance(polygons, list):
        return None
    joined = _joined([_polygon(rings) for rings in polygons if rings != []])
    joined.is_hollow |= [] in polygons
    return joined


def _collection(members: Any, collections: int) -> Shape | None:
    if not isinstance(members, list):
        return None
    if collections == 0:
        raise Unreadable(Reason.TOO_DEEP)
    shapes = [_shape(geometry_of(member), collections - 1) for member in members if member is not None]
    joined = _joined([shape if shape.type else None for shape in shapes])
    for shape in shapes:
        joined.parts.extend(shape.parts if shape.type == COLLECTION else [shape] if shape.type else [])
    joined.parts = [part for part in joined.parts if not part.is_empty]
    names = [name for member in members if isinstance(member, dict) for name in foreign_to(member)]
    joined.foreign = tuple(dict.fromkeys(chain(names, *(shape.foreign for shape in shapes))))
    return joined


def _joined(parts: Sequence[Shape | None], *, is_empty: bool | None = None) -> Shape:
    """The shape made of `parts`, of which unreadable ones are None; `is_empty` is told of rings, which are no parts."""
    readable = [part for part in parts if part is not None]
    return Shape(
        has_z=any(part.has_z for part in readable),
        has_flat=any(part.has_flat for part in readable),
        has_more=any(part.has_more for part in readable),
        is_empty=all(part.is_empty for part in readable) if is_empty is None else is_empty,
        is_hollow=is_empty is None and any(part.is_empty or part.is_hollow for part in readable),
        lost_parts=len(parts) - len(readable) + sum(part.lost_parts for part in readable),
    )


_READERS = {
    "Point": _point,
    "MultiPoint": _line,
    "LineString": _line,
    "MultiLineString": _multi_line,
    "Polygon": _polygon,
    "MultiPolygon": _multi_polygon,
}
