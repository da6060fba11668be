"""Finds the tables of an SQLite database that hold data. Runs in the sandbox."""

import re
import sqlite3
import sys
from collections.abc import Iterable

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, named_rows, tables

NOT_DATA = re.compile(
    r"^(sqlite_|idx_|rtree_|spatial_ref_sys|geometry_columns|views_geometry|virts_geometry|spatialite_history$"
    r"|sql_statements_log$|spatialindex$|elementarygeometries$|knn2?$|data_licenses$|raster_coverages|vector_coverages"
    r"|wms_|se_|iso_metadata|topologies$|networks$|stored_|layer_styles$|vector_layers|layer_|geom_cols_ref_sys$"
    r"|tge_|qgis_projects$|geometry_columns_|rl2map_)",
    re.IGNORECASE,
)
ENTRIES = (
    "SELECT name, type = 'view', ltrim(substr(sql, length('CREATE') + 1), char(9, 10, 11, 12, 13, 32)) LIKE 'VIRTUAL%' "
    "FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
)
"""The query for the names of all tables and views, and whether each is a view or a virtual table."""


def layers(connection: sqlite3.Connection) -> list[str]:
    """The layers of a GeoPackage; none if it cannot be read."""
    try:
        return list(tables(connection))[:MAX_LAYERS]
    except sqlite3.DatabaseError:
        return []  # the driver reports what is wrong


def data_tables(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """The tables that hold data, without shadow tables; and views and virtual tables, which may read other files."""
    try:
        kept, derived = told_apart(named_rows(connection, ENTRIES))
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)
    if len(kept) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    return kept, derived[:MAX_LAYERS]


def told_apart(entries: Iterable[tuple[str, int, int | None]]) -> tuple[list[str], list[str]]:
    """The tables that hold data, and views and virtual tables, of what `ENTRIES` finds."""
    kinds = {name: (is_view, is_virtual) for name, is_view, is_virtual in entries}
    shadows = tuple(f"{name}_" for name, (is_view, is_virtual) in kinds.items() if is_virtual and not is_view)
    names = [name for name in kinds if not NOT_DATA.match(name) and not name.startswith(shadows)]
    return [name for name in names if not any(kinds[name])], [name for name in names if any(kinds[name])]
