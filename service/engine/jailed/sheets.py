"""Turns the sheets of a workbook into normalized tables. Runs in the sandbox."""

import json
import re
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from pathlib import Path

from service.engine.jailed.cell_kinds import CellKind, ColumnKinds, kinds_of_columns
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

LEAST, MOST = -(2**63), 2**63 - 1
NINETEEN_DIGITS = re.compile(r"-?[1-9]\d{18}", re.ASCII)
"""An integer that may have 64 bits; elsewhere, a text of so many digits is an identifier."""
GUESSED = frozenset({CellKind.NUMBER, CellKind.NUMBER | CellKind.TRUTH, CellKind.DATE})
"""What columns hold whose types follow from their values."""


def main(work_file: str, wanted: str, workbook: str = "", of_sheets: str = "") -> list[Table]:
    """Write every table of `work_file`, one per sheet, as a normalized CSV, and return their descriptions.

    `wanted` is JSON of `Wanted`; `workbook` is what the driver read if it takes columns that begin empty for texts. The
    last rows of sheets (`of_sheets`, unless it is "") that have no values but empty texts are left out.
    """
    connection = open_work_file(work_file)
    names = list(tables(connection))
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    asked = Wanted(**json.loads(wanted))
    doubtful = [_doubtful(connection, name) if workbook else set[int]() for name in names]
    kinds = kinds_of_columns(workbook) if any(doubtful) else []
    held: list[ColumnKinds] = kinds if len(kinds) == len(names) else [{}] * len(names)
    return [
        _write(
            connection,
            name,
            number,
            asked,
            {place: of.get(place, CellKind.NONE) for place in places},
            has_blank_end=bool(of_sheets),
        )
        for number, (name, places, of) in enumerate(zip(names, doubtful, held, strict=True))
    ]


def _write(
    connection: sqlite3.Connection,
    table: str,
    number: int,
    wanted: Wanted,
    doubtful: ColumnKinds,
    *,
    has_blank_end: bool,
) -> Table:
    """`doubtful` tells what columns hold that the driver may have taken for texts."""
    declared = columns(connection, table)
    originals = [name for name, _ in declared]
    names = unique_names(originals)
    seen = [Column(name, type=CSV_TYPES.get(kind, "String")) for name, (_, kind) in zip(names, declared, strict=True)]
    expect(seen, wanted)
    for place, (column, original) in enumerate(zip(seen, originals, strict=True)):
        kind = doubtful.get(place, CellKind.TEXT)
        if kind is CellKind.TRUTH:
            column.type = CSV_TYPES["BOOLEAN"]
        _look(connection, table, original, column, guesses=kind in GUESSED)
    path = Path(f"t{number}.csv")
    layout = lay_out(table, originals, seen, wanted=wanted, delimiter="")
    rows = _rows(connection, table, declared)
    if has_blank_end:
        rows = islice(rows, _up_to_the_last(connection, table, declared))
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
    if "," in text:
        return Kind.TEXT
    return Kind.LONG if NINETEEN_DIGITS.fullmatch(text) and LEAST <= int(text) <= MOST else kind_of_cell(text)


def _doubtful(connection: sqlite3.Connection, table: str) -> set[int]:
    """The positions of columns of texts whose first cell is empty."""
    declared = columns(connection, table)
    values = ", ".join(quoted(name) for name, _ in declared)
    first = connection.execute(f"SELECT {values or 'NULL'} FROM {quoted(table)} LIMIT 1").fetchone() or ()  # noqa: S608 -- quoted
    kinds = (CSV_TYPES.get(kind, "String") for _, kind in declared)
    pairs = enumerate(zip(kinds, first, strict=False))
    return {place for place, (kind, value) in pairs if kind == "String" and value is None}


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


def _up_to_the_last(connection: sqlite3.Connection, table: str, declared: Sequence[tuple[str, str]]) -> int:
    """How many rows there are up to the last one with a value that is no empty text."""
    listed = ", ".join(quoted(name) for name, _ in declared) or "NULL"
    (count,) = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
    backwards = connection.execute(f"SELECT {listed} FROM {quoted(table)} ORDER BY rowid DESC")  # noqa: S608 -- quoted
    blank = takewhile(lambda row: all(value in {None, ""} for value in row), backwards)
    return int(count) - sum(1 for _ in blank)
