"""Finds what rows and columns of an ODS workbook hold that its driver does not tell, by the rules of `sheet_rows`.

`opendocument_rows.c` in the fork server shows whether this has to look. Runs in the sandbox. Uses only the standard
library.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from service.engine.jailed.results import TRUTH, times_of
from service.engine.jailed.sheet_rows import MOST_COLUMNS, Cell, SheetRows

MARKS = ('table:visibility="collapse"', 'table:visibility="filter"', 'table:display="false"', ":=SUM(", ":=SUBTOTAL(")
"""The texts that show that there may be something hidden, or totals."""
MOST_COUNTED = 2_000
"""Workbooks with values in further columns are refused."""
MOST_REPEATED = 1 << 20
"""How many cells are counted that stand for several: the driver reads less."""
TAG = re.compile(
    rb"<(?:style:style\b(?P<style>[^<>]*+)>\s*+<style:table-properties\b(?P<shown>[^<>]*+)|table:table(?P<sheet>\s[^<>]*+)>"
    rb"|table:table-column\b(?P<column>[^<>]*+)>|table:table-row(?P<row>(?!-)\b[^<>]*+)>"
    rb"|table:(?:covered-)?+table-cell\b(?P<cell>[^<>]*+)>)"
)
STYLE = re.compile(rb"""\s(?:style:name|table:style-name)\s*+=\s*+["']([^"'<>]*+)["']""")
HIDDEN = re.compile(rb"""\stable:(?:visibility\s*+=\s*+["'](?:collapse|filter)|display\s*+=\s*+["']false)["']""")
TYPE = re.compile(rb"""\soffice:value-type\s*+=\s*+["'](\w++)""")
STRING, TRUE_OR_FALSE = b"string", b"boolean"
MOMENTS = {b"date": Cell.MOMENT, b"time": Cell.CLOCK}
STRING_VALUE = re.compile(rb"""\soffice:string-value\s*+=\s*+(?:"[^"]|'[^'])""")
NO_TEXT = re.compile(rb"\s*+(?:<text:p\s*+(?:/>|>\s*+</text:p\s*+>)\s*+)*+</table:")
"""The content of a cell that shows nothing."""
TEXT = re.compile(rb"\s*+<text:p\b")
ROWS = re.compile(rb"""\stable:number-rows-repeated\s*+=\s*+["'](\d{1,7})["']""")
FORMULA = re.compile(rb"""\stable:formula\s*+=\s*+["'](?:of|oooc):=(SU[^"'<>]*+)["']""")
AS_XLSX = bytes.maketrans(b";", b",")
"""How formulas separate their arguments; references to cells are in brackets, behind a point."""


def count_rows(parts: Iterable[bytes], found: Counter[str]) -> None:
    """Add to `found` what `sheet_rows` finds in the other kind of workbooks."""
    _Counting(found).count(chain.from_iterable(map(TAG.finditer, parts)))


class _Counting:
    """The cells so far."""

    def __init__(self, found: Counter[str]) -> None:
        self._found = found
        self._styles: set[bytes] = set()
        self._sheets = self._filled = self._hidden_sheets = 0
        self._left = MOST_REPEATED
        self._begin_sheet()

    def _begin_sheet(self) -> None:
        self._sheet = SheetRows(self._found)
        self._place = self._width = 0
        self._rows = 1

    def _end_sheet(self) -> None:
        self._sheet.end()
        self._filled += self._sheet.has_values

    def count(self, tags: Iterator[re.Match[bytes]]) -> None:
        for tag in tags:
            if tag["cell"] is not None:
                self._add_cell(tag)
            elif (row := tag["row"]) is not None:
                self._begin_row(row)
            elif (column := tag["column"]) is not None:
                self._add_columns(column)
            elif (sheet := tag["sheet"]) is not None:
                self._end_sheet()
                self._begin_sheet()
                self._sheets += 1
                named = STYLE.search(sheet)
                self._hidden_sheets += named is not None and named[1] in self._styles
            elif HIDDEN.search(tag["shown"]) and (named := STYLE.search(tag["style"])):
                self._styles.add(named[1])
        self._end_sheet()
        if self._filled == self._sheets:
            self._found.update(["hidden_sheets"] * self._hidden_sheets)

    def _add_columns(self, said: bytes) -> None:
        first, self._width = self._width, min(self._width + times_of(said), MOST_COLUMNS)
        if HIDDEN.search(said):
            self._sheet.hide_columns(first + 1, self._width)

    def _begin_row(self, said: bytes) -> None:
        repeated = ROWS.search(said)
        number = self._sheet.row + self._rows if self._sheet.row else 1
        self._rows = int(repeated[1]) if repeated else 1
        self._sheet.begin_row(number, self._rows, is_hidden=HIDDEN.search(said) is not None)
        self._place = 0

    def _add_cell(self, tag: re.Match[bytes]) -> None:
        first, self._place = self._place, min(self._place + times_of(tag["cell"]), MOST_COLUMNS)
        kind = None if tag[0].startswith(b"<table:covered") else _kind_of(tag)
        if kind is not None:
            formula = FORMULA.search(tag["cell"])
            plain = formula[1].translate(AS_XLSX, b"[.]") if formula else None
            end = min(self._place, MOST_COUNTED, first + 1 + max(self._left, 0))
            self._left -= max(end - first - 1, 0)
            for column in range(first, end):
                self._sheet.add_cell(column + 1, kind, plain)


def _kind_of(tag: re.Match[bytes]) -> Cell | None:
    """What a cell is, of which `tag` is the start; None if it has no value."""
    said = tag["cell"]
    of_type = TYPE.search(said)
    if of_type and of_type[1] != STRING:
        is_truth = of_type[1] == TRUE_OR_FALSE or TRUTH.search(said)
        return Cell.NEITHER if is_truth else MOMENTS.get(of_type[1], Cell.NUMBER)
    is_empty = said.endswith(b"/") or NO_TEXT.match(tag.string, tag.end())
    is_shown = of_type or TEXT.match(tag.string, tag.end())
    return None if (is_empty or not is_shown) and not STRING_VALUE.search(said) else Cell.TEXT
