"""Finds the tables of an SQLite database that hold data, and values of other types than their columns declare.

SQLite allows them; the driver takes texts for 0 then, and others for no value. Runs in the sandbox:
`python -m …database FILE TABLES_FILE`. Uses only the standard library.
"""

import json
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, quoted

NOT_DATA = re.compile(
    r"^(sqlite_|idx_|rtree_|spatial_ref_sys|geometry_columns|views_geometry|virts_geometry|spatialite_history$"
    r"|sql_statements_log$|spatialindex$|elementarygeometries$|knn2?$|data_licenses$|raster_coverages|vector_coverages"
    r"|wms_|se_|iso_metadata|topologies$|networks$|stored_|layer_styles$|vector_layers|layer_|geom_cols_ref_sys$"
    r"|tge_|qgis_projects$|geometry_columns_)",
    re.IGNORECASE,
)
EXPRESSIONS_A_QUERY = 500
NO_DATE = "{0} NOT GLOB '[0-9][0-9][0-9][0-9][-/][0-9][0-9][-/][0-9][0-9]*'"
NO_INTEGER, NO_NUMBER = "typeof({0}) NOT IN ('integer', 'null')", "typeof({0}) NOT IN ('real', 'integer', 'null')"
FIRST = "(SELECT typeof({0}) FROM {1} LIMIT 1)"
INTEGERS = "INTEGER.*|(TINY|SMALL|MEDIUM|BIG|UNSIGNED BIG )?INT|INT2|INT8|BOOLEAN"
MISTYPED = (
    ("JSON|DEFLATE|BLOB|GEOM|POINT|LINE|POLYGON|CURVE|SURFACE", "0"),
    ("CHAR|CLOB|TEXT", "typeof({0}) = 'blob'"),
    (rf"^({INTEGERS})$", NO_INTEGER),
    ("^(REAL|FLOAT|DOUBLE( PRECISION)?|NUMERIC|DECIMAL)$", NO_NUMBER),
    ("^(DATE|DATETIME|TIMESTAMP)$", f"typeof({{0}}) <> 'null' AND {NO_DATE}"),
    ("", f"CASE {FIRST} WHEN 'integer' THEN {NO_INTEGER} WHEN 'real' THEN {NO_NUMBER} ELSE 0 END"),
)
"""Patterns of declared types, of which the first decides, and the condition that a value is of another type.

For types that the driver does not know, such as INTERVAL or INT(11), it takes that of the first value."""
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def main(database: str, tables_file: str) -> None:
    """Write the names of the tables in `database` that hold data to `tables_file`, and how many values are mistyped.

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
    mistyped: Counter[str] = Counter()
    for name in names:
        mistyped.update(_mistyped(connection, name))
    Path(tables_file).write_text(json.dumps({"tables": names, "mistyped": mistyped}), encoding="utf-8")


def _mistyped(connection: sqlite3.Connection, table: str) -> dict[str, int]:
    """How many values in each column of `table` are of another type than it declares; none if it cannot be read."""
    counts: dict[str, int] = {}
    try:
        columns = [(row[1], row[2].upper()) for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]
        wanted = [(name, condition) for name, kind in columns if (condition := _condition(table, name, kind))]
        for start in range(0, len(wanted), EXPRESSIONS_A_QUERY):
            part = wanted[start : start + EXPRESSIONS_A_QUERY]
            sums = ", ".join(f"total({condition})" for _, condition in part)
            row = connection.execute(f"SELECT {sums} FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
            counts |= {name: int(count) for (name, _), count in zip(part, row, strict=True) if count}
    except sqlite3.Error:
        return {}  # the driver reports what is wrong
    return counts


def _condition(table: str, name: str, kind: str) -> str:
    found = next((condition for words, condition in MISTYPED if re.search(words, kind)), "0")
    return "" if found == "0" else found.format(quoted(name), quoted(table))


if __name__ == "__main__":
    main(*sys.argv[1:3])
