"""Geometries as bytes: splits collections, turns surfaces into polygons. Runs in the sandbox.

Operates on ISO WKB in little-endian order, which the work file uses.
"""

import struct

from service.engine.jailed.gpkg import WKB_TYPES

MULTI = {1: 4, 2: 5, 3: 6, 8: 5, 9: 5, 10: 6}
"""The Multi type for each type; the families of 4, 5 and 6 are points, lines and areas."""
CURVED = {8, 9, 10}
CURVED_MULTI = {5: 11, 6: 12}
"""The Multi type with curves for each one without."""
COMPOUND = {9, 10}
"""Types of single geometries that consist of others."""
LINES = {2, 8}
GATHERINGS = {4, 5, 6, 7, 11, 12}
SURFACES = {15: 6, 16: 6, 17: 3}
"""The type that replaces a surface."""
OF_PATCHES = {15, 16}
PATCHES = {3, 17}
MAX_DEPTH = 32
COORDINATE_BYTES = 8
HEAD_BYTES = 5
ISO_STEP = 1000
WITH_Z = {1, 3}
AREAS = {3, 10, 17}
DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}
"""Coordinates per point, by the thousands of an ISO code: XY, Z, M, ZM."""


def parts_by_family(wkb: bytes) -> dict[str, bytes]:
    """The parts of a geometry collection: one Multi geometry per family, by the name of its type.

    Raises:
        ValueError: it contains a geometry that is neither simple nor a curve.
        struct.error: it is truncated.
    """
    found: dict[int, list[tuple[bool, bytes]]] = {}
    _walk(memoryview(wkb), 0, found, 0)
    (code,) = struct.unpack_from("<I", wkb, 1)
    dimensions = code - code % ISO_STEP
    return {WKB_TYPES[family]: _gathered(family, parts, dimensions) for family, parts in sorted(found.items())}


def is_curved(wkb: bytes) -> bool:
    """Whether a Multi geometry contains curves."""
    return struct.unpack_from("<I", wkb, 1)[0] % ISO_STEP in CURVED_MULTI.values()


def count_sloping(wkb: bytes) -> int:
    """How many areas of a geometry have points with different elevations.

    Raises:
        ValueError: it contains something other than a geometry, or is nested too deeply.
        struct.error: it is truncated.
    """
    has_z = struct.unpack_from("<I", wkb, 1)[0] // ISO_STEP in WITH_Z
    return _count_sloping(memoryview(wkb), 0, 0)[0] if has_z else 0


def as_polygons(wkb: bytes) -> bytes:
    """A geometry with its polyhedral surfaces, TINs and triangles as polygons with the same coordinates.

    Raises:
        ValueError: it contains something other than a geometry, or is nested too deeply.
        struct.error: it is truncated.
    """
    patched = bytearray(wkb)
    _patch(patched, 0, 0)
    return bytes(patched)


def _patch(wkb: bytearray, at: int, depth: int) -> int:
    """Give the surfaces in the geometry that begins at `at` the codes of polygons; return where it ends."""
    view = memoryview(wkb)
    basic = _basic(view, at, depth)
    if basic in SURFACES:
        struct.pack_into("<I", wkb, at + 1, _code(view, at) - basic + SURFACES[basic])
    if basic not in GATHERINGS | OF_PATCHES:
        return _end(view, at, depth)
    end = at + HEAD_BYTES + 4
    for _ in range(_count(view, at)):
        end = _patch(wkb, end, depth + 1)
    return end


def _gathered(family: int, parts: list[tuple[bool, bytes]], dimensions: int) -> bytes:
    code = CURVED_MULTI[family] if any(curved for curved, _ in parts) else family
    return struct.pack("<BII", 1, code + dimensions, len(parts)) + b"".join(part for _, part in parts)


def _walk(
    wkb: memoryview, at: int, found: dict[int, list[tuple[bool, bytes]]], depth: int, *, curved: bool = False
) -> int:
    """Collect the single geometries in the one that begins at `at`; return where it ends.

    Beside each is whether it is a curve or, if `curved`, one of a Multi geometry that may contain curves.
    """
    basic = _basic(wkb, at, depth)
    if basic in MULTI:
        end = _end(wkb, at, depth)
        found.setdefault(MULTI[basic], []).append((curved or basic in CURVED, bytes(wkb[at:end])))
        return end
    if basic not in GATHERINGS:
        raise ValueError("not a simple geometry")
    end = at + HEAD_BYTES + 4
    for _ in range(_count(wkb, at)):
        end = _walk(wkb, end, found, depth + 1, curved=basic in CURVED_MULTI.values())
    return end


def _count_sloping(wkb: memoryview, at: int, depth: int) -> tuple[int, int]:
    """How many areas of the geometry that begins at `at` have different elevations, and where it ends."""
    basic = _basic(wkb, at, depth)
    if basic not in GATHERINGS:
        heights = _heights(wkb, at, basic) if basic in AREAS else set()
        return int(len(heights) > 1), _end(wkb, at, depth)
    found, end = 0, at + HEAD_BYTES + 4
    for _ in range(_count(wkb, at)):
        inside, end = _count_sloping(wkb, end, depth + 1)
        found += inside
    return found, end


def _heights(wkb: memoryview, at: int, basic: int) -> set[float]:
    """The elevations of the points of an area, or of a curve around one."""
    found: set[float] = set()
    end = at + HEAD_BYTES + 4
    if basic in COMPOUND:
        for _ in range(_count(wkb, at)):
            found |= _heights(wkb, end, _code(wkb, end) % ISO_STEP)
            end = _end(wkb, end, 0)
        return found
    dimensions = DIMENSIONS[_code(wkb, at) // ISO_STEP]
    at = end - 4 if basic in LINES else end
    for _ in range(1 if basic in LINES else _count(wkb, end - HEAD_BYTES - 4)):
        start = at + 4
        at = start + struct.unpack_from("<I", wkb, at)[0] * dimensions * COORDINATE_BYTES
        found |= set(wkb[start:at].cast("d")[2::dimensions])
    return found


def _end(wkb: memoryview, at: int, depth: int) -> int:
    """Where the single geometry that begins at `at` ends."""
    basic = _basic(wkb, at, depth)
    if basic not in COMPOUND:
        return _simple_end(wkb, at, basic, DIMENSIONS[_code(wkb, at) // ISO_STEP])
    end = at + HEAD_BYTES + 4
    for _ in range(_count(wkb, at)):
        end = _end(wkb, end, depth + 1)
    return end


def _simple_end(wkb: memoryview, at: int, basic: int, dimensions: int) -> int:
    size = dimensions * COORDINATE_BYTES
    if basic == 1:
        return at + HEAD_BYTES + size
    end = at + HEAD_BYTES + 4
    if basic in LINES:
        return end + _count(wkb, at) * size
    if basic not in PATCHES:
        raise ValueError("not a simple geometry")
    for _ in range(_count(wkb, at)):
        (points,) = struct.unpack_from("<I", wkb, end)
        end += 4 + int(points) * size
    return end


def _basic(wkb: memoryview, at: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if struct.unpack_from("<B", wkb, at)[0] != 1:
        raise ValueError("not little-endian")
    return _code(wkb, at) % ISO_STEP


def _code(wkb: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", wkb, at + 1)[0])


def _count(wkb: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", wkb, at + HEAD_BYTES)[0])
