"""Finds values of a .dbf that are not of the types of their columns: its driver makes others of them, or none."""

import re
import struct
from calendar import isleap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from service.formats.dbf_columns import LOGICAL, NUMBERS, DbfColumn, record_bytes, records_of, that_hold_values
from service.formats.names import shown

_BLANK = rb"[ \0]*+"
WHOLE = rb"[-+]?+\d%b(?:\.0*+)?+"
DECIMAL = rb"(?:[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+|[-+]?+(?i:inf(?:inity)?|nan))"
DATE = (
    rb"(?:0 {7}|0{8}|\d{4}(?:(?:0[13578]|1[02])(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)(?:0[1-9]|[12]\d|30)"
    rb"|02(?:0[1-9]|1\d|2[0-8])))"
)
LEAP_DAY = b"0229"
TRUTH = rb"[TtYyFfNn?][^\n|]*+"
DATE_BYTES = 8
EXACT_DIGITS = 15
"""Integers with at most so many digits are exact as floating-point numbers."""
DIGITS_OF_64_BITS = 18
"""Integers with at most so many digits are exact in a column without any beyond 64 bits."""
MOST_CELLS = 500_000
"""How many cells of odd records are looked at, which takes about a second."""
OVERFLOW = b"*"
DELETED = rb"\n\*[^\n]*+"
NOT_DELETED = b"\n "
MARKS_HERE = (b"\n", b"|")
WITHOUT_MARKS = bytes.maketrans(b"".join(MARKS_HERE), b"\1\1")
"""What ends rows and cells here has no place in them."""
USUAL_MARKS = b" *"
MARKS = bytes(byte if byte == ord("*") else ord(" ") for byte in range(256))
"""How the driver reads the first byte of a record: deleted or not."""
NO_NUMBERS = (
    "Values of {column} in {layer} that are not numbers of the declared type ({count}, first {first!r} in feature "
    "{feature:,}) were read as the number with which they begin, or 0. Declare the column as text (string) to keep "
    "them."
)
NO_DATES = (
    "Values of {column} in {layer} that are not dates, although the column is declared as one ({count}, first "
    "{first!r} in feature {feature:,}), "
    "became other dates or missing. Declare the column as text (string) to keep them."
)
NO_TRUTHS = (
    "Values of {column} in {layer} that are neither true nor false ({count}, first {first!r} in feature "
    "{feature:,}) were read as false. Write ? for unknown values, or declare the column as text (string)."
)
TOO_WIDE = (
    "Numbers of {column} in {layer} that were too long when the file was written ({count}, first {first!r} in "
    "feature {feature:,}) are missing."
)
ROUNDED = (
    "Whole numbers of {column} in {layer} ({count}, first {first} in feature {feature:,}) lost digits, because the "
    "column has some beyond 64 bits."
)
MOST_TOLD = 20


class Odd(NamedTuple):
    """A kind of values of a column: how many there are, the first of them, and the number of its feature."""

    values: int
    first: str
    feature: int


def odd_values(dbf: Path, columns: Sequence[DbfColumn], layer: str, *, reads_logical: bool = False) -> list[str]:
    """What is told of the values of `dbf` that are not of the types of their columns. Blocking.

    Those of logical columns count if the driver `reads_logical` ones, not their texts.
    """
    typed = [
        column
        for column in columns
        if column.kind in NUMBERS or _is_date(column) or (reads_logical and column.kind == LOGICAL)
    ]
    size = record_bytes(dbf)
    typed = that_hold_values(typed, size)
    if not typed:
        return []
    beyond_64_bits = set[str]()
    search = _Search(typed, size, DIGITS_OF_64_BITS, beyond_64_bits)
    search.read(dbf)
    if beyond_64_bits:
        search = _Search(typed, size, EXACT_DIGITS, beyond_64_bits)
        search.read(dbf)
    return list(_sentences(search, repr(shown(layer))))[:MOST_TOLD]


def _is_date(column: DbfColumn) -> bool:
    return column.kind == "D" and column.width == DATE_BYTES


