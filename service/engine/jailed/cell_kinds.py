"""Tells what the cells in the columns of an ODS workbook are. Runs in the sandbox, for `sheets`.

Its driver takes the type of a column from the first row below the header, and a column that begins empty for one of
texts. Uses only the standard library.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from enum import Flag, auto
from itertools import chain

from service.engine.jailed.opendocument import MOST_ROWS, parts
from service.engine.jailed.results import TRUTH, times_of
from service.engine.jailed.styles import UNREADABLE


class CellKind(Flag):
    """What the filled cells of a column hold."""

    NONE = 0
    TEXT = auto()
    NUMBER = auto()
    TRUTH = auto()
    DATE = auto()


ColumnKinds = Mapping[int, CellKind]
"""By the position of a column, from 0; those without a filled cell below the header may be absent."""
SHEET_ROW_OR_CELL = re.compile(
    rb"<table:(?:table(?P<sheet>[\s>])|table-row\b(?P<row>[^<>]*+)>|(?:covered-)?+table-cell\b(?P<cell>[^<>]*+)>"
    rb"(?P<empty>\s*+(?:<text:p\s*+(?:/>|>\s*+</text:p\s*+>)\s*+)*+</table:)?+)"
)
ROWS = re.compile(rb"""\stable:number-rows-repeated\s*+=\s*+["'](\d{1,7})["']""")
TYPE = re.compile(rb"""\soffice:value-type\s*+=\s*+["']([a-z]{1,20})["']""")
TYPES = {
    b"float": CellKind.NUMBER,
    b"currency": CellKind.NUMBER,
    b"percentage": CellKind.NUMBER,
    b"date": CellKind.DATE,
}
"""What cells hold by the type that they say; all others hold texts."""


class _Sheet:
    """The rows of a sheet so far, as the driver counts them, and what it found in their cells."""

    def __init__(self) -> None:
        self.columns: defaultdict[int, CellKind] = defaultdict(lambda: CellKind.NONE)
        self.rows = self._place = 0
        self.is_filled = False

    def begin_row(self, said: bytes) -> None:
        found = ROWS.search(said)
        repeated = int(found[1]) if found else 1
        self.rows += repeated if repeated <= MOST_ROWS else 0
        self._place = 0

    def add_cell(self, said: bytes, kind: CellKind) -> None:
        width = times_of(said)
        if kind:
            self.is_filled = True
            for place in range(self._place, self._place + min(width, MOST_ROWS) if self.rows > 1 else 0):
                self.columns[place] |= kind
        self._place += width

    @property
    def is_read(self) -> bool:
        """Whether the driver makes a layer of it."""
        return self.is_filled or self.rows > 1


def kinds_of_columns(workbook: str) -> list[ColumnKinds]:
    """What the columns of each sheet hold that the driver reads; none if the workbook is damaged.

    A sheet that only the driver could tell from an empty one may be missing.
    """
    sheets: list[_Sheet] = []
    try:
        with zipfile.ZipFile(workbook) as book:
            for found in chain.from_iterable(map(SHEET_ROW_OR_CELL.finditer, parts(book))):
                if found["sheet"] is not None:
                    sheets.append(_Sheet())
                elif sheets and found["row"] is not None:
                    sheets[-1].begin_row(found["row"])
                elif sheets:
                    sheets[-1].add_cell(found["cell"], _kind(found))
    except UNREADABLE:
        return []
    return [sheet.columns for sheet in sheets if sheet.is_read]


def _kind(cell: re.Match[bytes]) -> CellKind:
    said: bytes = cell["cell"]
    if TRUTH.search(said):
        return CellKind.TRUTH
    of_type = TYPE.search(said)
    kind = TYPES.get(of_type[1]) if of_type else None
    if kind is not None:
        return kind
    return CellKind.NONE if said.endswith(b"/") or cell["empty"] is not None else CellKind.TEXT
