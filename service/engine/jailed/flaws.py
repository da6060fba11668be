"""Finds what is wrong with geometries, and mends what can be mended. Runs in the sandbox.

Operates on ISO WKB in little-endian order, which the work file uses.
"""

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, permutations

from service.engine.jailed.rings import Box, Place, Ring, count_around, is_around
from service.engine.jailed.wkb import (
    ARCS,
    COLLECTION,
    COORDINATE_BYTES,
    COUNT,
    DIMENSIONS,
    GATHERINGS,
    HEAD,
    ISO_STEP,
    LINE,
    MULTI,
    OF_LINES,
    POINT,
    POLYGON,
    SURFACES,
    WITH_Z,
    WkbGeometry,
    gathered,
    numbers_in,
    read,
    read_at,
)

RINGED = {POLYGON, 17}
MULTI_AREA = 6
WITH_AREAS = {POLYGON, MULTI_AREA, COLLECTION, *SURFACES}
MOST_COMPARED = 200
"""The number of areas, or rings, of a geometry that are compared with each other."""
MANY = 4
"""Of so many parts, looking at all at once takes less time than at one after the other."""
PLACE_BYTES = 2 * COORDINATE_BYTES
_CODE_AND_COUNT = struct.Struct("<II")
_NONE = COUNT.pack(0)
_ONE = COUNT.pack(1)
NOWHERE, HOLLOW, HEIGHTLESS = "nowhere", "hollow", "heightless"
"""Flaws that are mended: coordinates that are no finite numbers, parts without any position, and elevations that are no
finite numbers."""


def may_be_flawed(wkb: bytes, start: int = 0) -> bool:
    """Whether the geometry at `start` may have flaws.

    Looks at the last byte of each number, which tells its exponent, and takes less time than `read`. Raises as that.
    """
    for ends in _ends_of_parts(wkb, start) or _ends_of_numbers(wkb, start):
        if not ends or b"\x7f" in ends or b"\xff" in ends:
            return True
    code, count = _CODE_AND_COUNT.unpack_from(wkb, start + 1)
    if code % ISO_STEP not in WITH_AREAS or (code % ISO_STEP == POLYGON and count == 1):
        return False
    geometry = read_at(memoryview(wkb), start)[0]
    return _has_nested_area(geometry) or _has_ambiguous_rings(geometry)


def _ends_of_numbers(wkb: bytes, at: int) -> Iterator[bytes]:
    """The last byte of each number, line by line; an empty piece stands for no numbers, or a flawed line."""
    while at < len(wkb):
        kind, basic = divmod(HEAD.unpack_from(wkb, at)[1], ISO_STEP)
        if kind not in DIMENSIONS:
            raise ValueError("not a geometry that can be read")
        at += HEAD.size
        lines = 1
        if basic not in {POINT, LINE, ARCS}:
            (lines,) = COUNT.unpack_from(wkb, at)
            at += COUNT.size
            if not lines:
                yield b""
        box: Box = ()
        for _ in range(lines if basic in OF_LINES else 0):
            count = 1
            if basic != POINT:
                (count,) = COUNT.unpack_from(wkb, at)
                at += COUNT.size
            size = DIMENSIONS[kind] * COORDINATE_BYTES
            end = at + count * size
            is_open = basic in RINGED and wkb[at : at + PLACE_BYTES] != wkb[end - size : end - size + PLACE_BYTES]
            if is_open or (count == 1 and basic != POINT):
                yield b""
            if basic in RINGED and lines > 1:
                places = numbers_in(memoryview(wkb), at, end)
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
    parts = wkb[at + HEAD.size + COUNT.size :]
    head = parts[: HEAD.size + (COUNT.size if basic == MULTI[POLYGON] else 0)]
    is_of_one = basic != MULTI[POLYGON] or head.endswith(_ONE)
    if (
        not is_of_one
        or parts.count(head) != count
        or (basic != MULTI[POINT] and (head + _NONE in parts or head + _ONE in parts))
    ):
        return []
    first, last = COUNT.size, -DIMENSIONS[kind] * COORDINATE_BYTES
    lines = parts.split(head)[1:] if basic == MULTI[POLYGON] else []
    if any(line[first : first + PLACE_BYTES] != line[last:][:PLACE_BYTES] for line in lines):
        return []
    return [parts.replace(head, b"" if basic == MULTI[POINT] else _NONE)[COORDINATE_BYTES - 1 :: COORDINATE_BYTES]]


def mended(wkb: bytes) -> tuple[bytes | None, Sequence[str]]:
    """A geometry without parts that have no position, and with elevations 0 that are no finite numbers; its flaws.

    None if other coordinates, but measures, are no finite numbers, or all parts have no position. Raises as `read`.
    """
    changed = bytearray(wkb)
    geometry = read(changed)
    is_nowhere, is_heightless = _zero_heights(geometry)
    if is_nowhere or _is_empty(geometry):
        return None, [NOWHERE]
    filled = _without_empty_parts(geometry)
    mendable = [HOLLOW] * (len(filled) < len(wkb)) + [HEIGHTLESS] * is_heightless
    return filled, [*mendable, *(flaw for flaw, has in NOT_MENDED.items() if has(geometry))]


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
    return any(outer != inner and is_around(outer, inner) for outer, inner in permutations(boxes, 2))


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


NOT_MENDED: Mapping[str, Callable[[WkbGeometry], bool]] = {
    "unclosed": _is_unclosed,
    "single": _is_single,
    "outlying": _has_outlying_hole,
    "nested": _has_nested_area,
    "ambiguous": _has_ambiguous_rings,
}
"""The others: rings of areas that do not end where they begin, lines or rings of a single position, holes that begin
outside of their areas, areas around others of which the first is counterclockwise, and rings of which a format that
stores nothing but rings would not know what they are."""
FLAWS = (NOWHERE, HOLLOW, HEIGHTLESS, *NOT_MENDED)
