"""Takes the measures (M) out of the geometries of a GeoPackage. Runs in the sandbox.

Operates on ISO WKB in little-endian order, without curves, which become lines before.
"""

import sqlite3
import struct
from array import array
from contextlib import closing

from service.engine.jailed.gpkg import quoted, wkb_offset
from service.engine.jailed.wkb import DIMENSIONS, ISO_STEP, LINE, OF_LINES, POINT, WITH_Z, WkbGeometry, gathered, read


def leave_out_measures(gpkg: str) -> None:
    """Take the measures out of all geometries of `gpkg`, and what it declares of them."""
    with closing(sqlite3.connect(gpkg, isolation_level=None)) as connection:
        connection.create_function("unmeasured", 1, _unmeasured, deterministic=True)
        for table, column in connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchall():
            name = quoted(column)
            connection.execute(f"UPDATE {quoted(table)} SET {name} = unmeasured({name}) WHERE {name} IS NOT NULL")  # noqa: S608 -- quoted
        connection.execute("UPDATE gpkg_geometry_columns SET m = 0")


def _unmeasured(blob: bytes) -> bytes:
    at = wkb_offset(blob[3])
    return blob[:at] + _without_measures(read(blob[at:]))


def _without_measures(geometry: WkbGeometry) -> bytes:
    has_z = geometry.kind in WITH_Z
    code = geometry.basic + has_z * ISO_STEP
    lines = [_leave(line, DIMENSIONS[geometry.kind], 2 + has_z) for line in geometry.lines]
    counted = [struct.pack("<I", len(line) // (2 + has_z)) + line.tobytes() for line in lines]
    if geometry.basic == POINT:
        return struct.pack("<BI", 1, code) + lines[0].tobytes()
    if geometry.basic == LINE:
        return struct.pack("<BI", 1, code) + counted[0]
    return gathered(code, counted if geometry.basic in OF_LINES else list(map(_without_measures, geometry.parts)))


def _leave(numbers: "memoryview[float]", size: int, kept: int) -> "array[float]":
    """The first numbers of each position, which has as many as `size`."""
    positions = array("d", bytes(len(numbers) // size * kept * numbers.itemsize))
    for axis in range(kept):
        positions[axis::kept] = array("d", numbers[axis::size])
    return positions
