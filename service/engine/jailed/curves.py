"""Replaces curves inside geometry collections with short line segments; the converter does so only outside them.

Operates on ISO WKB in little-endian order, which the work file uses. Runs in the sandbox.
"""

import math
import struct
from collections.abc import Sequence

from service.engine.jailed.wkb import (
    ARCS,
    COMPOUND,
    CURVE_POLYGON,
    CURVED_MULTI,
    DIMENSIONS,
    GATHERINGS,
    ISO_STEP,
    LINE,
    POLYGON,
    WkbGeometry,
    gathered,
    read,
)

Position = tuple[float, ...]
STRAIGHT = {curved: straight for straight, curved in CURVED_MULTI.items()}
STEP = math.radians(4)
"""The angle that one segment covers; the converter uses the same elsewhere."""
STRAIGHT_WITHIN = 1e-12


def straightened(wkb: bytes) -> bytes:
    """A geometry without curves; raises as `wkb.read`."""
    return _straightened(read(wkb))


def _straightened(geometry: WkbGeometry) -> bytes:
    code = geometry.kind * ISO_STEP
    if geometry.basic in {ARCS, COMPOUND}:
        return struct.pack("<BI", 1, code + LINE) + _packed(_positions_of_curve(geometry))
    if geometry.basic == CURVE_POLYGON:
        return gathered(code + POLYGON, [_packed(_positions_of_curve(ring)) for ring in geometry.parts])
    if geometry.basic in GATHERINGS:
        parts = list(map(_straightened, geometry.parts))
        return gathered(code + STRAIGHT.get(geometry.basic, geometry.basic), parts)
    return bytes(geometry.wkb)


def _positions_of_curve(curve: WkbGeometry) -> list[Position]:
    """The positions of a line, of arcs, or of several of these joined."""
    if curve.basic == COMPOUND:
        joined: list[Position] = []
        for part in curve.parts:
            positions = _positions_of_curve(part)
            joined += positions[1:] if joined else positions
        return joined
    if curve.basic not in {LINE, ARCS}:
        raise ValueError("not a curve")
    positions = list(struct.iter_unpack(f"<{DIMENSIONS[curve.kind]}d", curve.lines[0]))
    return _along_arcs(positions) if curve.basic == ARCS else positions


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


def _packed(positions: Sequence[Position]) -> bytes:
    return struct.pack("<I", len(positions)) + b"".join(
        struct.pack(f"<{len(position)}d", *position) for position in positions
    )
