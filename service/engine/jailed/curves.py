"""Replaces curves inside geometry collections with short line segments; the converter does so only outside them.

Operates on ISO WKB in little-endian order, which the work file uses. Runs in the sandbox.
"""

import math
import struct
from collections.abc import Sequence

from service.engine.jailed.wkb import COORDINATE_BYTES, DIMENSIONS, HEAD_BYTES, ISO_STEP, MAX_DEPTH

Position = tuple[float, ...]
POINT, LINE, POLYGON = 1, 2, 3
ARCS, COMPOUND, CURVE_POLYGON = 8, 9, 10
STRAIGHT = {11: 5, 12: 6}
"""The Multi type without curves for each one with curves."""
STEP = math.radians(4)
"""The angle that one segment covers; the converter uses the same elsewhere."""
STRAIGHT_WITHIN = 1e-12


def straightened(wkb: bytes) -> bytes:
    """A geometry without curves.

    Raises:
        ValueError: it contains something other than a geometry, or is nested too deeply.
        struct.error: it is truncated.
    """
    return _geometry(memoryview(wkb), 0, 0)[0]


def _geometry(wkb: memoryview, at: int, depth: int) -> tuple[bytes, int]:
    """The geometry that begins at `at`, without curves, and where it ends."""
    code, basic, size = _head(wkb, at, depth)
    if basic in {ARCS, COMPOUND}:
        positions, end = _positions_of_curve(wkb, at, depth)
        return _line(code - basic + LINE, positions), end
    if basic == CURVE_POLYGON:
        return _polygon(wkb, at, depth)
    if basic == POINT:
        end = at + HEAD_BYTES + size
        return bytes(wkb[at:end]), end
    if basic == LINE:
        end = at + HEAD_BYTES + 4 + _count(wkb, at + HEAD_BYTES) * size
        return bytes(wkb[at:end]), end
    if basic == POLYGON:
        end = at + HEAD_BYTES + 4
        for _ in range(_count(wkb, at + HEAD_BYTES)):
            end += 4 + _count(wkb, end) * size
        return bytes(wkb[at:end]), end
    return _gathering(wkb, at, depth)


def _gathering(wkb: memoryview, at: int, depth: int) -> tuple[bytes, int]:
    code, basic, _ = _head(wkb, at, depth)
    count, end, parts = _count(wkb, at + HEAD_BYTES), at + HEAD_BYTES + 4, []
    for _ in range(count):
        part, end = _geometry(wkb, end, depth + 1)
        parts.append(part)
    return struct.pack("<BII", 1, code - basic + STRAIGHT.get(basic, basic), count) + b"".join(parts), end


def _polygon(wkb: memoryview, at: int, depth: int) -> tuple[bytes, int]:
    code, basic, _ = _head(wkb, at, depth)
    count, end, rings = _count(wkb, at + HEAD_BYTES), at + HEAD_BYTES + 4, []
    for _ in range(count):
        positions, end = _positions_of_curve(wkb, end, depth + 1)
        rings.append(_packed(positions))
    return struct.pack("<BII", 1, code - basic + POLYGON, count) + b"".join(rings), end


def _positions_of_curve(wkb: memoryview, at: int, depth: int) -> tuple[list[Position], int]:
    """The positions of a line, of arcs, or of several of these joined, and where it ends."""
    _, basic, size = _head(wkb, at, depth)
    count, start = _count(wkb, at + HEAD_BYTES), at + HEAD_BYTES + 4
    if basic == COMPOUND:
        joined: list[Position] = []
        for _ in range(count):
            positions, start = _positions_of_curve(wkb, start, depth + 1)
            joined += positions[1:] if joined else positions
        return joined, start
    if basic not in {LINE, ARCS}:
        raise ValueError("not a curve")
    end = start + count * size
    positions = list(struct.iter_unpack(f"<{size // COORDINATE_BYTES}d", wkb[start:end]))
    if len(positions) != count:
        raise ValueError("cut off")
    return (_along_arcs(positions) if basic == ARCS else positions), end


def _along_arcs(positions: Sequence[Position]) -> list[Position]:
    """Positions along arcs of three points each; each arc begins where the previous one ends."""
    found = list(positions[:1])
    for first in range(0, len(positions) - 2, 2):
        found += _along_arc(*positions[first : first + 3])
    return found


def _along_arc(start: Position, middle: Position, end: Position) -> list[Position]:
    """Positions on the arc from `start`, which is excluded, through `middle` to `end`."""
    center = _center(start, middle, end)
    if center is None:
        return [middle, end]
    radius = math.dist(center, start[:2])
    from_, by, to = (math.atan2(position[1] - center[1], position[0] - center[0]) for position in (start, middle, end))
    is_left = (by - from_) % math.tau < (to - from_) % math.tau or start[:2] == end[:2]
    sweep = (to - from_) % math.tau if is_left else -((from_ - to) % math.tau)
    sweep = sweep or math.tau
    steps = max(2, math.ceil(abs(sweep) / STEP))
    angles = [(step / steps, from_ + sweep * step / steps) for step in range(1, steps)]
    on_arc = [
        (center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle), *_between(start, end, share))
        for share, angle in angles
    ]
    return [*on_arc, end]


def _between(start: Position, end: Position, share: float) -> Position:
    """Z and M at this share of the way."""
    return tuple(a + (b - a) * share for a, b in zip(start[2:], end[2:], strict=True))


def _center(start: Position, middle: Position, end: Position) -> tuple[float, float] | None:
    """The center of the circle through three points, None if they are on a line; equal ends make a full circle."""
    (x0, y0), (x1, y1), (x2, y2) = start[:2], middle[:2], end[:2]
    if (x0, y0) == (x2, y2):
        return None if (x0, y0) == (x1, y1) else ((x0 + x1) / 2, (y0 + y1) / 2)
    ax, ay, bx, by = x1 - x0, y1 - y0, x2 - x0, y2 - y0
    cross = 2 * (ax * by - ay * bx)
    if abs(cross) <= STRAIGHT_WITHIN * (ax * ax + ay * ay + bx * bx + by * by):
        return None
    a, b = ax * ax + ay * ay, bx * bx + by * by
    return x0 + (by * a - ay * b) / cross, y0 + (ax * b - bx * a) / cross


def _line(code: int, positions: Sequence[Position]) -> bytes:
    return struct.pack("<BI", 1, code) + _packed(positions)


def _packed(positions: Sequence[Position]) -> bytes:
    return struct.pack("<I", len(positions)) + b"".join(
        struct.pack(f"<{len(position)}d", *position) for position in positions
    )


def _head(wkb: memoryview, at: int, depth: int) -> tuple[int, int, int]:
    """The code of the geometry that begins at `at`, its basic code, and the size of a position in bytes."""
    order, code = struct.unpack_from("<BI", wkb, at)
    if order != 1 or depth > MAX_DEPTH or code // ISO_STEP not in DIMENSIONS:
        raise ValueError("not a geometry that can be read")
    return code, code % ISO_STEP, DIMENSIONS[code // ISO_STEP] * COORDINATE_BYTES


def _count(wkb: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", wkb, at)[0])
