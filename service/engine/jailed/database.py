"""Finds the tables of an SQLite database that hold data. Runs in the sandbox."""

import re
import sqlite3
import sys
from collections.abc import Iterable

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, named_rows, tables

NOT_DATA = re.compile(
    r"sqlite_.*|spatialite_history|sql_statements_log|spatialindex|elementarygeometries|knn2?|data_licenses"
    r"|((views_|virts_)?geometry_columns|vector_layers)(_(auth|field_infos|statistics|time))?"
    r"|(views_|virts_)?layer_statistics|layer_(params|sub_classes|table_layout|styles)"
    r"|spatial_ref_sys(_aux|_all)?|geom_cols_ref_sys|(raster|vector)_coverages(_srid|_keyword|_ref_sys)?"
    r"|se_(external_graphics|fonts|(raster|vector)_styled_layers|(raster|vector|group)_styles|styled_groups)(_view)?"
    r"|se_styled_group_(refs|styles)|rl2map_configurations(_view)?|wms_(settings|ref_sys|getmap|getcapabilities)"
    r"|iso_metadata(_reference|_view)?|topologies|networks|stored_(procedures|variables)|qgis_projects",
    re.IGNORECASE,
)
"""The tables of SpatiaLite and QGIS. Others may be called similarly, such as `layer_roads`, and hold data."""
INDEX = ("idx_", "rtree_")
"""How virtual tables are called that index geometries."""
SHADOWS = (
    *("node", "parent", "rowid"),  # of an R*Tree
    *("content", "segments", "segdir", "docsize", "stat", "data", "idx", "config"),  # of a full-text search
)
"""What follows the name of a virtual table in those of its tables."""
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
    virtual = [name for name, (is_view, is_virtual) in kinds.items() if is_virtual and not is_view]
    hidden = {name for name in virtual if name.lower().startswith(INDEX)}
    hidden.update(f"{name}_{shadow}" for name in virtual for shadow in SHADOWS)
    names = [name for name in kinds if not NOT_DATA.fullmatch(name) and name not in hidden]
    return [name for name in names if not any(kinds[name])], [name for name in names if any(kinds[name])]
