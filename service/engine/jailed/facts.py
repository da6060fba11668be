"""States the facts about a work file. Runs in the sandbox.

In the same pass it edits the file so that every target can use it: empty geometries
become null and empty parts are left out, because their NaN coordinates cannot be reprojected, and columns match the
input (`tidy`).
"""

import json
import math
import re
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from service.engine.jailed.encodings import mend_texts
from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import (
    EMPTY_FLAG,
    FID,
    GEOMETRY,
    HEADER_BYTES,
    MAX_LAYERS,
    WKB_TYPES,
    columns,
    has_geometry,
    has_measures,
    open_work_file,
    quoted,
    split_code,
    system_of,
    tables,
    wkb_offset,
)
from service.engine.jailed.measures import leave_out_absent
from service.engine.jailed.moments import carry_seconds
from service.engine.jailed.shapes import collection_parts, mend_geometries, sloping_areas, surfaces_to_polygons
from service.engine.jailed.tidy import Tidying, tidy
from service.engine.jailed.unplaced import Cells, put_back
from service.engine.jailed.values import value_counts
from service.engine.jailed.wkb import SURFACES

HAS_ROWS = "SELECT 1 FROM {} LIMIT 1"
CURVES = {8, 9, 10, 11, 12}
WITH_AREAS = {"Polygon", "MultiPolygon", "GeometryCollection"}
MAX_COLUMNS = 2000
DBF_BYTES = 254
COLUMNS_A_QUERY = 75
FARTHEST, POLE = 540.0, 90.001
"""Longitudes may exceed 180 by another turn, so that a geometry can cross the date line in one piece."""
HEAD_BYTES = 80
POINT_BYTES = 21
FIELD_TYPES = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER"), "integer"),
    **dict.fromkeys(("REAL", "FLOAT", "DOUBLE"), "real"),
    "DATE": "date",
    "DATETIME": "datetime",
    "BLOB": "binary",
}


def main(work_file: str, tidying: str) -> dict[str, object]:
    """Return the facts about `work_file`.

    Args:
        work_file: the GeoPackage; empty geometries in it become null.
        tidying: JSON object with what is known about the reported columns, and about the cells of tables. If it has
            `most_filled`, little is told of so many layers with features, because they are refused.
    """
    connection = open_work_file(work_file)
    described = json.loads(tidying)
    cells = {table: Cells(**one) for table, one in described.pop("cells", {}).items()}
    most_filled = described.pop("most_filled", MAX_LAYERS + 1)
    known = Tidying(**described)
    names = list(tables(connection))
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    filled = [name for name in names if connection.execute(HAS_ROWS.format(quoted(name))).fetchone()]
    if len(filled) >= most_filled:
        layers = [{"name": name, "table": name, "features": 1, "null_geometries": 1} for name in filled]
    else:
        layers = [_layer(connection, name, known, cells.get(name)) for name in names]
    return {"layers": layers, "in_work_file": True}


def _layer(connection: sqlite3.Connection, table: str, tidying: Tidying, cells: Cells | None) -> dict[str, object]:
    mended, first_mended = mend_texts(connection, table) if tidying.has_other_texts else (0, 0)
    guessed = tidy(connection, table, tidying)
    carry_seconds(connection, table, tidying.clock_times)
    unplaced, first_unplaced = put_back(connection, table, cells) if cells is not None else (0, 0)
    (features,) = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
    facts: dict[str, object] = {
        "name": table,
        "table": table,
        "features": features,
        "guessed_columns": guessed,
        "unplaced_rows": unplaced,
        "first_unplaced_row": first_unplaced,
        "mended_texts": mended,
        "first_mended": first_mended,
        "null_geometries": features,
        "fields": list(_fields(connection, table)),
    }
    if has_geometry(connection, table):
        if tidying.absent_measures:
            leave_out_absent(connection, table)
        facts |= _geometry_facts(connection, table, features) | {"crs": system_of(connection, table)}
    return facts


