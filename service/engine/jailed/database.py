"""Finds the tables of an SQLite database that hold data, and values of other types than their columns declare.

SQLite allows them; the driver takes texts for 0 then, and others for no value. Runs in the sandbox:
`python -m …database FILE TABLES_FILE`. Uses only the standard library.
"""

import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, quoted, tables

NOT_DATA = re.compile(
    r"^(sqlite_|idx_|rtree_|spatial_ref_sys|geometry_columns|views_geometry|virts_geometry|spatialite_history$"
    r"|sql_statements_log$|spatialindex$|elementarygeometries$|knn2?$|data_licenses$|raster_coverages|vector_coverages"
    r"|wms_|se_|iso_metadata|topologies$|networks$|stored_|layer_styles$|vector_layers|layer_|geom_cols_ref_sys$"
    r"|tge_|qgis_projects$|geometry_columns_)",
    re.IGNORECASE,
)
EXPRESSIONS_A_QUERY = 500
GEOPACKAGE = "geopackage"
NO_DATE = "{0} NOT GLOB '[0-9][0-9][0-9][0-9][-/][0-9][0-9][-/][0-9][0-9]*'"
NO_TIME = "{0} NOT GLOB '[01][0-9]:[0-5][0-9]*' AND {0} NOT GLOB '2[0-3]:[0-5][0-9]*'"
NO_INTEGER, NO_NUMBER = "typeof({0}) NOT IN ('integer', 'null')", "({0} COLLATE BINARY >= '')"
"""Texts and bytes are greater than all numbers, whatever the type of the column."""
FIRST = "(SELECT typeof({0}) FROM {1} LIMIT 1)"
INTEGERS = "INTEGER.*|(TINY|SMALL|MEDIUM|BIG|UNSIGNED BIG )?INT|INT2|INT8|BOOLEAN"
MISTYPED = (
    ("JSON|DEFLATE|BLOB|GEOM|POINT|LINE|POLYGON|CURVE|SURFACE", "0"),
    ("CHAR|CLOB|TEXT", "typeof({0}) = 'blob'"),
    (rf"^({INTEGERS})$", NO_INTEGER),
    ("^(REAL|FLOAT|DOUBLE( PRECISION)?|NUMERIC|DECIMAL)$", NO_NUMBER),
    ("^TIME$", f"typeof({{0}}) <> 'null' AND {NO_TIME}"),
    ("^(DATE|DATETIME|TIMESTAMP)$", f"typeof({{0}}) <> 'null' AND {NO_DATE}"),
    ("", f"CASE {FIRST} WHEN 'integer' THEN {NO_INTEGER} WHEN 'real' THEN {NO_NUMBER} ELSE 0 END"),
)
"""Patterns of declared types, of which the first decides, and the condition that a value is of another type.

For types that the driver does not know, such as INTERVAL or INT(11), it takes that of the first value."""
MISTYPED_OF = {
    **dict.fromkeys(("BOOLEAN", "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER"), NO_INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL"), NO_NUMBER),
    **dict.fromkeys(("DATE", "DATETIME"), f"typeof({{0}}) <> 'null' AND {NO_DATE}"),
}
"""The same for a GeoPackage, in which columns of all other types are texts or bytes."""
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def main(database: str, tables_file: str, kind: str = "") -> None:
    """Write the names of the tables in `database` that hold data to `tables_file`, and how many values are mistyped.

    If `kind` is "geopackage", these are the tables and views that it lists. Otherwise virtual tables and their shadow
    tables are left out, because they may read other files.
    """
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    is_geopackage = kind == GEOPACKAGE
    names = _layers(connection) if is_geopackage else _data_tables(connection)
    mistyped: Counter[str] = Counter()
    for name in names:
        mistyped.update(_mistyped(connection, name, is_geopackage=is_geopackage))
    Path(tables_file).write_text(json.dumps({"tables": names, "mistyped": mistyped}), encoding="utf-8")


def _layers(connection: sqlite3.Connection) -> list[str]:
    """The layers of a GeoPackage; none if it cannot be read."""
    try:
        return list(tables(connection))[:MAX_LAYERS]
    except sqlite3.DatabaseError:
        return []  # the driver reports what is wrong


def _data_tables(connection: sqlite3.Connection) -> list[str]:
    """The tables that hold data."""
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
    return names


def counting(table: str, conditions: Sequence[tuple[str, str]]) -> str:
    """The query for how often each condition holds for the column beside it."""
    sums = ", ".join(f"total({condition.format(quoted(name), quoted(table))})" for name, condition in conditions)
    return f"SELECT {sums} FROM {quoted(table)}"  # noqa: S608 -- quoted


def _mistyped(connection: sqlite3.Connection, table: str, *, is_geopackage: bool) -> dict[str, int]:
    """How many values in each column of `table` are of another type than it declares; none if it cannot be read."""
    counts: dict[str, int] = {}
    try:
        columns = [(row[1], row[2].upper()) for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]
        condition_of = MISTYPED_OF.get if is_geopackage else _condition
        wanted = [(name, condition) for name, kind in columns if (condition := condition_of(kind))]
        for start in range(0, len(wanted), EXPRESSIONS_A_QUERY):
            part = wanted[start : start + EXPRESSIONS_A_QUERY]
            row = connection.execute(counting(table, part)).fetchone()
            counts |= {name: int(count) for (name, _), count in zip(part, row, strict=True) if count}
    except sqlite3.Error:
        return {}  # the driver reports what is wrong
    return counts


def _condition(kind: str) -> str | None:
    found = next((condition for words, condition in MISTYPED if re.search(words, kind)), "0")
    return None if found == "0" else found


if __name__ == "__main__":
    main(*sys.argv[1:4])
