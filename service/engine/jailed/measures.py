"""Takes the measures (M) out of the geometries of a GeoPackage, all or those that stand for none. Runs in the sandbox.

Operates on ISO WKB in little-endian order, without curves, which become lines before.
"""

import math
import sqlite3
import struct
from array import array
from collections.abc import Iterator
from contextlib import closing

from service.engine.jailed.gpkg import change_geometries, has_measures
from service.engine.jailed.wkb import DIMENSIONS, ISO_STEP, LINE, OF_LINES, POINT, WITH_Z, WkbGeometry, gathered, read

ABSENT = -1e38
"""Smaller measures stand for none in a shapefile."""


def leave_out_measures(gpkg: str) -> None:
    """Take the measures out of all geometries of `gpkg`, and what it declares of them."""
    with closing(sqlite3.connect(gpkg, isolation_level=None)) as connection:
        for table, column in connection.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchall():
            change_geometries(connection, table, lambda wkb: _without_measures(read(wkb)), column)
        connection.execute("UPDATE gpkg_geometry_columns SET m = 0")


def leave_out_absent(connection: sqlite3.Connection, table: str) -> None:
    """Take out the measures of `table` that stand for none in a shapefile.

    They are no numbers (NaN) then; a geometry without any other has no measures.
    """
    change_geometries(connection, table, _present)


def _present(wkb: bytes) -> bytes:
    if not has_measures(struct.unpack_from("<I", wkb, 1)[0]):
        return wkb
    kept = bytearray(wkb)
    geometry = read(kept)
    is_measured = [_keep(line, DIMENSIONS[geometry.kind]) for line in _lines(geometry)]
    return bytes(kept) if any(is_measured) else _without_measures(geometry)


def _lines(geometry: WkbGeometry) -> "Iterator[memoryview[float]]":
    yield from geometry.lines
    for part in geometry.parts:
        yield from _lines(part)


def _keep(numbers: "memoryview[float]", size: int) -> bool:
    """Whether a position has a measure; those that stand for none become no numbers."""
    absent = [at for at in range(size - 1, len(numbers), size) if numbers[at] < ABSENT]
    for at in absent:
        numbers[at] = math.nan
    return len(absent) * size < len(numbers)


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
