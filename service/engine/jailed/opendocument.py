"""Makes an ODS workbook that its driver understands. Runs in the sandbox.

Its times become texts, elements in texts become characters, and formulas their results. The driver also stops, without
a message, at rows that repeat more than 10,000 times: a workbook with others after them is refused.
"""

import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from service.engine.jailed.cell_texts import COVERED, COVERED_RUN, MARKS, PADDED, STRING, UNTYPED, WORDED, plain_texts
from service.engine.jailed.cells import as_decimal
from service.engine.jailed.durations import (
    PLAIN_DATE,
    PLAIN_NUMBER,
    TIME,
    is_finer,
    odd_numbers_as_texts,
    times_as_texts,
)
from service.engine.jailed.exits import Exit
from service.engine.jailed.opendocument_rows import MARKS as OF_ROWS
from service.engine.jailed.opendocument_rows import count_rows
from service.engine.jailed.results import EMPTY, TRUTH_FORMULAS, TRUTH_VALUE, plain_results
from service.engine.jailed.styles import UNREADABLE, copy_with
from service.formats.cutting import cut

MEMBER = "content.xml"
IS_ODD = "odd"
CHUNK = 1 << 20
LONGEST_CELL = 1 << 16
LONG = rb"""\soffice:value=["'](?P<long>-?\d{15,40}+)["']"""
"""A whole number of so many digits that no floating-point number may be it."""
BEYOND_64 = re.compile(rb"""(\soffice:value=["'])(-?\d{19,40}+)(?=["'])""")
"""A whole number that may have more than 64 bits, of which the driver makes the largest one of these."""
ODD_DATE = rb"""\boffice:date-value=["'](?!%b)""" % PLAIN_DATE
ODD_NUMBER = rb"""\soffice:value\s*+=\s*+["'](?!%b)""" % PLAIN_NUMBER
OF_CELLS = (TIME, TRUTH_VALUE, *TRUTH_FORMULAS, *MARKS)
SOUGHT = (*OF_CELLS, *OF_ROWS)
ODD = (
    *(COVERED, COVERED_RUN, EMPTY, PADDED, STRING, UNTYPED, WORDED),
    *map(re.compile, (LONG, ODD_DATE, ODD_NUMBER, *(re.escape(mark.encode()) for mark in OF_CELLS))),
)
"""One by one, since alternatives would be tried at every character."""
ROW_OR_EXACT = re.compile(
    rb"""<table:table(?P<sheet>[\s>])|<table:table-row\b(?:[^<>]*?number-rows-repeated=["'](?P<rows>\d{1,7}+))?+|"""
    + LONG
    + rb"""|\boffice:date-value=["']\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,](?P<fraction>\d{4,40}+)"""
)
"""A sheet, a row, such a number, or a time of more than milliseconds."""
MOST_ROWS = 10_000
REPEATED_ROWS = b"number-rows-repeated"
ROWS = re.compile(rb'\bnumber-rows-repeated="([^"]*+)"|(</table:table>)|<text:p\b|\soffice:value')
"""Rows that repeat, the end of a sheet, and the text or value of a cell that is not empty."""


def main(workbook: str, plain: str, *known: str) -> Counter[str]:
    """Write a copy of `workbook` to `plain` unless its driver understands it, and return what is left out.

    With `IS_ODD`, it is known that its driver does not.
    """
    found: Counter[str] = Counter()
    try:
        with zipfile.ZipFile(workbook) as book:
            if _stops_early(parts(book)):
                sys.exit(Exit.REPEATED_ROWS)
            has_odd_cells = IS_ODD in known or any(map(is_odd, parts(book)))
            count_rows(parts(book), found)
        if has_odd_cells:
            with zipfile.ZipFile(workbook) as book:
                cells = (_plain(part, found) for part in parts(book))
                copy_with({MEMBER: cells}, workbook, plain)
                _count_exact(parts(book), found)
    except UNREADABLE:
        Path(plain).unlink(missing_ok=True)  # the driver reports what is wrong
        found.clear()
    return found


def parts(book: zipfile.ZipFile) -> Iterator[bytes]:
    """The cells of a workbook, cut before one of them; raises `UNREADABLE`."""
    with book.open(MEMBER) as file:
        yield from cut(iter(partial(file.read, CHUNK), b""), _last_tag)


def is_odd(part: bytes) -> bool:
    """Whether the driver does not understand all cells."""
    return any(pattern.search(part) for pattern in ODD)


def _last_tag(text: bytes) -> int:
    """Where the last tag of a cell or the like begins."""
    last = text.rfind(b"<table:", max(len(text) - LONGEST_CELL, 0))
    return last if last >= 0 else len(text)


def _stops_early(parts: Iterator[bytes]) -> bool:
    """Whether cells follow rows, of the same sheet, at which the driver stops."""
    is_past = False
    for found in chain.from_iterable(ROWS.finditer(part) for part in parts if is_past or REPEATED_ROWS in part):
        if found[1] is not None:
            is_past = is_past or not (found[1].isdigit() and 1 <= int(found[1][:20]) <= MOST_ROWS)
        elif found[2]:
            is_past = False
        elif is_past:
            return True
    return False


def _count_exact(parts: Iterator[bytes], found: Counter[str]) -> None:
    """Add to `found` what loses digits: whole numbers (`rounded`) and times (`finer`), and the first row of each."""
    row = 0
    for at in chain.from_iterable(map(ROW_OR_EXACT.finditer, parts)):
        kind = ""
        if at["sheet"] is not None:
            row = 0
        elif at["long"] is not None:
            kind = "rounded" if int(at["long"]) != int(float(at["long"])) else ""
        elif at["fraction"] is not None:
            kind = "finer" if is_finer(at["fraction"]) else ""
        else:
            row += int(at["rows"] or 1)
        if kind:
            found[kind] += 1
            found[f"first_{kind}"] = found[f"first_{kind}"] or row


def _plain(part: bytes, found: Counter[str]) -> bytes:
    whole = BEYOND_64.sub(
        lambda number: number[1] + as_decimal(number[2]), plain_texts(odd_numbers_as_texts(part), found)
    )
    return times_as_texts(plain_results(whole, found))
