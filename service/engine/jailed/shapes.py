"""Splits collections and curves in the work file, and turns surfaces into polygons. Runs in the sandbox."""

import sqlite3
import struct
import sys
from collections import Counter
from contextlib import suppress

from service.engine.jailed.curves import straightened
from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import EMPTY_FLAG, FID, GEOMETRY, WKB_TYPES, quoted, split_code, wkb_offset
from service.engine.jailed.wkb import (
    MAY_BE_HOLLOW,
    as_polygons,
    count_sloping,
    is_curved,
    parts_by_family,
    without_empty_parts,
    zero_heights,
)

ENDS_OF_NUMBERS = (21, 29, 37)
"""Where the last bytes of the coordinates of a point are in a blob, which tell its exponents."""
LONGEST_POINT = 45
NO_NUMBERS = (b"\xf8\x7f", b"\xf8\xff", b"\xf0\x7f", b"\xf0\xff")
"""How numbers end that are infinite or none."""
UNKNOWN = (ValueError, struct.error)
"""What geometries raise that are truncated, nested too deeply, or neither simple nor curves."""


def leave_out_empty_parts(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Leave out the parts without any position of Multi geometries and collections.

    Returns how many geometries had some, and the number of the first feature with one, from 1.
    """
    connection.create_function("filled", 1, _filled, deterministic=True)
    rows = connection.execute(f"SELECT {FID}, {GEOMETRY} FROM {quoted(table)} ORDER BY {FID}")  # noqa: S608 -- quoted
    hollow = [
        (number, fid)
        for number, (fid, blob) in enumerate(rows, 1)
        if blob is not None and MAY_BE_HOLLOW.search(blob, wkb_offset(blob[3])) and _filled(blob) != blob
    ]
    update = f"UPDATE {quoted(table)} SET {GEOMETRY} = filled({GEOMETRY}) WHERE {FID} = ?"  # noqa: S608 -- quoted
    connection.executemany(update, ((fid,) for _, fid in hollow))
    return len(hollow), hollow[0][0] if hollow else 0


def mend_positions(connection: sqlite3.Connection, table: str) -> tuple[int, int, int, int]:
    """Make geometries null whose coordinates are no finite numbers, and give elevations 0 that are none.

    Returns how many geometries of both kinds there were, each followed by the number of the first feature, from 1.
    """
    ends = " OR ".join(f"substr({GEOMETRY}, {at}, 1) IN (x'7F', x'FF')" for at in ENDS_OF_NUMBERS)
    where = f"length({GEOMETRY}) > {LONGEST_POINT} OR {ends}"
    rows = connection.execute(f"SELECT {FID}, {GEOMETRY} FROM {quoted(table)} WHERE {where} ORDER BY {FID}")  # noqa: S608 -- quoted
    nowhere: list[tuple[None, int]] = []
    heightless: list[tuple[bytes, int]] = []
    for fid, blob in rows:
        if not blob[3] & EMPTY_FLAG and any(number in blob for number in NO_NUMBERS):
            at = wkb_offset(blob[3])
            wkb = bytearray(blob[at:])
            with suppress(*UNKNOWN):
                is_nowhere, is_heightless = zero_heights(wkb)
                if is_nowhere:
                    nowhere.append((None, fid))
                elif is_heightless:
                    heightless.append((blob[:at] + wkb, fid))
    update = f"UPDATE {quoted(table)} SET {GEOMETRY} = ? WHERE {FID} = ?"  # noqa: S608 -- quoted
    connection.executemany(update, [*nowhere, *heightless])
    numbers = [_number(connection, table, found[0][1]) if found else 0 for found in (nowhere, heightless)]
    return len(nowhere), numbers[0], len(heightless), numbers[1]


def _number(connection: sqlite3.Connection, table: str, fid: int) -> int:
    """The number of a feature, from 1."""
    (number,) = connection.execute(f"SELECT count(*) FROM {quoted(table)} WHERE {FID} <= ?", (fid,)).fetchone()  # noqa: S608 -- quoted
    return int(number)


def _filled(blob: bytes) -> bytes:
    at = wkb_offset(blob[3])
    try:
        return blob[:at] + without_empty_parts(blob[at:])
    except UNKNOWN:
        return blob  # whoever takes it apart tells


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
    connection.create_function("straight", 1, _straight, deterministic=True)
    connection.execute(
        f"UPDATE {quoted(table)} SET {GEOMETRY} = straight({GEOMETRY}) WHERE {GEOMETRY} IS NOT NULL"  # noqa: S608 -- quoted
    )
    connection.execute(
        "UPDATE gpkg_geometry_columns SET geometry_type_name = 'GEOMETRY' WHERE table_name = ?", (table,)
    )


def _straight(blob: bytes) -> bytes:
    at = wkb_offset(blob[3])
    return blob[:at] + straightened(blob[at:])


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
        return blob  # whoever takes it apart tells
