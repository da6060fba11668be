"""Finds quotation marks within cells of separated values that drivers read in different ways."""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from typing import TextIO


def has_bare_quotes(file: TextIO, delimiter: str, *, has_header: bool) -> bool:
    """Whether cells below the header hold quotation marks but do not begin with one.

    GDAL 3.6 takes them for the beginning of a text that may go on over several lines.
    """
    cell = rf'(?:"(?:[^"]|"")*+"?+)?+[^"\r\n{re.escape(delimiter)}]*+'
    proper = re.compile(rf"[\r\n]*+{cell}(?:{re.escape(delimiter)}{cell})*+[\r\n]*+")
    texts = islice(_texts_of_rows(file, delimiter), int(has_header), None)
    return any('"' in text and not proper.fullmatch(text) for text in texts)


def _texts_of_rows(file: TextIO, delimiter: str) -> Iterator[str]:
    """The lines of each row, and of empty ones before it."""
    lines: list[str] = []

    def keep(line: str) -> str:
        lines.append(line)
        return line

    for row in csv.reader(map(keep, file), delimiter=delimiter):
        if row:
            yield "".join(lines)
            lines.clear()
