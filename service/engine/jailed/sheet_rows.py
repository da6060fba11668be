"""Finds what the rows and columns of the sheets of a workbook hold that its driver does not tell. Runs in the sandbox.

`SheetRows` has the rules for all workbooks; the rest reads the sheets of XLSX. `sheet_rows.c` in the fork server counts
the same. Uses only the standard library.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import chain

from service.engine.jailed.cells import SHEET, cut_pieces, pieces

MOST_COLUMNS = 16_384
HEADER = 1
TEXTS = re.compile(r"xl/sharedStrings\.xml", re.IGNORECASE)
COLUMNS_ROW_OR_CELL = re.compile(
    rb"<(?:col\b(?P<columns>[^<>]*+)>|row\b(?P<row>[^<>]*+)>|c\b(?P<cell>[^<>]*+)>(?P<content>\s*+"
    rb"(?:<f\b[^<>]*+(?:(?<=/)>|>(?P<formula>[^<]*+)</f>)\s*+)?+(?P<empty></c|<v\b[^<>]*+(?:(?<=/)>|></v))?+))"
)
EMPTY_TEXT = re.compile(rb"<si\b[^<>]*+(?:(?<=/)>|>\s*+<t\b[^<>]*+(?:(?<=/)>|></t))")
"""One of the texts that cells share, which is empty: the driver takes such cells for empty ones."""
HIDDEN_SHEET = re.compile(rb"""<sheet\s(?=[^<>]*?\bstate\s*+=\s*+["'](?:hidden|veryHidden)["'])""")
HIDDEN = re.compile(rb"""\shidden\s*+=\s*+["'](?:1|true)["']""")
RANGE = re.compile(rb"""\s(min|max)\s*+=\s*+["'](\d{1,9})["']""")
ROW = re.compile(rb"""\sr\s*+=\s*+["'](\d{1,9})["']""")
COLUMN = re.compile(rb"""\sr\s*+=\s*+["']([A-Z]{1,3})""")
TYPE = re.compile(rb"""\st\s*+=\s*+["'](\w)""")
FORMAT = re.compile(rb"""\ss\s*+=\s*+["'](\d{1,9})["']""")
TOTAL = re.compile(
    rb"(?:SUM\(|SUBTOTAL\(\d*+,?+)\$?(?P<column>[A-Z]{1,3})\$?(?P<first>\d{1,7}):\$?(?P=column)\$?(?P<last>\d{1,7})\)"
)
"""What adds up cells of one column."""
SUBTOTAL, OF_TABLE = b"SUBTOTAL(", b"])"
"""How a formula begins and ends that adds up a column of a table."""


class Cell(Enum):
    """What counts in columns; true and false do not."""

    NUMBER = auto()
    MOMENT = auto()
    CLOCK = auto()
    TEXT = auto()
    NEITHER = auto()


KINDS = {b"n": Cell.NUMBER, b"b": Cell.NEITHER}
"""What cells of XLSX are by their type; others are texts."""


class SheetRows:
    """The rows of a sheet so far, and what they add to `found`."""

    def __init__(self, found: Counter[str]) -> None:
        self._found = found
        self.has_values = False
        self.row = self._last_filled = self._last_hidden = 0
        self._times = 1
        self._hidden: set[int] = set()
        self._is_hidden = self._is_filled = self._has_total = False
        self._numbers, self._texts = Counter[int](), Counter[int]()
        self._first_rows: dict[int, dict[Cell, int]] = {}

    def hide_columns(self, first: int, last: int) -> None:
        """Columns are listed in order; others are not looked at, so that each is hidden once."""
        last = min(last, MOST_COLUMNS)
        if self._last_hidden < first <= last:
            self._hidden.update(range(first, last + 1))
            self._last_hidden = last

    def begin_row(self, number: int, times: int = 1, *, is_hidden: bool) -> None:
        """Begin the row with this `number`, from 1, which stands for several."""
        self.row, self._times, self._is_hidden = number, times, is_hidden
        self._is_filled = self._has_total = False

    def add_cell(self, column: int, kind: Cell, formula: bytes | None = None) -> None:
        """Count a cell with a value in a `column`, from 1."""
        self.has_values = True
        self._fill_row()
        if column in self._hidden:
            self._hidden.remove(column)
            self._found["hidden_columns"] += 1
        if self.row <= HEADER or kind is Cell.NEITHER:
            return
        (self._texts if kind is Cell.TEXT else self._numbers)[column] += self._times
        self._first_rows.setdefault(column, {}).setdefault(kind, self.row)
        if formula and not self._has_total and self._is_total(column, formula):
            self._has_total = True
            self._add("totals", 1, self.row)

    def end(self) -> None:
        """Add the numbers and times of columns that are mostly of these, but also of texts, or of several kinds."""
        for column, numbers in self._numbers.items():
            rows = self._first_rows[column]
            if numbers > self._texts[column] > 0:
                self._add("mixed", numbers, rows[Cell.TEXT])
            elif len(rows) > 1 and Cell.TEXT not in rows:
                self._add("unlike", numbers, sorted(rows.values())[1])

    def _fill_row(self) -> None:
        if self._is_filled:
            return
        self._is_filled = True
        self._add("hidden_rows", self._is_hidden * self._times, self.row)
        if self._last_filled and self.row > self._last_filled + 1:
            self._add("blank_rows", self.row - self._last_filled - 1, self._last_filled + 1)
        self._last_filled = self.row + self._times - 1

    def _is_total(self, column: int, formula: bytes) -> bool:
        """Whether a formula adds up other cells of its column, or a column of its table."""
        if formula.startswith(SUBTOTAL) and formula.endswith(OF_TABLE) and b"[" in formula:
            return True
        total = TOTAL.fullmatch(formula)
        if total is None or column_number(total["column"]) != column:
            return False
        first, last = int(total["first"]), int(total["last"])
        return 0 < first < last and not first <= self.row <= last

    def _add(self, kind: str, count: int, row: int) -> None:
        if count:
            self._found[kind] += count
            self._found[f"first_{kind}"] = min(row, self._found[f"first_{kind}"] or row)


def rows_found(book: zipfile.ZipFile, description: bytes, moments: Mapping[int, Cell]) -> Counter[str]:
    """What is told of the rows, columns and sheets of `book`, whose main part is `description`.

    `moments` are the positions of the formats of dates and times that the driver does not read as numbers, with what
    their cells are.

    These are `hidden_sheets`, and `hidden_columns` and `hidden_rows` with values; `blank_rows` between others; rows
    with `totals` of others; numbers in `mixed` columns, of which a minority are texts, with the first of these; and
    those in columns of `unlike` numbers, moments and times of day without texts, with the first of the second kind.

    Raises what `zipfile` does if the workbook is damaged.
    """
    found: Counter[str] = Counter()
    parts = filter(SHEET.fullmatch, book.namelist())
    sheets = [_look(chain.from_iterable(_tags(book, part)), found, moments) for part in parts]
    if all(sheets):
        found.update(["hidden_sheets"] * len(HIDDEN_SHEET.findall(description)))
    texts = filter(TEXTS.fullmatch, book.namelist())
    if any(EMPTY_TEXT.search(piece) for part in texts for piece in cut_pieces(pieces(book, part))):
        del found["mixed"], found["first_mixed"]
    return found


def _tags(book: zipfile.ZipFile, part: str) -> Iterator[Iterator[re.Match[bytes]]]:
    return map(COLUMNS_ROW_OR_CELL.finditer, cut_pieces(pieces(book, part)))


def _look(tags: Iterator[re.Match[bytes]], found: Counter[str], moments: Mapping[int, Cell]) -> bool:
    """Count what is in a sheet; return whether it has values."""
    sheet = SheetRows(found)
    column = 0
    for tag in tags:
        if tag["cell"] is not None:
            column = _add_cell(sheet, column + 1, tag, moments)
        elif (row := tag["row"]) is not None:
            number = ROW.search(row)
            sheet.begin_row(int(number[1]) if number else sheet.row + 1, is_hidden=HIDDEN.search(row) is not None)
            column = 0
        elif HIDDEN.search(tag["columns"]):
            bounds = {bound[1]: int(bound[2]) for bound in RANGE.finditer(tag["columns"])}
            sheet.hide_columns(bounds.get(b"min", 0), bounds.get(b"max", 0))
    sheet.end()
    return sheet.has_values


def _add_cell(sheet: SheetRows, column: int, cell: re.Match[bytes], moments: Mapping[int, Cell]) -> int:
    """Count a cell, in this `column` unless it names another, and return its column."""
    said = cell["cell"]
    named = COLUMN.search(said)
    column = column_number(named[1]) if named else column
    if not said.endswith(b"/") and cell["empty"] is None and column <= MOST_COLUMNS:
        of_type = TYPE.search(said)
        kind = KINDS.get(of_type[1] if of_type else b"n", Cell.TEXT)
        if kind is Cell.NUMBER and (of_format := FORMAT.search(said)):
            kind = moments.get(int(of_format[1]), kind)
        sheet.add_cell(column, kind, cell["formula"])
    return column


def column_number(letters: bytes) -> int:
    """The number of a column, from 1, such as 27 for AA."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number