def _geometry_facts(connection: sqlite3.Connection, table: str, features: int) -> dict[str, object]:
    flaws = mend_geometries(connection, table)
    histogram, basics, with_z, with_m, emptied = _histogram(connection, table)
    surfaces = surfaces_to_polygons(connection, table) if basics & SURFACES.keys() else 0
    found = collection_parts(connection, table) if histogram["GeometryCollection"] else ({}, False, 0)
    parts, curved_parts, surfaces_in_parts = found
    longest = connection.execute(f"SELECT max(length({GEOMETRY})) FROM {quoted(table)}").fetchone()[0]  # noqa: S608 -- quoted
    extent = _extent(connection, table)
    may_slope = with_z and not {name for name, count in histogram.items() if count}.isdisjoint(WITH_AREAS)
    return {
        "extent": extent,
        "first_beyond_degrees": 0 if extent is None or _is_in_degrees(extent) else _first_beyond(connection, table),
        "geometry_types": dict(histogram),
        "null_geometries": features - sum(histogram.values()),
        "empty_geometries": emptied,
        "has_z": bool(with_z),
        "flat_geometries": sum(histogram.values()) - with_z if with_z else 0,
        "sloping_areas": sloping_areas(connection, table) if may_slope else 0,
        "has_m": bool(with_m),
        "unmeasured_geometries": sum(histogram.values()) - with_m if with_m else 0,
        "declared": None if histogram.total() else _declared(connection, table),
        "surfaces": surfaces + surfaces_in_parts,
        "has_curves": curved_parts or bool(basics & CURVES),
        "longest_geometry_bytes": longest or 0,
        "collection_parts": parts,
        "flaws": flaws,
    }


def _histogram(connection: sqlite3.Connection, table: str) -> tuple[Counter[str], set[int], int, int, int]:
    """How often each type occurs, the basic codes, and how many geometries have Z, have M and are empty."""
    histogram: Counter[str] = Counter()
    basics: set[int] = set()
    with_z = with_m = emptied = 0
    for code, empty, count in list(_heads(connection, table)):
        if empty:
            _empty_to_null(connection, table)
            emptied += count
            continue
        basic, z = split_code(code)
        if basic not in WKB_TYPES:
            sys.exit(Exit.UNKNOWN_GEOMETRY)
        histogram[WKB_TYPES[basic]] += count
        basics.add(basic)
        with_z += count if z else 0
        with_m += count if has_measures(code) else 0
    return histogram, basics, with_z, with_m, emptied


def _declared(connection: sqlite3.Connection, table: str) -> dict[str, object] | None:
    """The type that `table` declares for its geometries, unless it is any."""
    query = "SELECT geometry_type_name, z, m FROM gpkg_geometry_columns WHERE table_name = ?"
    name, z, m = connection.execute(query, (table,)).fetchone()
    types = {simple.upper(): simple for simple in WKB_TYPES.values() if simple != "GeometryCollection"}
    return {"type": types[name], "has_z": z == 1, "has_m": m == 1} if name in types else None


def _heads(connection: sqlite3.Connection, table: str) -> Iterator[tuple[int, bool, int]]:
    """WKB code, emptiness and count of the geometries in `table`; grouping in SQLite takes a tenth of the time."""
    offsets = " ".join(f"WHEN '{flags:02X}' THEN {wkb_offset(flags) + 1}" for flags in range(64))
    query = f"""
        SELECT flags, hex(substr({GEOMETRY}, at, 5)), count(*) FROM (
            SELECT {GEOMETRY}, flags, CASE flags {offsets} END AS at FROM (
                SELECT {GEOMETRY}, hex(substr({GEOMETRY}, 4, 1)) AS flags FROM {quoted(table)}
                WHERE {GEOMETRY} IS NOT NULL))
        GROUP BY 1, 2
    """  # noqa: S608 -- quoted
    for flags, head, count in connection.execute(query):
        raw = bytes.fromhex(head)
        (code,) = struct.unpack("<I" if raw[:1] == b"\x01" else ">I", raw[1:])
        yield code, bool(int(flags, 16) & EMPTY_FLAG), count


