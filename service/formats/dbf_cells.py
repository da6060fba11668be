"""Finds the cells of a .dbf that its driver does not read as they are, however many there are.

Cells that are alike are judged once for all records of a piece, since a crafted file has a million cells in a megabyte.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from service.formats.dbf_columns import DELETED, DbfColumn, record_bytes, records_of

PIECE_BYTES = 1 << 19
"""So many bytes of records are examined at once: counting the cells of a column keeps the event loop waiting."""
Judge = Callable[[DbfColumn, bytes, bytes], Iterable[str]]
"""Returns the sentences about a cell of a column, given with the mark of its record; none if it is read as it is."""
Sieve = Callable[[bytes, int], Iterable[tuple[DbfColumn, bytes]]]
"""Returns the columns that may have other cells in these records of so many bytes each, each with the records in which
cells that are judged alike may be equal."""


class Found(NamedTuple):
    """Cells of a column about which there is one sentence: how many there are, the first, and its feature, from 1."""

    cells: int
    first: bytes
    feature: int


def found_in(dbf: Path, columns: Sequence[DbfColumn], judge: Judge, sieve: Sieve) -> dict[tuple[str, DbfColumn], Found]:
    """What `judge` says of `columns` of `dbf`. Blocking."""
    found: dict[tuple[str, DbfColumn], Found] = {}
    size, features = record_bytes(dbf), 0
    for records in records_of(dbf, PIECE_BYTES) if columns else ():
        for column, alike in sieve(records, size):
            first, counts = _judged(alike, column, size, judge)
            for sentence, count in counts.items():
                key = sentence, column
                if key not in found:
                    place = next(at for at, cell in enumerate(cells_of(alike, column, size)) if cell == first[sentence])
                    found[key] = _none_yet(records, features, column, size, place)
                found[key] = found[key]._replace(cells=found[key].cells + count)
        features += len(records) // size - records[::size].count(DELETED)
    return found


def cells_of(records: bytes, column: DbfColumn, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The mark of each of `records`, of `size` bytes, and its cell of `column`."""
    return _layout(column.start, column.width, size).iter_unpack(records)


@lru_cache(maxsize=4096)
def _layout(start: int, width: int, size: int) -> struct.Struct:
    return struct.Struct(f"1s{start - 1}x{width}s{size - start - width}x")


def _judged(
    records: bytes, column: DbfColumn, size: int, judge: Judge
) -> tuple[Mapping[str, tuple[bytes, bytes]], Mapping[str, int]]:
    """By sentence about cells: the first in `records`, with its mark, and how many there are."""
    first: dict[str, tuple[bytes, bytes]] = {}
    counts: Counter[str] = Counter()
    for marked, count in Counter(cells_of(records, column, size)).items():
        for sentence in judge(column, *marked):
            first.setdefault(sentence, marked)
            counts[sentence] += count
    return first, counts


def _none_yet(records: bytes, features: int, column: DbfColumn, size: int, place: int) -> Found:
    """What is found before the cell of the record at `place`, which is the first; `features` precede the records."""
    start = place * size + column.start
    deleted = records[:start:size].count(DELETED)
    return Found(0, records[start : start + column.width], features + place + 1 - deleted)
