"""Finds the tables of an SQLite database that hold data. Runs in the sandbox.

`python -m …database FILE TABLES_FILE`. Uses only the standard library.
"""

import json
import re
import sqlite3
import sys
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS

NOT_DATA = re.compile(
    r"^(sqlite_|idx_|rtree_|spatial_ref_sys|geometry_columns|views_geometry|virts_geometry|spatialite_history$"
    r"|sql_statements_log$|spatialindex$|elementarygeometries$|knn2?$|data_licenses$|raster_coverages|vector_coverages"
    r"|wms_|se_|iso_metadata|topologies$|networks$|stored_|layer_styles$|vector_layers|layer_|geom_cols_ref_sys$"
    r"|tge_|qgis_projects$|geometry_columns_)",
    re.IGNORECASE,
)
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def main(database: str, tables_file: str) -> None:
    """Write the names of the tables in `database` that hold data to `tables_file`, as JSON.

    Virtual tables and their shadow tables are left out, because they may read other files.
    """
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        entries = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        ).fetchall()
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)
    virtual = tuple(name for name, sql in entries if VIRTUAL.match(sql or ""))
    shadows = tuple(f"{name}_" for name in virtual)
    names = [name for name, _ in entries if not (NOT_DATA.match(name) or name in virtual or name.startswith(shadows))]
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    Path(tables_file).write_text(json.dumps(names), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