def _empty_to_null(connection: sqlite3.Connection, table: str) -> None:
    empty = ", ".join(f"'{flags:02X}'" for flags in range(64) if flags & EMPTY_FLAG)
    connection.execute(
        f"UPDATE {quoted(table)} SET {GEOMETRY} = NULL WHERE hex(substr({GEOMETRY}, 4, 1)) IN ({empty})"  # noqa: S608 -- quoted
    )


def _extent(connection: sqlite3.Connection, table: str) -> tuple[float, ...] | None:
    query = "SELECT min_x, min_y, max_x, max_y FROM gpkg_contents WHERE table_name = ?"
    found = connection.execute(query, (table,)).fetchone()
    return tuple(found) if all(isinstance(value, float) and math.isfinite(value) for value in found) else None


def _is_in_degrees(extent: Sequence[float]) -> bool:
    west, south, east, north = extent
    return west >= -FARTHEST and east <= FARTHEST and south >= -POLE and north <= POLE


def _first_beyond(connection: sqlite3.Connection, table: str) -> int:
    """The number of the first feature that is not in degrees; coordinates in other units show it early."""
    query = f"SELECT substr({GEOMETRY}, 1, {HEAD_BYTES}) FROM {quoted(table)} ORDER BY {FID}"  # noqa: S608 -- quoted
    for number, (head,) in enumerate(connection.execute(query), 1):
        if head is not None and not any(map(math.isnan, extent := _envelope(head))) and not _is_in_degrees(extent):
            return number
    return 0


def _envelope(head: bytes) -> tuple[float, ...]:
    """The extent of a geometry from the start of its blob; points store no envelope, only their position."""
    at = wkb_offset(head[3])
    if at > HEADER_BYTES:
        west, east, south, north = struct.unpack_from("<4d" if head[3] & 1 else ">4d", head, HEADER_BYTES)
        return west, south, east, north
    if len(head) < at + POINT_BYTES:
        return 0.0, 0.0, 0.0, 0.0
    x, y = struct.unpack_from("<2d" if head[at] else ">2d", head, at + 5)
    return x, y, x, y


def _fields(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, object]]:
    found = columns(connection, table)
    if len(found) > MAX_COLUMNS:
        sys.exit(Exit.TOO_MANY_COLUMNS)
    kinds = {name: FIELD_TYPES.get(declared.partition("(")[0].strip(), "text") for name, declared in found}
    lengths = _lengths(connection, table, [name for name, kind in kinds.items() if kind == "text"])
    _widen(connection, table, found, lengths)
    counts = value_counts(connection, table, kinds)
    for name, kind in kinds.items():
        longest, over = lengths.get(name, (0, 0))
        yield {"name": name, "type": kind, "longest_bytes": longest, "over_dbf_limit": over} | counts[name]


def _widen(
    connection: sqlite3.Connection, table: str, found: Sequence[tuple[str, str]], lengths: Mapping[str, tuple[int, int]]
) -> None:
    """Declare columns as wide as their longest text if it is longer than they declare: some drivers cut what is."""
    narrow = {
        f"{quoted(name)} {declared}": f"{quoted(name)} TEXT({lengths[name][0]})"
        for name, declared in found
        if (width := re.fullmatch(r"TEXT\((\d+)\)", declared)) and lengths[name][0] > int(width[1])
    }
    if not narrow:
        return
    ((definition,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,))
    for declared, wide in narrow.items():
        definition = definition.replace(declared, wide)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (definition, table))
    connection.execute("PRAGMA writable_schema = RESET")


def _lengths(connection: sqlite3.Connection, table: str, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The length of the longest value of each text column in bytes, and how many values a .dbf cannot hold."""
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(names), COLUMNS_A_QUERY):
        chunk = names[start : start + COLUMNS_A_QUERY]
        sizes = [f"length(CAST({quoted(name)} AS BLOB))" for name in chunk]
        wanted = ", ".join(f"max({size}), sum({size} > {DBF_BYTES})" for size in sizes)
        row = connection.execute(f"SELECT {wanted} FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
        found |= {name: (row[2 * at] or 0, row[2 * at + 1] or 0) for at, name in enumerate(chunk)}
    return found
