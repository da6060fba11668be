"""A CSV of any kind made into one of ours. Runs in the jail: `python -m …delimited CSV TABLES_FILE`.

Encoding, delimiter, header, types and geometry columns are found by looking at the whole file. What comes out is UTF-8
with a clean header; where only the header differs the rest is copied as it is. The standard library only.
"""

import csv
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

from service.engine.jailed.exits import Exit
from service.engine.jailed.places import (
    GEOMETRY_TEXT,
    NUMBER,
    WKT_VALUE,
    Column,
    Table,
    find_places,
    is_candidate,
    kind_of,
    unique_names,
    widened,
    write_rows,
    write_tables,
    write_types,
)

OURS = "t0.csv"
DELIMITERS = ",;\t|"
UNDERSTOOD = ",;\t"
"""What GDAL tells from a header line by itself."""
SAMPLE_ROWS = 30
SAMPLE_CHARACTERS = 1 << 20
MAX_COLUMNS = 2000


def main(csv_file: str, tables_file: str) -> None:
    """Write `csv_file` as a table of ours, and what it is to `tables_file`."""
    csv.field_size_limit(Path(csv_file).stat().st_size + 1)
    encoding = _encoding(csv_file)
    with Path(csv_file).open(encoding=encoding, errors="replace", newline="") as file:
        delimiter = _delimiter(file)
        columns, has_header = _look(file, delimiter)
        places = find_places(columns)
        names = [places.get(at, column.name) for at, column in enumerate(columns)]
        file.seek(0)
        _write(file, delimiter, names, has_header=has_header)
    write_types(Path(OURS).with_suffix(".csvt"), columns, places)
    write_tables(tables_file, [Table(OURS, "", kind_of(places))])


def _encoding(path: str) -> str:
    with Path(path).open("rb") as file:
        start = file.read(4)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        with Path(path).open(encoding="utf-8-sig") as text:
            while text.read(SAMPLE_CHARACTERS):
                pass
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _delimiter(file: TextIO) -> str:
    """The delimiter under which the first rows have the most columns, and all the same number."""
    lines = file.read(SAMPLE_CHARACTERS).splitlines(keepends=True)[: SAMPLE_ROWS * 4]
    file.seek(0)

    def score(delimiter: str) -> tuple[bool, int]:
        widths = [len(row) for row in islice(csv.reader(lines, delimiter=delimiter), SAMPLE_ROWS) if row]
        return (len(set(widths)) == 1 and widths[0] > 1, widths[0]) if widths else (False, 0)

    return max(DELIMITERS, key=score)


def _look(file: TextIO, delimiter: str) -> tuple[list[Column], bool]:
    """The columns with their types, and whether the first row names them."""
    rows = _rows(file, delimiter)
    first = next(rows, None)
    if first is None:
        sys.exit(Exit.NOT_A_TABLE)
    if len(first) > MAX_COLUMNS:
        sys.exit(Exit.TOO_MANY_COLUMNS)
    has_header = not any(map(_is_data, first))
    names = unique_names(first if has_header else [""] * len(first))
    columns = [Column(name, type="") for name in names]
    if not has_header:
        _take(columns, first)
    for row in rows:
        _take(columns, row)
    for column in columns:
        column.type = column.type or "String"
    return columns, has_header


def _is_data(cell: str) -> bool:
    """Whether a cell is no name of a column."""
    is_wkt = GEOMETRY_TEXT.match(cell) and WKT_VALUE.match(cell)
    return bool(NUMBER.match(cell) or is_wkt)


def _rows(file: TextIO, delimiter: str) -> Iterator[list[str]]:
    try:
        yield from (row for row in csv.reader(file, delimiter=delimiter) if row)
    except csv.Error:
        sys.exit(Exit.DAMAGED)


def _take(columns: Sequence[Column], row: Sequence[str]) -> None:
    for column, cell in zip(columns, row, strict=False):
        if not cell:
            continue
        column.filled += 1
        if column.type != "String":
            column.type = widened(column.type, cell)
        if column.type == "String":
            column.geometries += GEOMETRY_TEXT.match(cell) is not None
        if is_candidate(column.name):
            column.numbers += NUMBER.match(cell) is not None


def _write(file: TextIO, delimiter: str, names: Sequence[str], *, has_header: bool) -> None:
    raw = delimiter in UNDERSTOOD and len(names) > 1
    with Path(OURS).open("w", encoding="utf-8", newline="") as ours:
        if not raw:
            write_rows(ours, ",", names, islice(_rows(file, delimiter), int(has_header), None))
            return
        write_rows(ours, delimiter, names, ())
        if has_header:
            next(csv.reader(iter(file.readline, ""), delimiter=delimiter))
        shutil.copyfileobj(file, ours, SAMPLE_CHARACTERS)


if __name__ == "__main__":
    main(*sys.argv[1:3])
