"""Splits collections and curves in the work file, and turns surfaces into polygons. Runs in the sandbox."""

import sqlite3
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from service.engine.jailed.curves import straightened
from service.engine.jailed.exits import Exit
from service.engine.jailed.flaws import FLAWS, NOT_MENDED, may_be_flawed, mended
from service.engine.jailed.gpkg import (
    EMPTY_FLAG,
    FID,
    GEOMETRY,
    WKB_TYPES,
    change_geometries,
    quoted,
    split_code,
    wkb_offset,
)
from service.engine.jailed.wkb import as_polygons, count_sloping, is_curved, parts_by_family

ENDS_OF_NUMBERS = (21, 29, 37)
"""Where the last bytes of the coordinates of a point are in a blob, which tell its exponents."""
LONGEST_POINT = 45
UNKNOWN = (ValueError, struct.error)
"""What geometries raise that are truncated, nested too deeply, or neither simple nor curves."""


def mend_geometries(connection: sqlite3.Connection, table: str) -> dict[str, tuple[int, int]]:
    """Make geometries null that are nowhere, give elevations 0 that are no finite numbers, leave out empty parts.

    Returns how many geometries have each flaw, and the number of the first feature with one, from 1.
    """
    connection.create_function("mended", 1, lambda blob: _mended(blob)[0], deterministic=True)
    ends = " OR ".join(f"substr({GEOMETRY}, {at}, 1) IN (x'7F', x'FF')" for at in ENDS_OF_NUMBERS)
    where = f"length({GEOMETRY}) > {LONGEST_POINT} OR {ends}"
    found: dict[str, array[int]] = {kind: array("q") for kind in FLAWS}
    for fid, blob in connection.execute(f"SELECT {FID}, {GEOMETRY} FROM {quoted(table)} WHERE {where} ORDER BY {FID}"):  # noqa: S608 -- quoted
        for kind in _mended(blob)[1]:
            found[kind].append(fid)
    update = f"UPDATE {quoted(table)} SET {GEOMETRY} = mended({GEOMETRY}) WHERE {FID} = ?"  # noqa: S608 -- quoted
    connection.executemany(update, ((fid,) for kind, fids in found.items() if kind not in NOT_MENDED for fid in fids))
    return {kind: (len(fids), _number(connection, table, fids[0])) for kind, fids in found.items() if fids}


def _mended(blob: bytes | None) -> tuple[bytes | None, Sequence[str]]:
    """A geometry blob that is mended, and its flaws."""
    if blob is None or blob[3] & EMPTY_FLAG:
        return blob, ()
    at = wkb_offset(blob[3])
    try:
        if not may_be_flawed(blob, at):
            return blob, ()
        wkb, found = mended(blob[at:])
    except UNKNOWN:
        return blob, ()  # what takes it apart reports it
    return wkb and blob[:at] + wkb, found


def _number(connection: sqlite3.Connection, table: str, fid: int) -> int:
    """The number of a feature, from 1."""
    (number,) = connection.execute(f"SELECT count(*) FROM {quoted(table)} WHERE {FID} <= ?", (fid,)).fetchone()  # noqa: S608 -- quoted
    return int(number)


def collection_parts(connection: sqlite3.Connection, table: str) -> tuple[dict[str, int], bool, int]:
    """How many Multi geometries of each type the collections of `table` contain, and whether any has curves.

    If they contain surfaces, these become polygons, in the number of geometries that is the last of what is returned;
    exits if they contain what cannot be converted.
    """
    with suppress(*UNKNOWN):
        return *_parts(connection, table), 0
    surfaces = surfaces_to_polygons(connection, table)
    try:
        return *_parts(connection, table), surfaces
    except UNKNOWN:
        sys.exit(Exit.UNKNOWN_GEOMETRY)


def _parts(connection: sqlite3.Connection, table: str) -> tuple[dict[str, int], bool]:
    parts: Counter[str] = Counter()
    curved = False
    for (blob,) in connection.execute(f"SELECT {GEOMETRY} FROM {quoted(table)} WHERE {GEOMETRY} IS NOT NULL"):  # noqa: S608 -- quoted
        if is_collection(blob):
            found = parts_by_family(blob[wkb_offset(blob[3]) :])
            parts.update(found.keys())
            curved = curved or any(map(is_curved, found.values()))
    return dict(parts), curved


def sloping_areas(connection: sqlite3.Connection, table: str) -> int:
    """How many areas of `table` have points with different elevations."""
    blobs = connection.execute(f"SELECT {GEOMETRY} FROM {quoted(table)} WHERE {GEOMETRY} IS NOT NULL")  # noqa: S608 -- quoted
    return sum(count_sloping(blob[wkb_offset(blob[3]) :]) for (blob,) in blobs)


def taken_apart(blob: bytes) -> dict[str, bytes]:
    """The WKB of the parts of a collection by type; exits if it contains what cannot be converted."""
    try:
        return parts_by_family(blob[wkb_offset(blob[3]) :])
    except UNKNOWN:
        sys.exit(Exit.UNKNOWN_GEOMETRY)


def is_collection(head: bytes) -> bool:
    """Whether a geometry blob that begins with `head` is a collection."""
    at = wkb_offset(head[3])
    (code,) = struct.unpack_from("<I" if head[at] else ">I", head, at + 1)
    return WKB_TYPES.get(split_code(code)[0]) == "GeometryCollection"


def straighten(connection: sqlite3.Connection, table: str) -> None:
    """Turn the curves of `table` into lines: the converter drops those in collections, and all with elevations."""
    change_geometries(connection, table, straightened)
    connection.execute(
        "UPDATE gpkg_geometry_columns SET geometry_type_name = 'GEOMETRY' WHERE table_name = ?", (table,)
    )


def surfaces_to_polygons(connection: sqlite3.Connection, table: str) -> int:
    """Turn polyhedral surfaces, TINs and triangles, which few targets support, into polygons; return how many."""
    connection.create_function("polygons", 1, _polygons, deterministic=True)
    changed = f"UPDATE {quoted(table)} SET {GEOMETRY} = polygons({GEOMETRY}) WHERE polygons({GEOMETRY}) <> {GEOMETRY}"  # noqa: S608 -- quoted
    return connection.execute(changed).rowcount


def _polygons(blob: bytes | None) -> bytes | None:
    if blob is None:
        return None
    at = wkb_offset(blob[3])
    try:
        return blob[:at] + as_polygons(blob[at:])
    except UNKNOWN:
        return blob  # what takes it apart reports it
