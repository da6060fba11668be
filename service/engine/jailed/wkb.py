"""Geometries as bytes: reads them, splits collections, turns surfaces into polygons. Runs in the sandbox.

Operates on ISO WKB in little-endian order, which the work file uses.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, permutations
from typing import NamedTuple

from service.engine.jailed.gpkg import WKB_TYPES

POINT, LINE, POLYGON = 1, 2, 3
ARCS, COMPOUND, CURVE_POLYGON = 8, 9, 10
MULTI = {POINT: 4, LINE: 5, POLYGON: 6, ARCS: 5, COMPOUND: 5, CURVE_POLYGON: 6}
"""The Multi type for each type; the families of 4, 5 and 6 are points, lines and areas."""
CURVED = {ARCS, COMPOUND, CURVE_POLYGON}
CURVED_MULTI = {5: 11, 6: 12}
"""The Multi type with curves for each one without."""
COLLECTION = 7
GATHERINGS = {4, 5, 6, COLLECTION, 11, 12}
SURFACES = {15: 6, 16: 6, 17: POLYGON}
"""The type that replaces a surface."""
OF_PATCHES = {15, 16}
OF_LINES = {POINT, LINE, ARCS, POLYGON, 17}
AREAS = {POLYGON, CURVE_POLYGON, 17}
RINGED = {POLYGON, 17}
MULTI_AREA = 6
WITH_AREAS = {POLYGON, MULTI_AREA, COLLECTION, *SURFACES}
MOST_COMPARED = 200
"""The number of areas, or rings, of a geometry that are compared with each other."""
NEAR = 1 / 64
"""How far a point in a ring is from one of its corners, as a part of the way between the corners beside it."""
MAX_DEPTH = 32
TURN = 360.0
COORDINATE_BYTES = 8
PLACE_BYTES = 2 * COORDINATE_BYTES
ISO_STEP = 1000
WITH_Z = {1, 3}
DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}
"""Coordinates per point, by the thousands of an ISO code: XY, Z, M, ZM."""
Place = tuple[float, float]
Box = tuple[float, ...]
"""The least x and y, and the largest; nothing if there are none."""
MANY = 4
"""Of so many parts, looking at all at once takes less time than at one after the other."""

_HEAD = struct.Struct("<BI")
_COUNT = struct.Struct("<I")
_CODE_AND_COUNT = struct.Struct("<II")
_NONE = _COUNT.pack(0)
_ONE = _COUNT.pack(1)


class WkbGeometry(NamedTuple):
    """A geometry, which consists of lines of positions (its point, its line, or its rings) or of other geometries."""

    wkb: memoryview
    kind: int
    """The thousands of its code, which tell its dimensions."""
    basic: int
    """The rest of its code, which tells its type."""
    lines: Sequence["memoryview[float]"]
    parts: Sequence["WkbGeometry"]

    def heights(self) -> Iterator[float]:
        """The elevations of all positions, if it has any."""
        if self.kind in WITH_Z:
            for line in self.lines:
                yield from line[2 :: DIMENSIONS[self.kind]]
            for part in self.parts:
                yield from part.heights()


def read(wkb: bytes | bytearray) -> WkbGeometry:
    """Read a geometry, whose positions can be changed if `wkb` can.

    Raises:
        ValueError: it contains something other than a geometry, is nested too deeply, or is cut off.
        struct.error: it is cut off.
    """
    return _read(memoryview(wkb), 0, 0)[0]


def gathered(code: int, parts: Sequence[bytes]) -> bytes:
    """A geometry with this code that consists of these parts."""
    return struct.pack("<BII", 1, code, len(parts)) + b"".join(parts)


def parts_by_family(wkb: bytes) -> dict[str, bytes]:
    """The parts of a geometry collection: one Multi geometry per family, by the name of its type.

    Raises:
        ValueError: as `read`, or it contains a geometry that is neither simple nor a curve.
        struct.error: as `read`.
    """
    whole = read(wkb)
    found: dict[int, list[bytes]] = {}
    curved: set[int] = set()
    for single, may_be_curved in _singles(whole):
        family = MULTI[single.basic]
        found.setdefault(family, []).append(bytes(single.wkb))
        if may_be_curved or single.basic in CURVED:
            curved.add(family)
    return {
        WKB_TYPES[family]: gathered(
            whole.kind * ISO_STEP + (CURVED_MULTI[family] if family in curved else family), parts
        )
        for family, parts in sorted(found.items())
    }


def is_curved(wkb: bytes) -> bool:
    """Whether a Multi geometry contains curves."""
    return struct.unpack_from("<I", wkb, 1)[0] % ISO_STEP in CURVED_MULTI.values()


def count_sloping(wkb: bytes) -> int:
    """How many areas of a geometry have points with different elevations; raises as `read`."""
    has_z = struct.unpack_from("<I", wkb, 1)[0] // ISO_STEP in WITH_Z
    return _count_sloping(read(wkb)) if has_z else 0


def as_polygons(wkb: bytes) -> bytes:
    """A geometry with its polyhedral surfaces, TINs and triangles as polygons; raises as `read`."""
    return _as_polygons(read(wkb))


def may_lack_positions(wkb: bytes, start: int = 0) -> bool:
    """Whether the geometry at `start` may have numbers that are infinite or none, empty parts, or faulty lines.

    Looks at the last byte of each number, which tells its exponent, and takes less time than `read`. Raises as that.
    """
    for ends in _ends_of_parts(wkb, start) or _ends_of_numbers(wkb, start):
        if not ends or b"\x7f" in ends or b"\xff" in ends:
            return True
    code, count = _CODE_AND_COUNT.unpack_from(wkb, start + 1)
    if code % ISO_STEP not in WITH_AREAS or (code % ISO_STEP == POLYGON and count == 1):
        return False
    geometry = _read(memoryview(wkb), start, 0)[0]
    return _has_nested_area(geometry) or _has_ambiguous_rings(geometry)


def _ends_of_numbers(wkb: bytes, at: int) -> Iterator[bytes]:
    """The last byte of each number, line by line; an empty piece stands for no numbers, or a faulty line."""
    while at < len(wkb):
        kind, basic = divmod(_HEAD.unpack_from(wkb, at)[1], ISO_STEP)
        if kind not in DIMENSIONS:
            raise ValueError("not a geometry that can be read")
        at += _HEAD.size
        lines = 1
        if basic not in {POINT, LINE, ARCS}:
            (lines,) = _COUNT.unpack_from(wkb, at)
            at += _COUNT.size
            if not lines:
                yield b""
        box: Box = ()
        for _ in range(lines if basic in OF_LINES else 0):
            count = 1
            if basic != POINT:
                (count,) = _COUNT.unpack_from(wkb, at)
                at += _COUNT.size
            size = DIMENSIONS[kind] * COORDINATE_BYTES
            end = at + count * size
            is_open = basic in RINGED and wkb[at : at + PLACE_BYTES] != wkb[end - size : end - size + PLACE_BYTES]
            if is_open or (count == 1 and basic != POINT):
                yield b""
            if basic in RINGED and lines > 1:
                places = _numbers(memoryview(wkb), at, end)
                box = box or _box(places, DIMENSIONS[kind])
                if not _begins_within(places, box):
                    yield b""
            yield wkb[at + COORDINATE_BYTES - 1 : end : COORDINATE_BYTES]
            at = end


def _ends_of_parts(wkb: bytes, at: int) -> list[bytes]:
    """The same at once, with bytes between that are 0, if it is of many points, lines, or areas of one ring each."""
    code, count = _CODE_AND_COUNT.unpack_from(wkb, at + 1)
    kind, basic = divmod(code, ISO_STEP)
    if kind not in DIMENSIONS or basic not in MULTI.values() or count < MANY:
        return []
    parts = wkb[at + _HEAD.size + _COUNT.size :]
    head = parts[: _HEAD.size + (_COUNT.size if basic == MULTI[POLYGON] else 0)]
    is_of_one = basic != MULTI[POLYGON] or head.endswith(_ONE)
    if (
        not is_of_one
        or parts.count(head) != count
        or (basic != MULTI[POINT] and (head + _NONE in parts or head + _ONE in parts))
    ):
        return []
    first, last = _COUNT.size, -DIMENSIONS[kind] * COORDINATE_BYTES
    lines = parts.split(head)[1:] if basic == MULTI[POLYGON] else []
    if any(line[first : first + PLACE_BYTES] != line[last:][:PLACE_BYTES] for line in lines):
        return []
    return [parts.replace(head, b"" if basic == MULTI[POINT] else _NONE)[COORDINATE_BYTES - 1 :: COORDINATE_BYTES]]


def mended(wkb: bytes) -> tuple[bytes | None, bool, bool, bool, bool, bool, bool, bool]:
    """A geometry without parts that have no position, and with elevations 0 that are no finite numbers.

    None if other coordinates, but measures, are no finite numbers, or all parts have no position. Raises as `read`.

    Returns also whether there were such parts, such elevations, rings that do not end where they begin, lines or
    rings of a single position, holes that begin outside of their areas, areas around others, the first of which is
    counterclockwise, and rings of which a format that stores nothing but rings would not know what they are.
    """
    changed = bytearray(wkb)
    geometry = read(changed)
    is_nowhere, is_heightless = _zero_heights(geometry)
    if is_nowhere or _is_empty(geometry):
        return None, False, False, False, False, False, False, False
    filled = _without_empty_parts(geometry)
    told = _is_unclosed(geometry), _is_single(geometry), _has_outlying_hole(geometry), _has_nested_area(geometry)
    return filled, len(filled) < len(wkb), is_heightless, *told, _has_ambiguous_rings(geometry)


def moved_around(wkb: bytes) -> bytes:
    """A geometry of several whose parts are moved by a turn if they lie beyond 180 degrees of longitude.

    It stays as it is if it cannot be read.
    """
    changed = bytearray(wkb)
    try:
        for part in _simple_parts(read(changed)):
            _move_around(part)
    except (ValueError, struct.error):
        return wkb
    return bytes(changed)


def flattened(wkb: bytes) -> bytes:
    """A collection with its parts taken apart, however deep.

    Other geometries, and those that cannot be read, stay as they are.
    """
    try:
        geometry = read(wkb)
    except (ValueError, struct.error):
        return wkb
    if geometry.basic != COLLECTION:
        return wkb
    code = geometry.kind * ISO_STEP + COLLECTION
    return gathered(code, [bytes(part.wkb) for part in _simple_parts(geometry)])


def _simple_parts(geometry: WkbGeometry) -> Iterator[WkbGeometry]:
    """The geometries of which one consists that are not gathered from others."""
    for part in geometry.parts if geometry.basic in GATHERINGS else (geometry,):
        yield from (part,) if part is geometry else _simple_parts(part)


def _move_around(geometry: WkbGeometry) -> None:
    size = DIMENSIONS[geometry.kind]
    xs = [x for line in geometry.lines for x in line[0::size]]
    turn = 0 if not xs else -TURN if min(xs) >= TURN / 2 < max(xs) else TURN if max(xs) <= -TURN / 2 > min(xs) else 0
    for line in geometry.lines if turn else ():
        for at in range(0, len(line), size):
            line[at] += turn


def _without_empty_parts(geometry: WkbGeometry) -> bytes:
    if geometry.basic not in GATHERINGS:
        return bytes(geometry.wkb)
    code = geometry.kind * ISO_STEP + geometry.basic
    return gathered(code, [_without_empty_parts(part) for part in geometry.parts if not _is_empty(part)])


def _zero_heights(geometry: WkbGeometry) -> tuple[bool, bool]:
    """Give elevations 0 that are no finite numbers.

    Returns whether coordinates, of a geometry that is not empty, are none, and whether there were such elevations.
    """
    if _is_empty(geometry):
        return False, False
    found = list(map(_zero_heights, geometry.parts))
    size = DIMENSIONS[geometry.kind]
    for line in geometry.lines:
        places = chain(line[0::size], line[1::size])
        none = [at for at in range(2, len(line), size) if geometry.kind in WITH_Z and not math.isfinite(line[at])]
        for at in none:
            line[at] = 0.0
        found.append((not all(map(math.isfinite, places)), bool(none)))
    return any(nowhere for nowhere, _ in found), any(heightless for _, heightless in found)


def _is_unclosed(geometry: WkbGeometry) -> bool:
    """Whether a ring of an area has a last position other than the first."""
    size = DIMENSIONS[geometry.kind]
    rings = geometry.lines if geometry.basic in RINGED else ()
    return any(ring[:2] != ring[-size:][:2] for ring in rings) or any(map(_is_unclosed, geometry.parts))


def _is_single(geometry: WkbGeometry) -> bool:
    """Whether a line, or a ring of an area, has a single position."""
    size = DIMENSIONS[geometry.kind]
    lines = geometry.lines if geometry.basic != POINT else ()
    return any(len(line) == size for line in lines) or any(map(_is_single, geometry.parts))


def _has_outlying_hole(geometry: WkbGeometry) -> bool:
    """Whether a hole of an area begins outside of the box around its outer ring."""
    rings = geometry.lines if geometry.basic in RINGED and len(geometry.lines) > 1 else ()
    box = _box(rings[0], DIMENSIONS[geometry.kind]) if rings else ()
    is_outlying = not all(_begins_within(ring, box) for ring in rings[1:])
    return is_outlying or any(map(_has_outlying_hole, geometry.parts))


def _has_nested_area(geometry: WkbGeometry) -> bool:
    """Whether the first of several areas goes around counterclockwise, and the box around one contains another box.

    Of many areas, only the first are compared with each other.
    """
    if geometry.basic != MULTI_AREA:
        return any(map(_has_nested_area, geometry.parts))
    size = DIMENSIONS[geometry.kind]
    rings = [part.lines[0] for part in geometry.parts[:MOST_COMPARED] if part.lines and part.lines[0]]
    if not rings or not _is_reversed(rings[0][0::size], rings[0][1::size]):
        return False
    boxes = [_box(ring, size) for ring in rings]
    return any(outer != inner and _is_around(outer, inner) for outer, inner in permutations(boxes, 2))


def _has_ambiguous_rings(geometry: WkbGeometry) -> bool:
    """Whether a hole is in no area, or an area is in another that has no hole there.

    Where nothing but rings is stored, they become areas, or holes. Of many rings, only the first are compared.
    """
    gathered = list(islice(_rings_of(geometry), MOST_COMPARED))
    rings = [Ring(*ring) for ring in gathered if len(set(ring[1])) > 1] if gathered[1:] else []
    count_around(rings, rings)
    return any(ring.depth % 2 != ring.is_hole for ring in rings)


def _rings_of(geometry: WkbGeometry) -> Iterator[tuple[int, Sequence[Place]]]:
    """The rings of areas: the number of each in its area, from 0, which is the outer one, and its positions."""
    if geometry.basic in RINGED:
        size = DIMENSIONS[geometry.kind]
        for number, ring in enumerate(geometry.lines):
            yield number, list(zip(ring[0::size], ring[1::size], strict=True))
    elif geometry.basic in WITH_AREAS:
        for part in geometry.parts:
            yield from _rings_of(part)


class Ring:
    """A ring of an area: the box around it, a point in it, and in how many others it is.

    The point is near its leftmost position, the lowest of several, between those beside it.
    """

    def __init__(self, number: int, places: Sequence[Place]) -> None:
        self.places = places
        self.is_hole = number > 0
        self.depth = 0
        xs, ys = zip(*places, strict=True)
        self.box: tuple[float, float, float, float] = (min(xs), min(ys), max(xs), max(ys))
        (x, y) = corner = min(places)
        at = places.index(corner)
        others = [place for place in (*places[at:], *places[:at]) if place != corner]
        self.point = (
            x + ((others[0][0] + others[-1][0]) / 2 - x) * NEAR,
            y + ((others[0][1] + others[-1][1]) / 2 - y) * NEAR,
        )

    def left(self) -> float:
        """The least x of its positions."""
        return self.box[0]

    @property
    def is_counterclockwise(self) -> bool:
        """Whether it goes around so, if it has an area."""
        x, y = self.places[0]
        near = pairwise(self.places)
        return sum((xx - x) * (yyy - y) - (xxx - x) * (yy - y) for (xx, yy), (xxx, yyy) in near) > 0

    def is_around(self, x: float, y: float) -> bool:
        """Whether a point is in the ring."""
        edges = pairwise([self.places[-1], *self.places])
        crossed = [
            x < (before[0] - at[0]) * (y - at[1]) / (before[1] - at[1]) + at[0]
            for before, at in edges
            if (before[1] > y) != (at[1] > y)
        ]
        return sum(crossed) % 2 == 1


def count_around(inner_rings: Iterable[Ring], outer_rings: Iterable[Ring]) -> None:
    """Set the depth of `inner_rings`: in how many of `outer_rings` each is.

    It goes from left to right, so that rings beside each other are not compared.
    """
    waiting = sorted(outer_rings, key=Ring.left, reverse=True)
    near: list[Ring] = []
    for inner in sorted(inner_rings, key=Ring.left):
        while waiting and waiting[-1].left() <= inner.left():
            near.append(waiting.pop())
        near = [outer for outer in near if outer.box[2] >= inner.left()]
        around = (outer for outer in near if outer is not inner and _is_around(outer.box, inner.box))
        inner.depth = sum(outer.is_around(*inner.point) for outer in around)


def _is_around(outer: Box, inner: Box) -> bool:
    """Whether a box contains another."""
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _is_reversed(xs: "memoryview[float]", ys: "memoryview[float]") -> bool:
    """Whether a ring goes around counterclockwise."""
    near = zip(xs[1:], ys[1:], xs[2:], ys[2:], strict=False)
    return sum((x - xs[0]) * (yy - ys[0]) - (xx - xs[0]) * (y - ys[0]) for x, y, xx, yy in near) > 0


def _box(places: "memoryview[float]", size: int) -> Box:
    xs, ys = places[0::size], places[1::size]
    return (min(xs), min(ys), max(xs), max(ys)) if places else ()


def _begins_within(places: "memoryview[float]", box: Box) -> bool:
    """Whether the first of positions, if there are any, is in a box, if there is one."""
    return not places or not box or (box[0] <= places[0] <= box[2] and box[1] <= places[1] <= box[3])


def _is_empty(geometry: WkbGeometry) -> bool:
    """Whether a geometry has no position; the numbers of a point are none then."""
    if geometry.basic == POINT:
        return all(map(math.isnan, geometry.lines[0][:2]))
    return not any(geometry.lines) and all(map(_is_empty, geometry.parts))


def _read(wkb: memoryview, start: int, depth: int) -> tuple[WkbGeometry, int]:
    """The geometry that begins at `start`, and where it ends."""
    order, code = _HEAD.unpack_from(wkb, start)
    kind, basic = divmod(code, ISO_STEP)
    if order != 1 or depth > MAX_DEPTH or kind not in DIMENSIONS or basic not in WKB_TYPES:
        raise ValueError("not a geometry that can be read")
    lines: list[memoryview[float]] = []
    parts: list[WkbGeometry] = []
    end, count = start + _HEAD.size, 1
    if basic not in {POINT, LINE, ARCS}:
        (count,) = _COUNT.unpack_from(wkb, end)
        end += _COUNT.size
    for _ in range(count):
        if basic in OF_LINES:
            line, end = _line(wkb, end, DIMENSIONS[kind], None if basic != POINT else 1)
            lines.append(line)
        else:
            part, end = _read(wkb, end, depth + 1)
            parts.append(part)
    return WkbGeometry(wkb[start:end], kind, basic, lines, parts), end


def _line(wkb: memoryview, at: int, dimensions: int, count: int | None) -> tuple["memoryview[float]", int]:
    """The positions at `at`, behind their number unless it is `count`, and where they end."""
    if count is None:
        (count,) = _COUNT.unpack_from(wkb, at)
        at += _COUNT.size
    end = at + count * dimensions * COORDINATE_BYTES
    return _numbers(wkb, at, end), end


def _numbers(wkb: memoryview, at: int, end: int) -> "memoryview[float]":
    if end > len(wkb):
        raise ValueError("not as long as it says")
    return wkb[at:end].cast("d")


def _singles(geometry: WkbGeometry, *, may_be_curved: bool = False) -> Iterator[tuple[WkbGeometry, bool]]:
    """The single geometries in one, and whether each is of a Multi geometry that may contain curves."""
    if geometry.basic in MULTI:
        yield geometry, may_be_curved
    elif geometry.basic in GATHERINGS:
        for part in geometry.parts:
            yield from _singles(part, may_be_curved=geometry.basic in CURVED_MULTI.values())
    else:
        raise ValueError("not a simple geometry")


def _count_sloping(geometry: WkbGeometry) -> int:
    if geometry.basic in GATHERINGS:
        return sum(map(_count_sloping, geometry.parts))
    return int(geometry.basic in AREAS and len(set(geometry.heights())) > 1)


def _as_polygons(geometry: WkbGeometry) -> bytes:
    code = geometry.kind * ISO_STEP + SURFACES.get(geometry.basic, geometry.basic)
    if geometry.basic in GATHERINGS | OF_PATCHES:
        return gathered(code, list(map(_as_polygons, geometry.parts)))
    return _HEAD.pack(1, code) + geometry.wkb[_HEAD.size :]
