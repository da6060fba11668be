"""Gives layers names that a GeoPackage accepts. Runs in the sandbox: `python -m …relabel SQLITE NAMES_FILE FIRST`.

GeoPackage refuses names that begin with punctuation or with its own prefix; plain SQLite accepts them. The tables are
renamed to `t0`, `t1`…, counted from FIRST; their former names are written to a file. Uses only the standard library.
"""

import json
import sqlite3
import sys
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, quoted

CATALOGUE = {"geometry_columns", "spatial_ref_sys"}


def main(database: str, names_file: str, first: str) -> None:
    """Rename every layer of `database`; write a map of new to old names to `names_file`."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA legacy_alter_table = ON")
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    tables = [name for (name,) in connection.execute(query) if name not in CATALOGUE and not name.startswith("sqlite_")]
    if len(tables) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    names = {f"t{number}": name for number, name in enumerate(tables, int(first))}
    for new, old in names.items():
        connection.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(f'__{new}')}")
        connection.execute(
            "UPDATE geometry_columns SET f_table_name = ? WHERE lower(f_table_name) = lower(?)", (f"__{new}", old)
        )
    for new in names:
        connection.execute(f"ALTER TABLE {quoted(f'__{new}')} RENAME TO {quoted(new)}")
        connection.execute("UPDATE geometry_columns SET f_table_name = ? WHERE f_table_name = ?", (new, f"__{new}"))
    Path(names_file).write_text(json.dumps(names), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:4])
