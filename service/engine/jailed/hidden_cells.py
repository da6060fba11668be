"""Counts what an ODS workbook hides and its driver reads: sheets, columns and rows with values. Runs in the sandbox.

Uses only the standard library.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from service.engine.jailed.results import times_of

MOST_COLUMNS = 16_384
MARKS = ('table:visibility="collapse"', 'table:visibility="filter"', 'table:display="false"')
"""The texts that show that there may be something hidden."""
TAG = re.compile(
    rb"<(?:style:style\b(?P<style>[^<>]*+)>\s*+<style:table-properties\b(?P<shown>[^<>]*+)|table:table(?P<sheet>\s[^<>]*+)>"
    rb"|table:table-column\b(?P<column>[^<>]*+)>|table:table-row\b(?P<row>[^<>]*+)>"
    rb"|table:(?:covered-)?+table-cell\b(?P<cell>[^<>]*+)>)"
)
STYLE = re.compile(rb"""\s(?:style:name|table:style-name)\s*+=\s*+["']([^"'<>]*+)["']""")
HIDDEN = re.compile(rb"""\stable:(?:visibility\s*+=\s*+["'](?:collapse|filter)|display\s*+=\s*+["']false)["']""")
VALUE = re.compile(rb"""\s(?:office|calcext):value-type\s*+=""")
ROWS = re.compile(rb"""\stable:number-rows-repeated\s*+=\s*+["'](\d{1,7})["']""")


def count_hidden(parts: Iterable[bytes], found: Counter[str]) -> None:
    """Add what is hidden to `found`, as `sheet_rows` does for the other kind of workbooks."""
    _Counting(found).count(chain.from_iterable(map(TAG.finditer, parts)))


class _Counting:
    """The cells so far."""

    def __init__(self, found: Counter[str]) -> None:
        self._found = found
        self._styles: set[bytes] = set()
        self._sheets = self._filled = self._hidden_sheets = 0
        self._begin_sheet()

    def _begin_sheet(self) -> None:
        self._row = self._place = self._width = 0
        self._rows, self._is_hidden, self._is_filled, self._has_values = 1, False, False, False
        self._columns: set[int] = set()

    def count(self, tags: Iterator[re.Match[bytes]]) -> None:
        for tag in tags:
            if (cell := tag["cell"]) is not None:
                self._add_cell(cell)
            elif (row := tag["row"]) is not None:
                self._begin_row(row)
            elif (column := tag["column"]) is not None:
                self._add_columns(column)
            elif (sheet := tag["sheet"]) is not None:
                self._begin_sheet()
                self._sheets += 1
                named = STYLE.search(sheet)
                self._hidden_sheets += named is not None and named[1] in self._styles
            elif HIDDEN.search(tag["shown"]) and (named := STYLE.search(tag["style"])):
                self._styles.add(named[1])
        if self._filled == self._sheets:
            self._found.update(["hidden_sheets"] * self._hidden_sheets)

    def _add_columns(self, said: bytes) -> None:
        end = min(self._width + times_of(said), MOST_COLUMNS)
        if HIDDEN.search(said):
            self._columns.update(range(self._width, end))
        self._width = end

    def _begin_row(self, said: bytes) -> None:
        repeated = ROWS.search(said)
        self._row += self._rows if self._row else 1
        self._rows = int(repeated[1]) if repeated else 1
        self._is_hidden = HIDDEN.search(said) is not None
        self._is_filled = False
        self._place = 0

    def _add_cell(self, said: bytes) -> None:
        first, self._place = self._place, min(self._place + times_of(said), MOST_COLUMNS)
        if not VALUE.search(said):
            return
        if not self._has_values:
            self._has_values = True
            self._filled += 1
        if self._columns:
            seen = self._columns.intersection(range(first, self._place))
            self._columns -= seen
            self._found.update({"hidden_columns": len(seen)} if seen else {})
        if self._is_hidden and not self._is_filled:
            self._is_filled = True
            self._found["hidden_rows"] += self._rows
            self._found["first_hidden_rows"] = self._found["first_hidden_rows"] or self._row
