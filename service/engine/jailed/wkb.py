"""Geometries as bytes: reads them, splits collections, turns surfaces into polygons. Runs in the sandbox.

Operates on ISO WKB in little-endian order, which the work file uses.
"""

import struct
from collections.abc import Iterator, Sequence
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
MAX_DEPTH = 32
TURN = 360.0
COORDINATE_BYTES = 8
ISO_STEP = 1000
WITH_Z = {1, 3}
DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}
"""Coordinates per point, by the thousands of an ISO code: XY, Z, M, ZM."""

HEAD = struct.Struct("<BI")
COUNT = struct.Struct("<I")


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
    return read_at(memoryview(wkb), 0)[0]


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


def read_at(wkb: memoryview, start: int, depth: int = 0) -> tuple[WkbGeometry, int]:
    """The geometry that begins at `start`, and where it ends; raises as `read`."""
    order, code = HEAD.unpack_from(wkb, start)
    kind, basic = divmod(code, ISO_STEP)
    if order != 1 or depth > MAX_DEPTH or kind not in DIMENSIONS or basic not in WKB_TYPES:
        raise ValueError("not a geometry that can be read")
    lines: list[memoryview[float]] = []
    parts: list[WkbGeometry] = []
    end, count = start + HEAD.size, 1
    if basic not in {POINT, LINE, ARCS}:
        (count,) = COUNT.unpack_from(wkb, end)
        end += COUNT.size
    for _ in range(count):
        if basic in OF_LINES:
            line, end = _line(wkb, end, DIMENSIONS[kind], None if basic != POINT else 1)
            lines.append(line)
        else:
            part, end = read_at(wkb, end, depth + 1)
            parts.append(part)
    return WkbGeometry(wkb[start:end], kind, basic, lines, parts), end


def _line(wkb: memoryview, at: int, dimensions: int, count: int | None) -> tuple["memoryview[float]", int]:
    """The positions at `at`, behind their number unless it is `count`, and where they end."""
    if count is None:
        (count,) = COUNT.unpack_from(wkb, at)
        at += COUNT.size
    end = at + count * dimensions * COORDINATE_BYTES
    return numbers_in(wkb, at, end), end


def numbers_in(wkb: memoryview, at: int, end: int) -> "memoryview[float]":
    """The numbers between two places; raises as `read`."""
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
    return HEAD.pack(1, code) + geometry.wkb[HEAD.size :]
