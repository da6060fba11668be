"""Finds what the driver leaves out of a .mid or makes up: rows and values beyond its .mif, empty numbers, odd dates."""

import csv
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple, TextIO

from service.formats.left_out import PIECE
from service.formats.names import counted, shown, values_of
from service.formats.opened import opened
from service.formats.table.databases import RULES_LEFT_OUT

HEAD_BYTES = 256 << 10
"""More than a header of 2,000 columns has."""
LONGEST_LINE = 1 << 20
"""Longer lines, and rows that go on over more lines, are of another kind of file; what follows is not looked at."""
MOST_WAITING = 256 << 10
"""How many characters of rows are looked at together."""
COLUMNS = re.compile(rb"^[ \t]*(?:columns|fields)[ \t]+(\d{1,5})[ \t]*\r?\n", re.IGNORECASE | re.MULTILINE)
"""What comes before the columns in a .mif or a .tab."""
COLUMN = re.compile(rb"[ \t]*(\S+)[ \t]+([a-z]+)", re.IGNORECASE)
UNIQUE = re.compile(rb"^[ \t]*unique((?:[ \t]*,?[ \t]*\d{1,5}){1,99})", re.IGNORECASE | re.MULTILINE)
DELIMITER = re.compile(rb'^[ \t]*delimiter[ \t]+"([^"\r\n])"', re.IGNORECASE | re.MULTILINE)
OBJECT = re.compile(
    rb"^[ \t]*(?:none|point|line|pline|region|arc|text|rect|roundrect|ellipse|multipoint|(collection)[ \t]+(\d{1,9}))"
    rb"(?![^\s])[^\n]*\n",
    re.IGNORECASE | re.MULTILINE,
)
NUMBERS = frozenset({"integer", "smallint", "largeint", "decimal", "float"})
REALS = frozenset({"decimal", "float"})
MAY_BE_INEXACT = re.compile(r"[-+]?\d{16,40}+(?:\.0*)?+", re.ASCII)
"""A whole number of so many digits that no floating-point number may be it."""
LOGICAL, TIME = "logical", "time"
TRUE_OR_FALSE = frozenset("TtYy1FfNn0")
"""How logical values begin; the driver reads no more of them."""
DIGITS: Mapping[str, int] = {"date": 8, "time": 9, "datetime": 17}
"""The lengths of the only notation of each type that is read."""
EMPTY_NUMBERS = "Empty numbers in {layer} ({values}) became 0, because MapInfo knows no missing numbers."
ROUNDED = (
    "Whole numbers in {layer} ({values}) lost their last digits, because numbers of the types Decimal and Float are "
    "read as floating-point numbers. Declare them as Char to keep them."
)
NO_DATES = (
    "{values} in {layer} became missing or others, because only {digits} digits, with nothing between or around them, "
    "are read as a {kind}."
)
NEITHER = "{values} in {layer} are neither true nor false, such as T and F, and became false."
SURPLUS_VALUES = "{rows} of {layer} had more values than there are columns; what is beyond them was left out."
SURPLUS_ROWS = "The .mif of {layer} has only {objects}; what is beyond them in its .mid was left out: {rows}."
FIRST = " The first is feature {first:,}."


class _MidColumn(NamedTuple):
    place: int
    raw: bytes
    kind: str

    @property
    def name(self) -> str:
        return self.raw.decode("utf-8", "replace")


def mid_warnings(mif: Path, mid: Path, layer: str, *, reads_logical: bool = False) -> list[str]:
    """What to tell of the rows and values of `mid`, which belong to the objects and columns of `mif`. Blocking.

    Those of logical columns count if the driver `reads_logical` ones, not their texts.
    """
    head, declared = _head(mif)
    if declared is None:
        return []
    lines = _column_lines(head, declared)
    columns = list(_columns(lines))
    delimiter = DELIMITER.search(head, 0, declared.start())
    objects = _count_objects(mif, declared.end() + sum(len(line) + 1 for line in lines))
    rows = _Rows(columns, objects, reads_logical=reads_logical)
    with suppress(csv.Error):  # a text that is too long, for example: the rows so far are told
        rows.read(mid, delimiter[1].decode("latin-1") if delimiter else "\t")
    unique = UNIQUE.search(head, 0, declared.start())
    rules = [RULES_LEFT_OUT.format(count=len(re.findall(rb"\d+", unique[1])))] if unique else []
    return [*rules, *rows.sentences(repr(shown(layer)))]


def logical_columns(file: Path) -> tuple[int, ...]:
    """The positions of the columns that a .mif or a .tab declares as logical. Blocking."""
    head, declared = _head(file)
    columns = _columns(_column_lines(head, declared)) if declared else ()
    return tuple(column.place for column in columns if column.kind == LOGICAL)


def clock_times(file: Path) -> set[str]:
    """The names of the columns that a .mif or a .tab declares as times of day, in UTF-8 or Windows-1252. Blocking."""
    head, declared = _head(file)
    columns = _columns(_column_lines(head, declared)) if declared else ()
    names = [column.raw for column in columns if column.kind == TIME]
    return {name.decode(encoding, "replace") for name in names for encoding in ("utf-8", "cp1252")}


def _head(path: Path) -> tuple[bytes, re.Match[bytes] | None]:
    """How a .mif or a .tab begins, and where its columns follow."""
    with opened(path) as file:
        head = file.read(HEAD_BYTES)
    return head, COLUMNS.search(head)


