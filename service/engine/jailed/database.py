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
    r"|tge_|qgis_projects$|geometry_columns_|rl2map_)",
    re.IGNORECASE,
)
VIRTUAL = re.compile(rb"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def layers(connection: sqlite3.Connection) -> list[str]:
    """The layers of a GeoPackage; none if it cannot be read."""
    try:
        return list(tables(connection))[:MAX_LAYERS]
    except sqlite3.DatabaseError:
        return []  # the driver reports what is wrong


def data_tables(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """The tables that hold data, without shadow tables; and views and virtual tables, which may read other files."""
    try:
        entries = named_rows(
            connection,
            "SELECT name, CAST(sql AS BLOB), type = 'view' FROM sqlite_master WHERE type IN ('table', 'view') "
            "ORDER BY rowid",
        )
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)
    derived = [name for name, sql, is_view in entries if is_view or VIRTUAL.match(sql or b"")]
    shadows = tuple(f"{name}_" for name, _, is_view in entries if name in derived and not is_view)
    names = [name for name, *_ in entries if not NOT_DATA.match(name) and not name.startswith(shadows)]
    kept = [name for name in names if name not in derived]
    if len(kept) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    return kept, [name for name in names if name in derived][:MAX_LAYERS]
