"""Normalizes a CSV file of any dialect. Runs in the sandbox.

Determines encoding, delimiter, header, types and geometry columns from the whole file. The result is UTF-8 with a clean
header; if only the header differs, the rest is copied unchanged.
"""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice, pairwise
from operator import or_
from pathlib import Path
from typing import TextIO

import msgspec

from service.engine.jailed.bare_quotes import quotes_in
from service.engine.jailed.exits import Exit
from service.engine.jailed.kinds import NUMBER, Kind, kind_of_cell, loses_digits, separators_in, stands_in, type_of
from service.engine.jailed.places import (
    FINER,
    GEOMETRY_TEXT,
    GEOMETRY_VALUE,
    MARK,
    Column,
    Layout,
    Table,
    Wanted,
    expect,
    lay_out,
    look_at_cell,
    unique_names,
    with_plain_geometries,
    write_rows,
)

OURS = "t0.csv"
DELIMITERS = ",;\t|"
OTHER_DELIMITERS = {"^": "carets (^)", "~": "tildes (~)", ":": "colons", " ": "blanks"}
"""Which characters may have been meant to separate the cells of a single column, and what they are called."""
MANY_PARTS, MANY_NUMBERS = 3, 2
"""How many parts of a text, and columns of numbers among these, show that blanks or colons separate them."""
ALIGNED = re.compile(r"\S {2,}\S")
UNDERSTOOD = (",", ";", "\t")
"""The delimiters that GDAL detects from a header line."""
NO_UNICODE = "cp1252"
"""The encoding that all text is taken for that is neither UTF-8 nor UTF-16."""
DECLARED = re.compile(r'"?sep=([,;\t|])"?\r?\n', re.IGNORECASE)
"""A first line with which spreadsheet programs declare the delimiter."""
YEAR = re.compile(r"[12]\d{3}$")
STEPS = frozenset({1, 2, 5, 10})
"""How far apart years beside each other are."""
NO_NAME = re.compile(r"[^(]*+\(")
"""What no name of a geometry has, in a file of one geometry a line: coordinates, whatever they are."""
NO_UNIT = re.compile(r"[ \t\r\n+\-.,]*+(?:\d|inf)", re.ASCII | re.IGNORECASE)
"""What a cell with a unit does not begin with, unlike 12 km, 2024-01-02 and -inf."""
SAMPLE_ROWS = 30
FEWEST_BELOW_TITLE = 3
"""How many rows, with a title, show which delimiter those below it have.

A title has several words, or is above names of numbers; any other word is a name itself, perhaps above lists.
"""
SAMPLE_CHARACTERS = 1 << 20
LAST = "\x1a"
"""The character that programs of DOS write behind the last line of a text."""
END = "\x04 end of the file"
"""A line after the last, which shows whether that is the end of a row."""
MAX_COLUMNS = 2000


class _Looked(msgspec.Struct):
    """The columns with their types, the header row, empty if there is none, and the number of a row without end.

    And how many rows have separators alone, the first of these, and what separates the cells of a single column.
    """

    columns: list[Column]
    header: list[str]
    open_row: int = 0
    blank: int = 0
    first_blank: int = 0
    split_by: str = ""


def main(csv_file: str, wanted: str = "{}", known_delimiter: str = "") -> list[Table]:
    """Write a normalized copy of `csv_file`, and return its description; `wanted` is JSON of `Wanted`."""
    csv.field_size_limit(Path(csv_file).stat().st_size + 1 + len(END))
    asked = Wanted(**json.loads(wanted))
    encoding = encoding_of(csv_file)
    with Path(csv_file).open(encoding=encoding, errors="replace", newline="") as file:
        declared, start = _declared(file)
        delimiter = known_delimiter or declared or _delimiter(file)
        file.seek(start)
        looked = _look(file, delimiter, asked, is_of_lines=bool(known_delimiter))
        columns, header, open_row = looked.columns, looked.header, looked.open_row
        layout = lay_out("", header, columns, wanted=asked, delimiter=delimiter)
        file.seek(start)
        zeros, first_zero, has_marks = _unseen(file)
        file.seek(start)
        quotes = quotes_in(file, delimiter, has_header=bool(header))
        is_odd = zeros or has_marks or open_row or quotes.are_bare or quotes.lost
        file.seek(start)
        written = _write(file, delimiter, layout, has_header=bool(header), is_odd=bool(is_odd))
    Path(OURS).with_suffix(".csvt").write_text(layout.types, encoding="ascii")
    table = msgspec.structs.replace(
        layout.table,
        delimiter=written,
        in_windows_1252=encoding == NO_UNICODE,
        zeros=zeros,
        first_zero=first_zero,
        open_row=open_row,
        blank=looked.blank,
        first_blank=looked.first_blank,
        split_by=looked.split_by,
        unquoted=quotes.lost,
        first_unquoted=quotes.first_lost,
    )
    return [table]


