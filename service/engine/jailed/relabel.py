"""Gives layers names that a GeoPackage accepts, and makes lists texts. Runs in the sandbox.

GeoPackage refuses names that begin with punctuation or its own prefix; plain SQLite accepts them. Lists are JSON
already, which their driver would read as lists again.
"""

import re
import sqlite3
import sys

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, quoted, spare_names

LIST = re.compile(r"(?<=' )JSON(?:STRING|INTEGER|INTEGER64|REAL)LIST(?=[,)])")
"""The type of a column of lists."""
CATALOGUE = {"geometry_columns", "spatial_ref_sys"}


def main(database: str, first: str) -> dict[str, str]:
    """Rename every layer of `database` to `t0`, `t1`…, counted from `first`; return the old names by the new ones."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA legacy_alter_table = ON")
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    tables = [name for (name,) in connection.execute(query) if name not in CATALOGUE and not name.startswith("sqlite_")]
    if len(tables) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    _make_lists_texts(connection)
    names = {f"t{number}": name for number, name in enumerate(tables, int(first))}
    spare = spare_names(len(names), [*names, *tables])
    for old, new in (*zip(tables, spare, strict=True), *zip(spare, names, strict=True)):
        connection.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")
        query = "UPDATE geometry_columns SET f_table_name = ? WHERE lower(f_table_name) = lower(?)"
        connection.execute(query, (new, old))
    return names


def _make_lists_texts(connection: sqlite3.Connection) -> None:
    """Declare the columns of lists as texts."""
    connection.create_function("as_texts", 1, lambda sql: sql and LIST.sub("VARCHAR", sql), deterministic=True)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = as_texts(sql) WHERE sql LIKE '%LIST%'")
    connection.execute("PRAGMA writable_schema = RESET")
