"""Takes the measures (M) out of the geometries of a GeoPackage. Runs in the sandbox.

Operates on ISO WKB in little-endian order, without curves, which become lines before.
"""

import sqlite3
import struct
from array import array
from contextlib import closing

from service.engine.jailed.gpkg import quoted, wkb_offset
from service.engine.jailed.wkb import COORDINATE_BYTES, DIMENSIONS, HEAD_BYTES, ISO_STEP, MAX_DEPTH, WITH_Z

POINT, LINE, POLYGON = 1, 2, 3


def leave_out_measures(gpkg: str) -> None:
    """Take the measures out of all geometries of `gpkg`, and what it declares of them."""
    with closing(sqlite3.connect(gpkg, isolation_level=None)) as connection:
        connection.create_function("unmeasured", 1, _unmeasured, deterministic=True)
        for table, column in connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchall():
            name = quoted(column)
            connection.execute(f"UPDATE {quoted(table)} SET {name} = unmeasured({name}) WHERE {name} IS NOT NULL")  # noqa: S608 -- quoted
        connection.execute("UPDATE gpkg_geometry_columns SET m = 0")


def without_measures(wkb: bytes) -> bytes:
    """A geometry without its measures.

    Raises:
        ValueError: it contains something other than a geometry, or is nested too deeply.
        struct.error: it is truncated.
    """
    written = bytearray()
    _geometry(memoryview(wkb), 0, 0, written)
    return bytes(written)


def _unmeasured(blob: bytes) -> bytes:
    at = wkb_offset(blob[3])
    return blob[:at] + without_measures(blob[at:])


def _geometry(wkb: memoryview, at: int, depth: int, written: bytearray) -> int:
    """Write the geometry that begins at `at`; return where it ends."""
    order, code = struct.unpack_from("<BI", wkb, at)
    kind, basic = divmod(code, ISO_STEP)
    if order != 1 or depth > MAX_DEPTH or kind not in DIMENSIONS:
        raise ValueError("not a geometry that can be read")
    has_z = kind in WITH_Z
    written += struct.pack("<BI", 1, basic + has_z * ISO_STEP)
    at += HEAD_BYTES
    if basic == POINT:
        return _positions(wkb, at, 1, (DIMENSIONS[kind], 2 + has_z), written)
    if basic == LINE:
        return _line(wkb, at, (DIMENSIONS[kind], 2 + has_z), written)
    (count,) = struct.unpack_from("<I", wkb, at)
    written += wkb[at : at + 4]
    at += 4
    for _ in range(count):
        if basic == POLYGON:
            at = _line(wkb, at, (DIMENSIONS[kind], 2 + has_z), written)
        else:
            at = _geometry(wkb, at, depth + 1, written)
    return at


def _line(wkb: memoryview, at: int, dimensions: tuple[int, int], written: bytearray) -> int:
    (count,) = struct.unpack_from("<I", wkb, at)
    written += wkb[at : at + 4]
    return _positions(wkb, at + 4, count, dimensions, written)


def _positions(wkb: memoryview, at: int, count: int, dimensions: tuple[int, int], written: bytearray) -> int:
    """Write the positions that begin at `at`, of as many numbers as first in `dimensions`, with as many as second."""
    size, kept = dimensions
    end = at + count * size * COORDINATE_BYTES
    numbers = wkb[at:end].cast("d")
    positions = array("d", bytes(count * kept * COORDINATE_BYTES))
    for axis in range(kept):
        positions[axis::kept] = array("d", numbers[axis::size])
    written += positions.tobytes()
    return end
