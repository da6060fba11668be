"""Finds quotation marks within cells of separated values that drivers read in different ways."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Quotes:
    """What there is of quotation marks below the header of a table."""

    are_bare: bool = False
    """Whether cells hold some but do not begin with one.

    GDAL 3.6 takes them for the beginning of a text that may go on over several lines.
    """
    lost: int = 0
    """How many cells begin with a text in quotation marks and go on behind it: these marks are left out."""
    first_lost: int = 0
    """The row of the first of them, from 1."""


def quotes_in(file: TextIO, delimiter: str, *, has_header: bool) -> Quotes:
    """What there is of quotation marks in the table that begins here."""
    end = re.escape(delimiter)
    cell = rf'(?:"(?:[^"]|"")*+"?+)?+[^"\r\n{end}]*+'
    proper = re.compile(rf"[\r\n]*+{cell}(?:{end}{cell})*+[\r\n]*+")
    going_on = re.compile(rf'(?:"(?:[^"]|"")*+"([^\r\n{end}]*+)|[^\r\n{end}]*+)(?:{end}|[\r\n]++|\Z)')
    are_bare, lost, first_lost = False, 0, 0
    for number, text in enumerate(islice(_texts_of_rows(file, delimiter), int(has_header), None), 1):
        if '"' in text:
            are_bare = are_bare or not proper.fullmatch(text)
            found = sum(not behind.isspace() for behind in going_on.findall(text) if behind)
            lost += found
            first_lost = first_lost or number * bool(found)
    return Quotes(are_bare, lost, first_lost)


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
