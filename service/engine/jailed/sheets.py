"""The sheets of a workbook made into tables of ours. Runs in the jail: `python -m …sheets GPKG TABLES`.

GPKG is what the driver read: a table without geometry per sheet. The standard library only.
"""

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, columns, open_work_file, quoted, tables
from service.engine.jailed.places import (
    GEOMETRY_TEXT,
    NUMBER,
    Column,
    Table,
    find_places,
    is_candidate,
    kind_of,
    unique_names,
    widened,
    write_rows,
    write_tables,
    write_types,
)

CSV_TYPES = {
    "BOOLEAN": "Integer(Boolean)",
    "MEDIUMINT": "Integer",
    "INTEGER": "Integer64",
    "REAL": "Real",
    "DATE": "Date",
    "DATETIME": "DateTime",
}


def main(work_file: str, tables_file: str) -> None:
    """Write every table of `work_file` as a CSV of ours, and what they are to `tables_file`."""
    connection = open_work_file(work_file)
    names = list(tables(connection))
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    found = [_write(connection, name, number) for number, name in enumerate(names)]
    write_tables(tables_file, found)


def _write(connection: sqlite3.Connection, table: str, number: int) -> Table:
    declared = columns(connection, table)
    names = unique_names([name for name, _ in declared])
    seen = [Column(name, type=CSV_TYPES.get(kind, "String")) for name, (_, kind) in zip(names, declared, strict=True)]
    for column, (original, _) in zip(seen, declared, strict=True):
        _look(connection, table, original, column)
    places = find_places(seen)
    path = Path(f"t{number}.csv")
    _copy(connection, table, [original for original, _ in declared], path, _header(seen, places))
    write_types(path.with_suffix(".csvt"), seen, places)
    return Table(path.name, table, kind_of(places))


def _header(seen: Sequence[Column], places: dict[int, str]) -> list[str]:
    return [places.get(at, column.name) for at, column in enumerate(seen)]


def _look(connection: sqlite3.Connection, table: str, original: str, column: Column) -> None:
    if column.type != "String" and not is_candidate(column.name):
        return
    guesses = column.type == "String" and _begins_empty(connection, table, original)
    seen = ""
    query = f"SELECT {quoted(original)} FROM {quoted(table)} WHERE {quoted(original)} NOT IN ('')"  # noqa: S608 -- quoted
    for (value,) in connection.execute(query):
        text = str(value)
        column.filled += 1
        seen = widened(seen, text) if guesses else seen
        column.numbers += NUMBER.match(text) is not None
        column.geometries += GEOMETRY_TEXT.match(text) is not None
    column.type = seen or column.type


def _begins_empty(connection: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether the first cell is empty: the driver takes the type from it, and text for want of one."""
    query = f"SELECT {quoted(column)} IS NULL FROM {quoted(table)} LIMIT 1"  # noqa: S608 -- quoted
    return bool(connection.execute(query).fetchone() == (1,))


def _copy(
    connection: sqlite3.Connection, table: str, originals: Sequence[str], path: Path, header: Sequence[str]
) -> None:
    listed = ", ".join(map(quoted, originals)) or "NULL"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = connection.execute(f"SELECT {listed} FROM {quoted(table)}")  # noqa: S608 -- quoted
        write_rows(file, ",", header or ["field_1"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:3])
