"""Finds the tables of an SQLite database that hold data. Runs in the sandbox."""

import re
import sqlite3
import sys

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, named_rows, tables

NOT_DATA = re.compile(
    r"^(sqlite_|idx_|rtree_|spatial_ref_sys|geometry_columns|views_geometry|virts_geometry|spatialite_history$"
    r"|sql_statements_log$|spatialindex$|elementarygeometries$|knn2?$|data_licenses$|raster_coverages|vector_coverages"
    r"|wms_|se_|iso_metadata|topologies$|networks$|stored_|layer_styles$|vector_layers|layer_|geom_cols_ref_sys$"
    r"|tge_|qgis_projects$|geometry_columns_)",
    re.IGNORECASE,
)
VIRTUAL = re.compile(rb"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def layers(connection: sqlite3.Connection) -> list[str]:
    """The layers of a GeoPackage; none if it cannot be read."""
    try:
        return list(tables(connection))[:MAX_LAYERS]
    except sqlite3.DatabaseError:
        return []  # the driver reports what is wrong


def data_tables(connection: sqlite3.Connection) -> list[str]:
    """The tables that hold data; not virtual tables and their shadow tables, because they may read other files."""
    try:
        entries = named_rows(
            connection, "SELECT name, CAST(sql AS BLOB) FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        )
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)
    virtual = tuple(name for name, sql in entries if VIRTUAL.match(sql or b""))
    shadows = tuple(f"{name}_" for name in virtual)
    names = [name for name, _ in entries if not (NOT_DATA.match(name) or name in virtual or name.startswith(shadows))]
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    return names
