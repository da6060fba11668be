"""Finds values of a .dbf that are not of the types of their columns: its driver makes others of them, or none."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from service.formats.dbf_cells import Found, cells_of, found_in
from service.formats.dbf_columns import DELETED, LOGICAL, NUMBERS, DbfColumn, record_bytes, that_hold_values
from service.formats.names import shown

_BLANK = rb"[ \0]*+"
WHOLE = rb"[-+]?+\d%b(?:\.0*+)?+"
DECIMAL = rb"(?:[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+|[-+]?+(?i:inf(?:inity)?|nan))"
DATE = (
    rb"(?:0 {7}|0{8}|\d{4}(?:(?:0[13578]|1[02])(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)(?:0[1-9]|[12]\d|30)"
    rb"|02(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)0229)"
)
START, WHOLE_REST = re.compile(rb"[-+]?+\d++"), re.compile(rb"(?:\.0*+)?+")
TRUTH = rb"[TtYyFfNn?](?s:.*+)"
DATE_BYTES = 8
EXACT_DIGITS = 15
"""Integers with at most so many digits are exact as floating-point numbers."""
OVERFLOW = b"*"
_LIKE = bytes.maketrans(b"\0+23456789INFATYE", b" -11111111infatye")
FORMS = bytes(byte if byte in b" 01-.*?infatye" else ord("x") for byte in _LIKE)
"""Makes cells of one form equal: digits other than 0, upper and lower case, and what is in no value are alike."""
NO_NUMBERS = (
    "Values of {column} in {layer} that are not numbers of the declared type ({count:,}, first {first!r} in feature "
    "{feature:,}) were read as the number with which they begin, or 0. Declare the column as text (string) to keep "
    "them."
)
NO_DATES = (
    "Values of {column} in {layer} that are not dates, although the column is declared as one ({count:,}, first "
    "{first!r} in feature {feature:,}), "
    "became other dates or missing. Declare the column as text (string) to keep them."
)
NO_TRUTHS = (
    "Values of {column} in {layer} that are neither true nor false ({count:,}, first {first!r} in feature "
    "{feature:,}) were read as false. Write ? for unknown values, or declare the column as text (string)."
)
TOO_WIDE = (
    "Numbers of {column} in {layer} that were too long when the file was written ({count:,}, first {first!r} in "
    "feature {feature:,}) are missing."
)
ROUNDED = (
    "Whole numbers of {column} in {layer} ({count:,}, first {first} in feature {feature:,}) lost digits, because the "
    "column has some beyond 64 bits."
)
BEYOND_64_BITS = 1 << 63
BEYOND = "Whole numbers are beyond 64 bits."
"""Said to nobody: of a column that has such, even in deleted records, others are rounded, too."""
MOST_TOLD = 20


def odd_values(dbf: Path, columns: Sequence[DbfColumn], layer: str, *, reads_logical: bool = False) -> list[str]:
    """What is told of the values of `dbf` that are not of the types of their columns. Blocking.

    Those of logical columns count if the driver `reads_logical` ones, not their texts.
    """
    typed = [
        column
        for column in columns
        if column.kind in NUMBERS or _is_date(column) or (reads_logical and column.kind == LOGICAL)
    ]
    usual = {column: re.compile(_usual(column)) for column in that_hold_values(typed, record_bytes(dbf))}

    def may_be_odd(records: bytes, size: int) -> Iterator[tuple[DbfColumn, bytes]]:
        forms = records.translate(FORMS)
        for column, pattern in usual.items():
            seen = records if _is_date(column) else forms
            if not all(map(pattern.fullmatch, {cell for _, cell in set(cells_of(seen, column, size))})):
                yield column, records if column.may_hold_long_integers else seen

    def judge(column: DbfColumn, mark: bytes, cell: bytes) -> Iterable[str]:
        told = () if usual[column].fullmatch(cell) else _judge(column, cell.strip(b" \0"))
        return (sentence for sentence in told if sentence == BEYOND or mark != DELETED)

    found = found_in(dbf, list(usual), judge, may_be_odd)
    return list(_sentences(found, repr(shown(layer))))[:MOST_TOLD]


def _is_date(column: DbfColumn) -> bool:
    return column.kind == "D" and column.width == DATE_BYTES


def _usual(column: DbfColumn) -> bytes:
    """A regular expression of the cells of a column that are as they should be, and exact whatever is in others."""
    if column.kind == LOGICAL:
        return _BLANK + TRUTH
    repeated = b"{1,%d}+" % EXACT_DIGITS if column.may_hold_long_integers else b"++"
    value = DATE if _is_date(column) else DECIMAL if column.decimals else WHOLE % repeated
    return _BLANK + rb"(?:" + value + rb")?+" + _BLANK


def _judge(column: DbfColumn, cell: bytes) -> tuple[str, ...]:
    """The sentences about a cell that is not as it should be."""
    if column.kind == LOGICAL:
        return (NO_TRUTHS,)
    if _is_date(column):
        return (NO_DATES,)
    if cell.startswith(OVERFLOW):
        return (TOO_WIDE,)
    start = START.match(cell) if column.may_hold_long_integers else None
    number = int(start[0]) if start else 0
    beyond = () if -BEYOND_64_BITS <= number < BEYOND_64_BITS else (BEYOND,)
    if start is None or not WHOLE_REST.fullmatch(cell, start.end()):
        return (NO_NUMBERS, *beyond)
    return beyond if number == int(float(cell)) else (ROUNDED, *beyond)


def _sentences(found: Mapping[tuple[str, DbfColumn], Found], layer: str) -> Iterator[str]:
    for (sentence, column), odd in found.items():
        if sentence != BEYOND and (sentence != ROUNDED or (BEYOND, column) in found):
            first = shown(odd.first.strip(b" \0").decode("latin-1"))
            yield sentence.format(
                column=repr(shown(column.name)), layer=layer, count=odd.cells, first=first, feature=odd.feature
            )
