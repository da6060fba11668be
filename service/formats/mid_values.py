"""Finds what the driver leaves out of a .mid or makes up: rows and values beyond its .mif, empty numbers, odd dates."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
    columns = list(_columns(head, declared))
    delimiter = DELIMITER.search(head, 0, declared.start())
    objects = _count_objects(mif, declared.end())
    rows = _Rows(columns, objects, reads_logical=reads_logical)
    with suppress(csv.Error):  # a text that is too long, for example: the rows so far are told
        rows.read(mid, delimiter[1].decode("latin-1") if delimiter else "\t")
    unique = UNIQUE.search(head, 0, declared.start())
    rules = [RULES_LEFT_OUT.format(count=len(re.findall(rb"\d+", unique[1])))] if unique else []
    return [*rules, *rows.sentences(repr(shown(layer)))]


def logical_columns(file: Path) -> tuple[int, ...]:
    """The positions of the columns that a .mif or a .tab declares as logical. Blocking."""
    head, declared = _head(file)
    columns = _columns(head, declared) if declared else ()
    return tuple(column.place for column in columns if column.kind == LOGICAL)


def clock_times(file: Path) -> set[str]:
    """The names of the columns that a .mif or a .tab declares as times of day, in UTF-8 or Windows-1252. Blocking."""
    head, declared = _head(file)
    names = [column.raw for column in _columns(head, declared) if column.kind == TIME] if declared else []
    return {name.decode(encoding, "replace") for name in names for encoding in ("utf-8", "cp1252")}


def _head(path: Path) -> tuple[bytes, re.Match[bytes] | None]:
    """How a .mif or a .tab begins, and where its columns follow."""
    with opened(path) as file:
        head = file.read(HEAD_BYTES)
    return head, COLUMNS.search(head)


def _columns(head: bytes, declared: re.Match[bytes]) -> Iterator[_MidColumn]:
    count = int(declared[1])
    for place, line in enumerate(head[declared.end() :].split(b"\n", count)[:count]):
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


class _Odd(NamedTuple):
    """How often something is odd in which columns, and the number of the first row."""

    counts: Counter[str]
    first: int


class _Rows:
    """Counts what is odd in rows."""

    def __init__(self, columns: Sequence[_MidColumn], objects: int, *, reads_logical: bool) -> None:
        self._width = len(columns)
        self._logical = [column for column in columns if reads_logical and column.kind == LOGICAL]
        self._numbers = [column for column in columns if column.kind in NUMBERS]
        self._reals = [column for column in columns if column.kind in REALS]
        self._dates = [(column, DIGITS[column.kind]) for column in columns if column.kind in DIGITS]
        self._objects = objects
        self._found: dict[tuple[str, str], _Odd] = {}
        """By sentence and type of column."""
        self._surplus = 0

    def read(self, mid: Path, delimiter: str) -> None:
        """Look through the rows of `mid`.

        Raises:
            csv.Error: a row, or a text in one, is too long.
        """
        with TextIOWrapper(opened(mid), encoding="latin-1", newline="") as file:
            lines = _Lines(file)
            for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 1):
                lines.row_length = 0
                if not row and self._width > 1:  # the driver reads no further
                    return
                if number <= self._objects:
                    self._look(number, row or [""])
                elif any(row):
                    self._surplus += 1

    def _look(self, number: int, row: Sequence[str]) -> None:
        if len(row) > self._width:
            self._note(SURPLUS_VALUES, number)
        if len(row) != self._width:
            return
        self._look_at_numbers(number, row)
        for column in self._logical:
            if row[column.place][:1] not in TRUE_OR_FALSE:
                self._note(NEITHER, number, column.name)
        for column, digits in self._dates:
            if (text := row[column.place]) and (len(text) != digits or not text.isdecimal()):
                self._note(NO_DATES, number, column.name, column.kind)

    def _look_at_numbers(self, number: int, row: Sequence[str]) -> None:
        for column in self._numbers if "" in row else ():
            if not row[column.place]:
                self._note(EMPTY_NUMBERS, number, column.name)
        for column in self._reals:
            text = row[column.place]
            if MAY_BE_INEXACT.fullmatch(text) and int(float(text)) != int(text.partition(".")[0]):
                self._note(ROUNDED, number, column.name)

    def _note(self, sentence: str, number: int, name: str = "", kind: str = "") -> None:
        odd = self._found.get((sentence, kind))
        if odd is None:  # a counter for each value would take ten times as long as counting it
            odd = self._found[sentence, kind] = _Odd(Counter(), number)
        odd.counts[name] += 1

    def sentences(self, layer: str) -> Iterator[str]:
        """What was found in the rows of `layer`."""
        for (sentence, kind), odd in self._found.items():
            rows, values = counted(odd.counts.total(), "row"), values_of(odd.counts)
            told = sentence.format(rows=rows, values=values, layer=layer, kind=kind, digits=DIGITS.get(kind))
            yield told + FIRST.format(first=odd.first)
        if self._surplus:
            objects = counted(self._objects, "object")
            yield SURPLUS_ROWS.format(rows=counted(self._surplus, "row"), layer=layer, objects=objects)
