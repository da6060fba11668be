"""Reads and edits the work file, a GeoPackage, with nothing but sqlite3. Runs in the sandbox."""

import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count, filterfalse, islice
from typing import Any

from service.engine.jailed.exits import Exit

FID = "__geomill_fid"
GEOMETRY = "__geomill_geometry"
"""Names of the columns that the work file adds; no column of the data has them."""
WKB_TYPES = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
    8: "LineString",
    9: "LineString",
    10: "Polygon",
    11: "MultiLineString",
    12: "MultiPolygon",
    15: "MultiPolygon",
    16: "MultiPolygon",
    17: "Polygon",
}
"""Geometry types by code; curves and surfaces map to the simple type that replaces them."""
MAX_LAYERS = 1000
"""The maximum per file, which also bounds what is reported about them."""
DATUM = re.compile(
    r"""\bDATUM\[\s*"(?P<name>[^"]{1,200})"\s*,\s*(?:SPHEROID|ELLIPSOID)\[\s*"[^"]{0,200}"\s*,"""
    r"""\s*(?P<axis>\d{1,9}(?:\.\d{1,20})?)\s*,\s*(?P<flattening>\d{1,9}(?:\.\d{1,20})?)"""
)
"""The datum of a system, the axis of its ellipsoid in meters and how many times its flattening is in 1."""
MERIDIAN = re.compile(r'\bPRIMEM\[\s*"[^"]{0,200}"\s*,\s*(-?\d{1,3}(?:\.\d{1,20})?)')
"""The longitude of its prime meridian; both of GDAL's notations have it in degrees."""
HEIGHTS = re.compile(r'\b(?:VERT_?CS|VERT(?:ICAL)?CRS)\[\s*"([^"]{1,200})"')
"""The system of heights in one of positions and heights."""
SHIFT = "TOWGS84["
"""What follows if the system says how its datum is transformed."""
NO_SYSTEM = ("LOCAL_CS", "ENGCRS", "ENGINEERINGCRS", "UNDEFINED")
NEWER_DEFINITION = "definition_12_063"
LAYERS = "'features', 'attributes', 'aspatial'"
"""How a GeoPackage lists tables that are layers; the last is what GDAL called the second before the standard did."""
EMPTY_FLAG = 0x10
ENVELOPE_BYTES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
HEADER_BYTES = 8


def quoted(identifier: str) -> str:
    """`identifier` quoted for SQL."""
    return '"' + identifier.replace('"', '""') + '"'


def text_of(name: str) -> str:
    """`name` as a text of SQL."""
    return "'" + name.replace("'", "''") + "'"


def spare_names(number: int, taken: Iterable[str]) -> list[str]:
    """`number` names for tables or columns that are none of `taken`; short, as each change of one copies all others."""
    return list(islice(filterfalse(set(taken).__contains__, map("__{}".format, count())), number))


def wkb_offset(flags: int) -> int:
    """Where the WKB in a geometry blob begins, from the flags in its fourth byte."""
    return HEADER_BYTES + ENVELOPE_BYTES.get(flags >> 1 & 7, 0)


def split_code(code: int) -> tuple[int, bool]:
    """The basic code of a WKB type, ISO or extended, and whether it has Z."""
    has_z = bool(code & 0x80000000) or (code & 0xFFFF) // 1000 in {1, 3}
    return (code & 0xFFFF) % 1000, has_z


def has_measures(code: int) -> bool:
    """Whether a WKB type, ISO or extended, has M."""
    return bool(code & 0x40000000) or (code & 0xFFFF) // 1000 in {2, 3}


def open_work_file(path: str) -> sqlite3.Connection:
    """Open the work file for reading and writing, without a journal: a crash ends the job anyway."""
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


def tables(connection: sqlite3.Connection) -> Iterator[str]:
    """The tables that are layers, in the order in which they were written."""
    query = f"SELECT table_name FROM gpkg_contents WHERE data_type IN ({LAYERS}) ORDER BY rowid"  # noqa: S608 -- ours
    for (name,) in named_rows(connection, query):
        yield name


def columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    """Name and declared type of the columns of `table`, without the two that the work file adds."""
    rows = named_rows(connection, f"PRAGMA table_info({quoted(table)})")
    return [(row[1], str(row[2]).upper()) for row in rows if row[1] not in {FID, GEOMETRY}]


def text_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of texts of `table`, quoted for SQL."""
    return [quoted(name) for name, declared in columns(connection, table) if declared.startswith("TEXT")]


def change_geometries(
    connection: sqlite3.Connection, table: str, change: Callable[[bytes], bytes], column: str = GEOMETRY
) -> None:
    """Replace the WKB of all geometries of `table` by what `change` makes of it."""

    def changed(blob: bytes) -> bytes:
        at = wkb_offset(blob[3])
        return blob[:at] + change(blob[at:])

    connection.create_function("changed", 1, changed, deterministic=True)
    name = quoted(column)
    connection.execute(f"UPDATE {quoted(table)} SET {name} = changed({name}) WHERE {name} IS NOT NULL")  # noqa: S608 -- quoted


def named_rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """What a query for names returns; exits if they are not UTF-8."""
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
        sys.exit(Exit.NOT_UTF8)  # text is expected, and the driver copied bytes that are not UTF-8


def has_geometry(connection: sqlite3.Connection, table: str) -> bool:
    """Whether `table` has a geometry column."""
    query = "SELECT 1 FROM gpkg_geometry_columns WHERE table_name = ?"
    return connection.execute(query, (table,)).fetchone() is not None


def system_of(connection: sqlite3.Connection, table: str) -> dict[str, object]:
    """Whether the coordinate system of `table` is known, and its EPSG code, or what only its description names.

    A system with three axes has its code, or no definition but in the newer column. A .prj may be in any encoding, and
    with it the definition.
    """
    known = {name for _, name, *_ in connection.execute("PRAGMA table_info(gpkg_spatial_ref_sys)")}
    newer = NEWER_DEFINITION if NEWER_DEFINITION in known else "definition"
    query = f"""
        SELECT s.srs_id, upper(s.organization) = 'EPSG', s.organization_coordsys_id, CAST(s.definition AS BLOB),
            CAST(s.{newer} AS BLOB)
        FROM gpkg_geometry_columns g JOIN gpkg_spatial_ref_sys s USING (srs_id) WHERE g.table_name = ?
    """  # noqa: S608 -- one of two names
    row = connection.execute(query, (table,)).fetchone()
    if row is None or row[0] in {0, -1}:
        return {"known": False}
    _, is_epsg, code, *definitions = row
    if is_epsg and code > 0:
        return {"known": True, "epsg": code}
    text, newer_text = (definition.decode("utf-8", "replace").strip() for definition in definitions)
    text = newer_text if text.lower() == "undefined" else text
    described = None if SHIFT in text else DATUM.search(text)
    meridian = MERIDIAN.search(text)
    numbers = {name: float(described[name]) for name in ("axis", "flattening")} if described else {}
    numbers |= {"meridian": float(meridian[1])} if meridian else {}
    datum = {"datum": {"name": described["name"], **numbers}} if described else {}
    high = HEIGHTS.search(text)
    heights = {"heights": high[1]} if high else {}
    return {"known": not text.upper().lstrip().startswith(NO_SYSTEM), **datum, **heights}
