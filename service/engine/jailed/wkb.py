"""Taking geometry collections apart, on their WKB bytes. Runs in the jail."""

import struct

from service.engine.jailed.gpkg import WKB_TYPES

MULTI = {1: 4, 2: 5, 3: 6, 4: 4, 5: 5, 6: 6}
"""The Multi type that holds a basic type."""
MAX_DEPTH = 32
COORDINATE_BYTES = 8
ISO_STEP = 1000
DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}
"""Coordinates a point by the thousands of an ISO code: XY, Z, M, ZM."""


def parts_by_family(wkb: bytes) -> dict[str, bytes]:
    """What a geometry collection falls apart into: one Multi geometry per family, by type name.

    Args:
        wkb: ISO WKB without curves, little-endian, as the work file holds it.

    Raises:
        ValueError: it is not that.
    """
    found: dict[int, list[bytes]] = {}
    _walk(memoryview(wkb), 0, found, 0)
    (code,) = struct.unpack_from("<I", wkb, 1)
    dimensions = code - code % ISO_STEP
    return {
        WKB_TYPES[code]: struct.pack("<BII", 1, code + dimensions, len(parts)) + b"".join(parts)
        for code, parts in sorted(found.items())
    }


def _walk(wkb: memoryview, at: int, found: dict[int, list[bytes]], depth: int) -> int:
    """Collect the simple geometries of the one that begins at `at`; returns where it ends."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    order, code, count = struct.unpack_from("<BII", wkb, at)
    if order != 1:
        raise ValueError("not little-endian")
    basic = code % ISO_STEP
    if basic in {1, 2, 3}:
        end = _simple_end(wkb, at, basic, DIMENSIONS[code // ISO_STEP])
        found.setdefault(MULTI[basic], []).append(bytes(wkb[at:end]))
        return end
    if basic not in {4, 5, 6, 7}:
        raise ValueError("not a simple geometry")
    end = at + 9
    for _ in range(count):
        end = _walk(wkb, end, found, depth + 1)
    return end


def _simple_end(wkb: memoryview, at: int, basic: int, dimensions: int) -> int:
    size = dimensions * COORDINATE_BYTES
    if basic == 1:
        return at + 5 + size
    (count,) = struct.unpack_from("<I", wkb, at + 5)
    if basic == 2:  # noqa: PLR2004 -- a line: count, then coordinates
        return at + 9 + int(count) * size
    end = at + 9
    for _ in range(count):
        (points,) = struct.unpack_from("<I", wkb, end)
        end += 4 + int(points) * size
    return end
