"""Gives columns of a GeoPackage types that its driver reads. Runs in the sandbox: `python -m …column_types GPKG OUT`.

The driver takes a column of a type that GeoPackage does not define, such as VARCHAR(80), for a geometry and leaves it
out, or reads its texts as 0. Uses only the standard library.
"""

import re
import shutil
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import open_work_file, quoted

DEFINED = re.compile(
    r"BOOLEAN|(TINY|SMALL|MEDIUM)?INT|INTEGER|FLOAT|DOUBLE|REAL|DATE|DATETIME|(TEXT|BLOB)(\(\d+\))?", re.IGNORECASE
)
"""The types that GeoPackage defines for columns of attributes."""
KINDS = "integer real text blob"
"""The kinds of values, as SQLite calls them: a column has the type of the last kind that it holds."""
TEXT = "TEXT"
NOT_DATA = ("gpkg_", "rtree_", "sqlite_")
HIDDEN = 1
"""How SQLite marks the internal columns of a virtual table."""
CONTENTS = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"
GEOMETRIES = "SELECT lower(column_name) FROM gpkg_geometry_columns WHERE lower(table_name) = lower(?)"


def main(gpkg: str, copy: str) -> None:
    """Write `gpkg` to `copy` with types that the driver reads, according to the values; nothing if it has only such."""
    try:
        with closing(sqlite3.connect(f"file:{gpkg}?mode=ro", uri=True)) as connection:
            tables = {table: found for table in _tables(connection) if (found := _definition(connection, table))}
    except sqlite3.DatabaseError:
        return  # the driver reports what is wrong
    if not tables:
        return
    shutil.copyfile(gpkg, copy)
    try:
        with closing(open_work_file(copy)) as connection:
            connection.execute("ATTACH ? AS former", (f"file:{gpkg}?mode=ro",))
            connection.create_function("exact", 1, repr, deterministic=True)
            for table, definition in tables.items():
                _replace(connection, table, definition)
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute(CONTENTS) if not name.lower().startswith(NOT_DATA)]


def _definition(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns of `table` with the types to give them; none if all have types that the driver reads."""
    geometries = {name for (name,) in connection.execute(GEOMETRIES, (table,))}
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    columns = {name: kind for _, name, kind, *_, hidden in rows if hidden != HIDDEN}
    keys = [name for _, name, *_, key, _ in rows if key]
    undefined = [name for name, kind in columns.items() if not (DEFINED.fullmatch(kind) or name.lower() in geometries)]
    if not undefined:
        return {}
    types = {**columns, **_types_of(connection, table, undefined)}
    return {name: f"{kind} PRIMARY KEY" if keys == [name] else kind for name, kind in types.items()}


def _types_of(connection: sqlite3.Connection, table: str, names: Sequence[str]) -> dict[str, str]:
    """The types of the columns `names` by their values; one query, because each reads all rows."""
    places = ", ".join(f"max(instr('{KINDS}', typeof({quoted(name)})))" for name in names)
    found = connection.execute(f"SELECT {places} FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
    return {
        name: KINDS[at - 1 :].partition(" ")[0].upper() if at else TEXT for name, at in zip(names, found, strict=True)
    }


def _replace(connection: sqlite3.Connection, table: str, definition: Mapping[str, str]) -> None:
    """Make `table` anew; to rename it would take as long as the file has other tables."""
    values = ", ".join(_value(quoted(name), kind) for name, kind in definition.items())
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in definition.items())
    connection.execute(f"DROP TABLE main.{quoted(table)}")
    connection.execute(f"CREATE TABLE main.{quoted(table)} ({columns})")
    connection.execute(f"INSERT INTO main.{quoted(table)} SELECT {values} FROM former.{quoted(table)}")  # noqa: S608 -- quoted


def _value(name: str, kind: str) -> str:
    """The value of a column; a number that becomes a text keeps its last digits, of which SQLite would round some."""
    return f"CASE typeof({name}) WHEN 'real' THEN exact({name}) ELSE {name} END" if kind == TEXT else name


if __name__ == "__main__":
    main(*sys.argv[1:3])
