"""Puts texts that are not coordinates back into the table as columns. Runs in the sandbox."""

import csv
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from service.engine.jailed.gpkg import FID, GEOMETRY, columns, quoted
from service.engine.jailed.places import unique_names


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a table: the CSV that was read, and the original names of the columns that became geometry."""

    file: str
    delimiter: str
    originals: Mapping[str, str]


def put_back(connection: sqlite3.Connection, table: str, cells: Cells) -> tuple[int, int]:
    """Add the texts of coordinate columns to rows without geometry; return how many rows have any, and the first."""
    fids = {fid for (fid,) in connection.execute(f"SELECT {FID} FROM {quoted(table)} WHERE {GEOMETRY} IS NULL")}  # noqa: S608 -- quoted
    if not fids:
        return 0, 0
    found = [(row, texts) for row, texts in _texts(cells) if row in fids and any(text.strip() for text in texts)]
    if found:
        _add(connection, table, list(cells.originals.values()), found)
    return len(found), found[0][0] if found else 0


def _texts(cells: Cells) -> Iterator[tuple[int, Sequence[str]]]:
    """The cells of every row, with its number from 1."""
    path = Path(cells.file)
    csv.field_size_limit(path.stat().st_size + 1)
    with path.open(encoding="utf-8", newline="") as file:
        rows = (row for row in csv.reader(file, delimiter=cells.delimiter) if row)
        header = next(rows)
        at = [header.index(ours) for ours in cells.originals]
        for number, row in enumerate(rows, 1):
            yield number, [row[column] if column < len(row) else "" for column in at]


def _add(
    connection: sqlite3.Connection, table: str, names: Sequence[str], found: Sequence[tuple[int, Sequence[str]]]
) -> None:
    """Add those of the columns `names` that have text in the rows `found`."""
    has_any = [any(texts[at].strip() for _, texts in found) for at in range(len(names))]
    there = [name for name, _ in columns(connection, table)]
    wanted = unique_names([*there, *compress(names, has_any)])[len(there) :]
    for name in wanted:
        connection.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} TEXT")
    assigned = ", ".join(f"{quoted(name)} = ?" for name in wanted)
    connection.executemany(
        f"UPDATE {quoted(table)} SET {assigned} WHERE {FID} = ?",  # noqa: S608 -- quoted
        ([text or None for text in compress(texts, has_any)] + [row] for row, texts in found),
    )