def encoding_of(path: str) -> str:
    """The encoding of the text in `path`, for Python."""
    with Path(path).open("rb") as file:
        start = file.read(4)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        with Path(path).open(encoding="utf-8-sig") as text:
            while text.read(SAMPLE_CHARACTERS):
                pass
    except UnicodeDecodeError:
        return NO_UNICODE
    return "utf-8-sig"


def _unseen(file: TextIO) -> tuple[int, int, bool]:
    """How many zeros follow in the text, in which line the first one is, and whether byte order or end marks do."""
    zeros = first = lines = 0
    has_marks = False
    while part := file.read(SAMPLE_CHARACTERS):
        has_marks = has_marks or MARK in part or LAST in part
        if not first and "\0" in part:
            first = lines + part.count("\n", 0, part.index("\0")) + 1
        zeros += part.count("\0")
        lines += part.count("\n")
    return zeros, first, has_marks


def _declared(file: TextIO) -> tuple[str, int]:
    """The delimiter that the first line declares, if it does, and where the table begins, to which `file` is set.

    Programs that add a byte order mark to a text that has one make several.
    """
    start = 0
    while file.read(1) == MARK:
        start = file.tell()
    file.seek(start)
    found = DECLARED.fullmatch(file.readline(len('"sep=;"\r\n')))
    start = file.tell() if found else start
    file.seek(start)
    return (found[1] if found else ""), start


def _delimiter(file: TextIO) -> str:
    """The delimiter with which the first rows have the most columns, and all the same number, but for a title."""
    lines = list(islice(io.StringIO(file.read(SAMPLE_CHARACTERS), newline=""), SAMPLE_ROWS * 4))

    def score(delimiter: str) -> tuple[bool, int, bool]:
        rows = list(filter(_is_row, islice(csv.reader(lines, delimiter=delimiter), SAMPLE_ROWS)))
        if not rows:
            return False, 0, False
        widths = [len(row) for row in rows]
        below = set(widths[1:])
        may_be_title = len(rows) >= FEWEST_BELOW_TITLE and (" " in rows[0][0] or _are_names(rows[1], rows[2]))
        is_even_below = may_be_title and len(below) == 1 and below != {1}
        return len(set(widths)) == 1 and widths[0] > 1, widths[0], is_even_below

    return max(DELIMITERS, key=score)


