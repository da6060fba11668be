"""Finds what the driver of a database leaves out of its geometry columns, or ignores. Runs in the sandbox."""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from service.engine.jailed.declared import counted
from service.engine.jailed.gpkg import quoted, text_of

OF_GEOPACKAGE = "SELECT lower(column_name), 'gpkg' FROM gpkg_geometry_columns WHERE lower(table_name) = lower(?)"
OF_SPATIALITE = (
    "SELECT lower(f_geometry_column), 'spatialite' FROM geometry_columns WHERE lower(f_table_name) = lower(?)"
)
OF_FDO = OF_SPATIALITE.replace("'spatialite'", "lower(geometry_format)")
"""The queries for the geometry columns of a table and the formats of what they hold."""
NO_SPATIALITE = "length({0}) < 44 OR substr({0}, 39, 1) <> x'7c'"
KINDS = (
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTI",
    "GEOMETRYCOLLECTION",
    "CIRCULAR",
    "COMPOUND",
    "CURVE",
    "SURFACE",
    "TIN",
)
MORE_KINDS = ("POLYHEDRAL", "TRIANGLE", "SRID=")
_TEXT = "upper(trim({0}, char(9, 10, 13, 32)))"
_KNOWN = " OR ".join(f"{_TEXT} GLOB '{kind}*'" for kind in (*KINDS, *MORE_KINDS))
UNREAD = {
    "wkt": f"length({{0}}) > 0 AND (typeof({{0}}) <> 'text' OR NOT ({_KNOWN}) "
    f"OR {_TEXT} NOT GLOB '*(*[0-9]*[0-9]*)' AND {_TEXT} NOT GLOB '*EMPTY')",
    "wkb": "length({0}) > 0 AND (typeof({0}) <> 'blob' OR length({0}) < 9 "
    "OR hex(substr({0}, 1, 1)) NOT IN ('00', '01'))",
    "gpkg": f"length({{0}}) > 0 AND (typeof({{0}}) <> 'blob' OR length({{0}}) < 13 OR substr({{0}}, 1, 2) <> x'4750' "
    f"AND ({NO_SPATIALITE}))",
    "spatialite": f"length({{0}}) > 0 AND (typeof({{0}}) <> 'blob' OR {NO_SPATIALITE})",
}
"""By format: the condition that a value, which is not empty, cannot be a geometry, by bytes that all have in common.

The driver of GeoPackage also reads geometries of SpatiaLite.
"""
_EXTENDED = "hex(substr({0}, 1, 5))"
NAMED = {
    "wkt": f"CASE WHEN {_TEXT} GLOB 'SRID=[0-9]*' THEN printf('%08X', CAST(substr({_TEXT}, 6) AS INTEGER)) END",
    "wkb": f"CASE WHEN {_EXTENDED} GLOB '01??????[26AE]?' OR {_EXTENDED} GLOB '00[26AE]???????' "
    "THEN hex(substr({0}, 6, 4)) END",
    "gpkg": "CASE WHEN length({0}) > 12 AND substr({0}, 1, 2) = x'4750' THEN hex(substr({0}, 5, 4)) "
    f"WHEN NOT ({NO_SPATIALITE}) THEN hex(substr({{0}}, 3, 4)) END",
    "spatialite": f"CASE WHEN NOT ({NO_SPATIALITE}) THEN hex(substr({{0}}, 3, 4)) END",
}
"""By format: the number of the system that a geometry names, in hexadecimal and its byte order; NULL if none can be."""
USUAL = {
    "wkb": "substr({0}, 6, 4) = ",
    "gpkg": "{0} >= x'4750' AND {0} < x'4751' AND substr({0}, 5, 4) = ",
    "spatialite": "substr({0}, 3, 4) = ",
}
"""By format: the start of a condition that a geometry names a system in the usual byte order, quickly checked."""
_ALIKE = """
    SELECT alike.{id} FROM {columns} JOIN {systems} own USING ({id}) JOIN {systems} alike
        ON alike.{id} = own.{id} OR (lower(alike.{authority}), alike.{code}) = (lower(own.{authority}), own.{code})
    WHERE lower({table}) = lower(?) AND lower({column}) = lower(?) AND own.{id} > 0
"""
ALIKE_IN_GEOPACKAGE = _ALIKE.format(
    columns="gpkg_geometry_columns",
    table="table_name",
    column="column_name",
    systems="gpkg_spatial_ref_sys",
    id="srs_id",
    authority="organization",
    code="organization_coordsys_id",
)
ALIKE_IN_SQLITE = _ALIKE.format(
    columns="geometry_columns",
    table="f_table_name",
    column="f_geometry_column",
    systems="spatial_ref_sys",
    id="srid",
    authority="auth_name",
    code="auth_srid",
)
"""The queries for all numbers that stand for the system of a geometry column; none if it has no system."""
NO_SYSTEM = (0, -1)


