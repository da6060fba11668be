"""Reads the types of columns of a .dbf: its driver rounds long integers, and takes unknown types for texts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from service.formats.opened import opened

HEADER_BYTES = FIELD_BYTES = 32
COUNT_AT, RECORDS_AT, RECORD_BYTES_AT = slice(4, 8), slice(8, 10), slice(10, 12)
DELETED = b"*"
"""What a record begins with that is only marked as deleted."""
END_OF_FIELDS = 0x0D
NUMBERS, LOGICAL, READ = "NF", "L", "CNFLD"
LONGEST_READ = 18
"""Integers with more digits are read as floating-point numbers."""
BLANK = b" \0"
CHUNK = 1 << 20
MOST_FOREIGN = 64
"""How many columns of unknown types are looked at; a file of another program has a few."""


class DbfColumn(NamedTuple):
    """A column, and where it is in a record."""

    name: str
    kind: str
    start: int
    width: int
    decimals: int

    @property
    def may_hold_long_integers(self) -> bool:
        """Whether its numbers are whole and may have more digits than a floating-point number."""
        return self.kind in NUMBERS and not self.decimals and self.width > LONGEST_READ


def dbf_columns(dbf: Path) -> list[DbfColumn]:
    """The columns of `dbf`. Blocking."""
    with opened(dbf) as file:
        head = file.read(HEADER_BYTES)
        return list(_columns(file.read(max(0, number_of(head[RECORDS_AT]) - HEADER_BYTES))))


def that_hold_values(columns: Iterable[DbfColumn], size: int) -> list[DbfColumn]:
    """Those of `columns` that have bytes in records of `size` bytes: fewer than these, however many a file declares."""
    return [column for column in columns if column.width and column.start + column.width <= size]


def filled_foreign(dbf: Path, columns: list[DbfColumn]) -> list[str]:
    """The names of those `columns` of `dbf` that hold anything, of types that its driver does not know. Blocking."""
    unknown = [column for column in columns if column.kind not in READ][:MOST_FOREIGN]
    filled = _filled(dbf, unknown) if unknown else set()
    return [column.name for column in unknown if column in filled]


def deleted_records(dbf: Path) -> int:
    """How many records of `dbf` are marked as deleted, of as many as it says it has. Blocking."""
    deleted = 0
    with opened(dbf) as file:
        head = file.read(HEADER_BYTES)
        file.seek(number_of(head[RECORDS_AT]))
        left, size = number_of(head[COUNT_AT]), number_of(head[RECORD_BYTES_AT])
        while size and left > 0 and (records := file.read(size * min(left, max(1, CHUNK // size)))):
            deleted += records[::size].count(DELETED)
            left -= len(records) // size or left
    return deleted


def _columns(fields: bytes) -> Iterator[DbfColumn]:
    start = 1
    for at in range(0, len(fields) - FIELD_BYTES + 1, FIELD_BYTES):
        field = fields[at : at + FIELD_BYTES]
        if field[0] == END_OF_FIELDS:
            return
        name = field[:11].partition(b"\0")[0].decode("utf-8", "replace")
        kind, width, decimals = chr(field[11]), field[16], field[17]
        width += 256 * decimals if kind == "C" else 0
        yield DbfColumn(name, kind, start, width, decimals)
        start += width


def _filled(dbf: Path, columns: list[DbfColumn]) -> set[DbfColumn]:
    """Those of `columns` that are not blank everywhere: by the bytes at one place of many records, in one reading."""
    filled: set[DbfColumn] = set()
    size = record_bytes(dbf)
    blank = that_hold_values(columns, size)
    for records in records_of(dbf) if blank else ():
        filled.update(column for column in blank if _has_bytes(records, column, size))
        blank = [column for column in blank if column not in filled]
        if not blank:
            break
    return filled


def _has_bytes(records: bytes, column: DbfColumn, size: int) -> bool:
    return any(records[place::size].strip(BLANK) for place in range(column.start, column.start + column.width))


def record_bytes(dbf: Path) -> int:
    """How long each record of `dbf` is. Blocking."""
    with opened(dbf) as file:
        return number_of(file.read(HEADER_BYTES)[RECORD_BYTES_AT])


def records_of(dbf: Path, piece_bytes: int = CHUNK) -> Iterator[bytes]:
    """The records of `dbf`, many at a time; none if they have no bytes. Blocking."""
    with opened(dbf) as file:
        head = file.read(HEADER_BYTES)
        size = number_of(head[RECORD_BYTES_AT])
        file.seek(number_of(head[RECORDS_AT]))
        while size and (records := file.read(size * max(1, piece_bytes // size))):
            yield records[: len(records) // size * size]


def number_of(some_bytes: bytes) -> int:
    """A number of a header."""
    return int.from_bytes(some_bytes, "little")