def _column_lines(head: bytes, declared: re.Match[bytes]) -> list[bytes]:
    """The lines that declare columns."""
    count = int(declared[1])
    return head[declared.end() :].split(b"\n", count)[:count]


def _columns(lines: Sequence[bytes]) -> Iterator[_MidColumn]:
    for place, line in enumerate(lines):
        found = COLUMN.match(line)
        name, kind = (found[1], found[2]) if found else (b"", b"")
        yield _MidColumn(place, name, kind.decode("ascii").lower())


def _count_objects(mif: Path, start: int) -> int:
    """How many objects follow the header; parts of collections are none."""
    count = parts = 0
    with opened(mif) as file:
        file.seek(start)
        rest = b"\n"
        while chunk := file.read(PIECE):
            text, newline, rest = (rest + chunk).rpartition(b"\n")
            for found in OBJECT.finditer(text + newline):
                count += not parts
                parts = max(parts - 1, 0) + int(found[2] or 0)
            if len(rest) > LONGEST_LINE:
                break
        last = OBJECT.match(rest + b"\n")
    return count + (last is not None and not parts)


class _Lines:
    """The lines of a .mid; the caller that takes rows of them says where one begins, so that none takes much memory."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.row_length = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_LINE):
            self.row_length += len(line)
            if self.row_length > LONGEST_LINE:
                raise csv.Error("the row is too long")
            yield line


class _Check(NamedTuple):
    """What is told of the values of a column that are odd."""

    column: _MidColumn
    sentence: str
    is_odd: Callable[[str], bool]
    kind: str = ""


class _Odd(NamedTuple):
    """How often something is odd in which columns, and the number of the first row."""

    counts: Counter[str]
    first: int


class _Rows:
    """Counts what is odd in rows."""

    def __init__(self, columns: Sequence[_MidColumn], objects: int, *, reads_logical: bool) -> None:
        self._width = len(columns)
        self._checks = [check for column in columns for check in _checks(column, reads_logical=reads_logical)]
        self._objects = objects
        self._found: dict[tuple[str, str], _Odd] = {}
        """By sentence and type of column."""
        self._surplus = 0
        self._rows: list[list[str]] = []
        """Those that are still to be looked at, together, since each column of them takes as long as a row."""
        self._numbers: list[int] = []
        self._waiting = 0

    def read(self, mid: Path, delimiter: str) -> None:
        """Look through the rows of `mid`.

        Raises:
            csv.Error: a row, or a text in one, is too long.
        """
        with TextIOWrapper(opened(mid), encoding="latin-1", newline="") as file:
            try:
                self._take_all(file, delimiter)
            finally:
                self._look()

    def _take_all(self, file: TextIO, delimiter: str) -> None:
        lines = _Lines(file)
        for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 1):
            if not row and self._width > 1:  # the driver reads no further
                return
            values = row or [""]
            if number > self._objects:
                self._surplus += any(row)
            elif len(values) == self._width:
                self._rows.append(values)
                self._numbers.append(number)
                self._waiting += lines.row_length
                if self._waiting > MOST_WAITING:
                    self._look()
            elif len(values) > self._width:
                self._note(SURPLUS_VALUES, number)
            lines.row_length = 0

    def _look(self) -> None:
        """Look at the values of the rows that wait, column by column, and at equal values of one once."""
        columns = list(zip(*self._rows, strict=True))
        for check in self._checks if columns else ():
            values = columns[check.column.place]
            if odd := set(filter(check.is_odd, set(values))):
                first = next(number for number, value in zip(self._numbers, values, strict=True) if value in odd)
                count = sum(map(odd.__contains__, values))
                self._note(check.sentence, first, check.column.name, check.kind, count)
        self._rows, self._numbers, self._waiting = [], [], 0

    def _note(self, sentence: str, number: int, name: str = "", kind: str = "", count: int = 1) -> None:
        odd = self._found.get((sentence, kind))
        if odd is None or number < odd.first:
            odd = self._found[sentence, kind] = _Odd(odd.counts if odd else Counter(), number)
        odd.counts[name] += count

    def sentences(self, layer: str) -> Iterator[str]:
        """What was found in the rows of `layer`."""
        for (sentence, kind), odd in self._found.items():
            rows, values = counted(odd.counts.total(), "row"), values_of(odd.counts)
            told = sentence.format(rows=rows, values=values, layer=layer, kind=kind, digits=DIGITS.get(kind))
            yield told + FIRST.format(first=odd.first)
        if self._surplus:
            objects = counted(self._objects, "object")
            yield SURPLUS_ROWS.format(rows=counted(self._surplus, "row"), layer=layer, objects=objects)


def _checks(column: _MidColumn, *, reads_logical: bool) -> Iterator[_Check]:
    if column.kind in NUMBERS:
        yield _Check(column, EMPTY_NUMBERS, operator.not_)
    if column.kind in REALS:
        yield _Check(column, ROUNDED, _is_rounded)
    if column.kind == LOGICAL and reads_logical:
        yield _Check(column, NEITHER, lambda text: text[:1] not in TRUE_OR_FALSE)
    if digits := DIGITS.get(column.kind):
        yield _Check(column, NO_DATES, partial(_is_no_date, digits), column.kind)


def _is_rounded(text: str) -> bool:
    return bool(MAY_BE_INEXACT.fullmatch(text)) and int(float(text)) != int(text.partition(".")[0])


def _is_no_date(digits: int, text: str) -> bool:
    return text != "" and (len(text) != digits or not text.isdecimal())
