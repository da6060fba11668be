"""Finds what the driver of a database leaves out of its geometry columns, or ignores. Runs in the sandbox."""

import sqlite3

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
_OWN = """
    FROM gpkg_geometry_columns layer JOIN gpkg_spatial_ref_sys own USING (srs_id)
    WHERE lower(table_name) = lower({0}) AND srs_id > 0
"""
_BYTES = ", ".join(f"id >> {bits} & 255" for bits in (0, 8, 16, 24))
_IN_OTHER_SYSTEM = f"""
    length({{{{0}}}}) > 12 AND substr({{{{0}}}}, 1, 2) = x'4750' AND EXISTS (SELECT 1 {_OWN})
    AND hex(substr({{{{0}}}}, 5, 4)) NOT IN (
        WITH alike (id) AS (
            VALUES (0), (-1) UNION ALL SELECT srs_id FROM gpkg_spatial_ref_sys
            WHERE (lower(organization), organization_coordsys_id) = (
                SELECT lower(organization), organization_coordsys_id {_OWN}
            )
        )
        SELECT printf('%08X', id & 0xFFFFFFFF) FROM alike
        UNION ALL SELECT printf('%02X%02X%02X%02X', {_BYTES}) FROM alike
    )
"""  # noqa: S608 -- ours


def in_other_system(table: str) -> str:
    """The condition that a geometry of `table` in a GeoPackage names another system than that, in either byte order.

    The driver ignores it. Those that name none, and all of a table that names none, do not count.
    """
    return _IN_OTHER_SYSTEM.format(text_of(table).replace("{", "{{").replace("}", "}}"))


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
    in a GeoPackage name another coordinate system than the table.
    """
    formats = geometry_columns(connection, table, is_geopackage=is_geopackage)
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({quoted(table)})")]
    first, *others = [name for name in columns if name.lower() in formats] or [""]
    unread = [(first, UNREAD[formats[first.lower()]])] if first and formats[first.lower()] in UNREAD else []
    foreign = [(first, in_other_system(table))] if first and is_geopackage else []
    wanted = (unread, [(name, "{0} NOT NULL") for name in others], foreign)
    return tuple({name: count for name, count in counted(connection, table, pairs) if count} for pairs in wanted)
