"""Turns the sheets of a workbook into normalized tables. Runs in the sandbox.

`python -m …sheets GPKG TABLES WANTED DECLARED`: GPKG is what the driver read, a table without geometry per sheet.
Uses only the standard library.
"""

import json
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, columns, open_work_file, quoted, tables
from service.engine.jailed.kinds import Kind, kind_of_cell, type_of
from service.engine.jailed.places import (
    Column,
    Table,
    Wanted,
    expect,
    lay_out,
    look_at_cell,
    unique_names,
    with_plain_geometries,
    write_rows,
    write_tables,
)

CSV_TYPES = {
    "BOOLEAN": "Integer(Boolean)",
    "SMALLINT": "Integer(Int16)",
    "MEDIUMINT": "Integer",
    "INTEGER": "Integer64",
    "FLOAT": "Real(Float32)",
    "REAL": "Real",
    "DATE": "Date",
    "DATETIME": "DateTime",
}


def main(work_file: str, tables_file: str, wanted: str, declared: str = "") -> None:
    """Write every table of `work_file` as a normalized CSV, and their descriptions to `tables_file`.

    `wanted` is JSON of `Wanted`; `declared` is not empty if the file declares the types of its columns.
    """
    connection = open_work_file(work_file)
    names = list(tables(connection))
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    asked = Wanted(**json.loads(wanted))
    found = [_write(connection, name, number, asked, is_declared=bool(declared)) for number, name in enumerate(names)]
    write_tables(tables_file, found)


def _write(connection: sqlite3.Connection, table: str, number: int, wanted: Wanted, *, is_declared: bool) -> Table:
    declared = columns(connection, table)
    originals = [name for name, _ in declared]
    names = unique_names(originals)
    seen = [Column(name, type=CSV_TYPES.get(kind, "String")) for name, (_, kind) in zip(names, declared, strict=True)]
    expect(seen, wanted)
    for column, original in zip(seen, originals, strict=True):
        guesses = not is_declared and column.type == "String" and _begins_empty(connection, table, original)
        _look(connection, table, original, column, guesses=guesses)
    path = Path(f"t{number}.csv")
    layout = lay_out(path.name, table, originals, seen, wanted=wanted, delimiter="")
    rows = _rows(connection, table, declared)
    if layout.geometry is not None:
        rows = with_plain_geometries(rows, layout.geometry)
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, ",", layout.names or ["field_1"], rows)
    path.with_suffix(".csvt").write_text(layout.types, encoding="ascii")
    return layout.table


def _look(connection: sqlite3.Connection, table: str, original: str, column: Column, *, guesses: bool) -> None:
    if column.type != "String" and not column.may_be_coordinate:
        return
    query = f"SELECT {quoted(original)} FROM {quoted(table)} WHERE {quoted(original)} NOT IN ('')"  # noqa: S608 -- quoted
    for (value,) in connection.execute(query):
        text = str(value)
        column.filled += 1
        column.returned += "\r" in text
        column.kinds |= _kind(text) if guesses else column.kinds
        look_at_cell(column, text)
    column.type = type_of(column.kinds, "") if column.kinds else column.type


def _kind(text: str) -> Kind:
    """What a cell holds if the driver tells all as texts: it writes numbers with a point, so no number has a comma."""
    return Kind.TEXT if "," in text else kind_of_cell(text)


def _begins_empty(connection: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether the first cell is empty: the driver takes the type from it, and falls back to text."""
    query = f"SELECT {quoted(column)} IS NULL FROM {quoted(table)} LIMIT 1"  # noqa: S608 -- quoted
    return bool(connection.execute(query).fetchone() == (1,))


def _rows(
    connection: sqlite3.Connection, table: str, declared: Sequence[tuple[str, str]]
) -> Iterable[Sequence[object]]:
    """The rows, with infinite numbers as the driver of CSV reads them."""
    listed = ", ".join(
        f"iif(abs({quoted(name)}) = 9e999, replace({quoted(name)}, 'Inf', '9e999'), {quoted(name)})"
        if kind == "REAL"
        else quoted(name)
        for name, kind in declared
    )
    return connection.execute(f"SELECT {listed or 'NULL'} FROM {quoted(table)}")  # noqa: S608 -- quoted


if __name__ == "__main__":
    main(*sys.argv[1:5])