def _are_names(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether `row` is a header above numbers."""
    return all(row) and not any(map(NUMBER.match, row)) and any(map(NUMBER.match, below))


def _look(file: TextIO, delimiter: str, wanted: Wanted, *, is_of_lines: bool) -> _Looked:
    ends: list[int] = []
    rows = _until_end(_rows(chain(file, [END]), delimiter), ends)
    first = next(rows, None)
    if first is None:
        sys.exit(Exit.NOT_A_TABLE)
    if ends:
        sys.exit(Exit.OPEN_HEADER)
    if len(first) > MAX_COLUMNS:
        sys.exit(Exit.TOO_MANY_COLUMNS)
    second = next(rows, [])
    is_line = is_of_lines and bool(NO_NAME.match(first[0]) and GEOMETRY_TEXT.match(first[0]))
    header = first if not is_line and _is_header(first, second) else []
    columns = [Column(name) for name in unique_names(header or [""] * len(first))]
    expect(columns, wanted)
    looked = _Looked(columns, header)
    sample: list[str] = []
    for number, row in enumerate(chain([second] if header else [first, second], rows), 1):
        if len(columns) == 1 and row and len(sample) < SAMPLE_ROWS:
            sample += row
        _take(columns, row, may_be_units=number == 1 and bool(header) and not any(map(NO_UNIT.match, row)))
        if len(row) > 1 and not any(row):
            looked.blank += 1
            looked.first_blank = looked.first_blank or number
    every = reduce(or_, (column.kinds for column in columns), Kind.NONE)
    others = reduce(or_, (column.others or Kind.NONE for column in columns), every)
    for column in columns:
        column.type = type_of(column.kinds, delimiter, every)
        if type_of(column.others or Kind.NONE, delimiter, others) == "String":
            column.aside = 0
    if len(columns) == 1 and not is_of_lines:
        looked.split_by = _other_delimiter([*header, *sample])
    looked.open_row = ends[0] - bool(header) if ends else 0
    return looked


def _other_delimiter(cells: Sequence[str]) -> str:
    """What seems to separate the parts of all `cells` of a single column; "" if nothing does."""
    for delimiter, called in OTHER_DELIMITERS.items():
        rows = [cell.split(None if delimiter == " " else delimiter) for cell in cells]
        is_even = len(rows) > 1 and len(set(map(len, rows))) == 1
        numbers = [all(map(NUMBER.match, column)) for column in zip(*rows[1:], strict=True)] if is_even else []
        is_certain = delimiter in "^~" or (len(numbers) >= MANY_PARTS and sum(numbers) >= MANY_NUMBERS)
        is_time = delimiter == ":" and any(map(NUMBER.match, rows[0]))
        if len(numbers) > 1 and is_certain and not is_time:
            return called
    return OTHER_DELIMITERS[" "] if len(cells) > 1 and all(map(ALIGNED.search, cells)) else ""


def _until_end(rows: Iterator[list[str]], ends: list[int]) -> Iterator[list[str]]:
    """The rows before END; if that is within a text that does not end, the number of this row goes to `ends`."""
    for number, row in enumerate(rows, 1):
        if row != [END]:
            if row[-1].endswith(END):
                row[-1] = row[-1].removesuffix(END)
                ends.append(number)
            yield row


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the first row is a header: all its cells are names, or some are consecutive years above other numbers."""
    data = [at for at, cell in enumerate(first) if _is_data(cell)]
    if not data:
        return True
    below = [second[at] for at in data if at < len(second) and second[at]]
    is_numeric = any(map(NUMBER.match, below)) and all(map(NUMBER.match, below)) and not all(map(YEAR.match, below))
    return len(data) < sum(map(bool, first)) and is_numeric and are_consecutive_years([first[at] for at in data])


def are_consecutive_years(names: Sequence[str]) -> bool:
    """Whether several names of columns are years that are equally far apart, which a header may hold."""
    if not all(map(YEAR.match, names)):
        return False
    steps = {int(later) - int(earlier) for earlier, later in pairwise(names)}
    return len(steps) == 1 and not STEPS.isdisjoint(map(abs, steps))


def _is_data(cell: str) -> bool:
    """Whether a cell cannot be the name of a column."""
    is_geometry = GEOMETRY_TEXT.match(cell) and GEOMETRY_VALUE.match(cell)
    return bool(NUMBER.match(cell) or is_geometry)


def _is_row(cells: Sequence[str]) -> bool:
    return bool(cells) and cells != [LAST]


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    try:
        texts = (line.replace("\0", "").removesuffix(LAST) for line in lines)
        yield from filter(_is_row, csv.reader(texts, delimiter=delimiter))
    except csv.Error:
        sys.exit(Exit.DAMAGED)


def _take(columns: list[Column], row: Sequence[str], *, may_be_units: bool = False) -> None:
    if len(row) > len(columns) and any(row[len(columns) :]):
        _widen(columns, row)
    for column, cell in zip(columns, row, strict=False):
        if not cell:
            continue
        column.filled += 1
        before = column.kinds
        if Kind.TEXT not in column.kinds or column.may_be_coordinate:
            kind = kind_of_cell(cell)
            column.kinds |= kind
            column.rounded += loses_digits(cell, kind)
        else:
            column.kinds |= separators_in(cell)
        if column.kinds != before or column.others is not None:
            _set_aside(column, cell, before, may_be_unit=may_be_units)
        if Kind.MOMENT in column.kinds and FINER.match(cell):
            column.finer += 1
        column.returned += "\r" in cell
        if Kind.TEXT in column.kinds or column.may_be_coordinate:
            look_at_cell(column, cell)


def _set_aside(column: Column, cell: str, before: Kind, *, may_be_unit: bool) -> None:
    """Count a text beside which all others of the column, whose kinds were `before`, may be of another type."""
    if Kind.TEXT not in before and Kind.TEXT in column.kinds and (may_be_unit or stands_in(cell)):
        column.others, column.aside = before, 1
    elif column.others is not None and Kind.TEXT not in column.others:
        if stands_in(cell):
            column.aside += 1
        else:
            column.others |= kind_of_cell(cell)


def _widen(columns: list[Column], row: Sequence[str]) -> None:
    """Add columns for the cells of a row that is longer than all previous ones."""
    if len(row) > MAX_COLUMNS:
        sys.exit(Exit.TOO_MANY_COLUMNS)
    names = unique_names([*(column.name for column in columns), *[""] * (len(row) - len(columns))])
    columns.extend(Column(name) for name in names[len(columns) :])


def _write(file: TextIO, delimiter: str, layout: Layout, *, has_header: bool, is_odd: bool) -> str:
    """Write the normalized table and return its delimiter; what follows the header is copied unless it `is_odd`."""
    names, geometry = layout.names, layout.geometry
    written = delimiter if delimiter in UNDERSTOOD and len(names) > 1 else ","
    with Path(OURS).open("w", encoding="utf-8", newline="") as ours:
        if written != delimiter or len(names) == 1 or is_odd or geometry is not None:
            rows = islice(_rows(file, delimiter), int(has_header), None)
            write_rows(ours, written, names, rows if geometry is None else with_plain_geometries(rows, geometry))
            return written
        write_rows(ours, delimiter, names, ())
        if has_header:
            next(row for row in csv.reader(iter(file.readline, ""), delimiter=delimiter) if row)
        shutil.copyfileobj(file, ours, SAMPLE_CHARACTERS)
    return written