def in_other_system(kind: str, numbers: Sequence[int]) -> str:
    """The condition that a geometry in the format `kind` names another system than those with `numbers`, or than none.

    In either byte order; what a geometry says of it is only known by its first bytes.
    """
    alike = {_bytes_of(number, order) for number in (*NO_SYSTEM, *numbers) for order in ("little", "big")}
    usual = [f"NOT ({USUAL[kind]}x'{_bytes_of(number, 'little')}')" for number in numbers[:1] if kind in USUAL]
    return " AND ".join([*usual, f"{NAMED[kind]} NOT IN ({', '.join(map(text_of, sorted(alike)))})"])


def _bytes_of(number: int, order: Literal["little", "big"]) -> str:
    """The four bytes of a system's number, in hexadecimal."""
    return (number & 0xFFFFFFFF).to_bytes(4, order).hex().upper()


def geometry_columns(connection: sqlite3.Connection, table: str, *, is_geopackage: bool) -> dict[str, str]:
    """The geometry columns of `table` in lower case, each with the format of its values; none in plain SQLite."""
    for query in (OF_GEOPACKAGE,) if is_geopackage else (OF_FDO, OF_SPATIALITE):
        try:
            return {name: str(kind) for name, kind in connection.execute(query, (table,))}
        except sqlite3.OperationalError:
            pass  # there is no such table, or it names no formats
    return {}


def left_out(connection: sqlite3.Connection, table: str, *, is_geopackage: bool) -> tuple[dict[str, int], ...]:
    """How many values of the first geometry column of `table` are not geometries of its format; how many others have.

    Of several geometry columns, which only SQLite may have, the first alone is converted. Last, how many of its values
    name another coordinate system than the table, which drivers ignore. All of a table that has none do not count.
    """
    formats = geometry_columns(connection, table, is_geopackage=is_geopackage)
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({quoted(table)})")]
    first, *others = [name for name in columns if name.lower() in formats] or [""]
    kind = formats.get(first.lower(), "")
    unread = [(first, UNREAD[kind])] if kind in UNREAD else []
    alike = _numbers_of_system(connection, table, first, is_geopackage=is_geopackage) if kind in NAMED else ()
    foreign = [(first, in_other_system(kind, alike))] if alike else []
    wanted = (unread, [(name, "{0} NOT NULL") for name in others], foreign)
    return tuple({name: count for name, count in counted(connection, table, pairs) if count} for pairs in wanted)


def _numbers_of_system(
    connection: sqlite3.Connection, table: str, column: str, *, is_geopackage: bool
) -> Sequence[int]:
    """All numbers that stand for the system of a geometry column; none if it has no system, or no table lists them."""
    query = ALIKE_IN_GEOPACKAGE if is_geopackage else ALIKE_IN_SQLITE
    try:
        return [number for (number,) in connection.execute(query, (table, column)) if isinstance(number, int)]
    except sqlite3.OperationalError:
        return ()