class _Search:
    """Goes through records: past those as they should be at once, through the cells of others one by one."""

    def __init__(self, columns: Sequence[DbfColumn], size: int, digits: int, beyond_64_bits: set[str]) -> None:
        self.found: dict[tuple[str, str], Odd] = {}
        """By the sentence about values of a kind, and column."""
        self.beyond_64_bits = beyond_64_bits
        self.cells_left = MOST_CELLS
        self._columns = columns
        self._size = size
        cells = [_cell(column, digits) for column in columns]
        self._cells = list(map(re.compile, cells))
        self._row_bytes = len(NOT_DELETED) + sum(1 + column.width for column in columns)
        self._rows = re.compile(rb"(?:(?:\n \|%b|%b)(?=\n|\Z))*+" % (rb"\|".join(cells), DELETED))
        self._unpack = struct.Struct(_layout(columns, size)).iter_unpack
        self._features = 0

    def read(self, dbf: Path) -> None:
        """Look through the records of `dbf`."""
        for records in records_of(dbf):
            self._add(records)
            if self.cells_left <= 0:
                break

    def _add(self, records: bytes) -> None:
        text = b"\n".join([b"", *map(b"|".join, self._unpack(_without_marks(records, self._size)))])
        at = 0
        while self.cells_left > 0 and (odd := self._end(text, at)) < len(text):
            self._features += text.count(NOT_DELETED, at, odd)
            at = odd + self._row_bytes
            self._features += 1
            self.cells_left -= len(self._columns)
            self._look(text[odd + len(NOT_DELETED) : at])
        self._features += text.count(NOT_DELETED, at)

    def _end(self, text: bytes, at: int) -> int:
        """Where the first row that is odd begins."""
        found = self._rows.match(text, at)
        return at if found is None else found.end()

    def _look(self, row: bytes) -> None:
        at = 0
        for column, wanted in zip(self._columns, self._cells, strict=True):
            cell = row[at + 1 : at + 1 + column.width]
            at += 1 + column.width
            if wanted.fullmatch(cell) is None:
                self._note(column, cell.strip(b" \0"))

    def _note(self, column: DbfColumn, cell: bytes) -> None:
        sentence = _judge(column, cell)
        if column.may_hold_long_integers and sentence == ROUNDED and abs(int(float(cell))) >= 1 << 63:
            self.beyond_64_bits.add(column.name)
        if sentence:
            first = Odd(0, cell.decode("latin-1"), self._features)
            known = self.found.get((sentence, column.name), first)
            self.found[sentence, column.name] = known._replace(values=known.values + 1)


def _without_marks(records: bytes, size: int) -> bytes | bytearray:
    """`records` without what ends rows and cells here, and as the driver reads their first bytes; most are so."""
    rows: bytes | bytearray = records
    if any(mark in records for mark in MARKS_HERE):
        rows = records.translate(WITHOUT_MARKS)
    if records[::size].strip(USUAL_MARKS):
        rows = bytearray(rows)
        rows[::size] = rows[::size].translate(MARKS)
    return rows


def _layout(columns: Sequence[DbfColumn], size: int) -> str:
    layout, at = "1s", 1
    for column in columns:
        layout += f"{column.start - at}x{column.width}s"
        at = column.start + column.width
    return f"{layout}{size - at}x"


def _cell(column: DbfColumn, digits: int) -> bytes:
    """A regular expression of the cells of a column that are as they should be, long integers with up to `digits`."""
    if column.kind == LOGICAL:
        return _BLANK + TRUTH
    repeated = b"{1,%d}+" % digits if column.may_hold_long_integers else b"++"
    value = DATE if _is_date(column) else DECIMAL if column.decimals else WHOLE % repeated
    return _BLANK + rb"(?:" + value + rb")?+" + _BLANK


def _judge(column: DbfColumn, cell: bytes) -> str:
    """The sentence about a cell; "" if nothing is wrong with it."""
    if column.kind == LOGICAL:
        return NO_TRUTHS
    if _is_date(column):
        is_leap_day = cell[4:] == LEAP_DAY and cell[:4].isdigit() and isleap(int(cell[:4]))
        return "" if is_leap_day else NO_DATES
    if cell.startswith(OVERFLOW):
        return TOO_WIDE
    if not column.may_hold_long_integers or re.fullmatch(WHOLE % b"++", cell) is None:
        return NO_NUMBERS
    return ROUNDED if int(float(cell)) != int(cell.partition(b".")[0]) else ""


def _sentences(search: _Search, layer: str) -> Iterator[str]:
    for (sentence, name), odd in search.found.items():
        if sentence != ROUNDED or name in search.beyond_64_bits:
            first = shown(odd.first)
            count = f"{odd.values:,}" if search.cells_left > 0 else f"at least {odd.values:,}"
            yield sentence.format(column=repr(shown(name)), layer=layer, count=count, first=first, feature=odd.feature)
