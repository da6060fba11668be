"""Finds what a user wrote into the header of a FlatGeobuf, and what it declares, which its driver does not pass on."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from service.formats.facts import MAX_COLUMNS
from service.formats.opened import opened

MAGIC = b"fgb"
MAGIC_BYTES, SIZE_BYTES = 8, 4
MOST_BYTES = 1 << 20
TEXTS = {11: "title", 12: "description", 13: "metadata"}
"""The texts in the header that users write, by their number in its table."""
COLUMNS = 7
TITLES = (2, 3)
"""The title and the description of a column, by their numbers in its table."""
NOT_NULL, UNIQUE = 7, 8
NUMBER, SIGNED, SHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


class Said(NamedTuple):
    """What a header says: the names of its texts, how many columns have a title, and rules for their values."""

    texts: tuple[str, ...] = ()
    titles: int = 0
    rules: int = 0


def said_in_header(path: Path) -> Said:
    """What the header of the FlatGeobuf at `path` says; nothing if it is damaged. Blocking."""
    with opened(path) as file:
        start = file.read(MAGIC_BYTES + SIZE_BYTES)
        header = file.read(min(int.from_bytes(start[MAGIC_BYTES:], "little"), MOST_BYTES))
    if not start.startswith(MAGIC):
        return Said()
    try:
        (table,) = NUMBER.unpack_from(header)
        columns = list(_columns(header, table))
        return Said(
            tuple(name for field, name in TEXTS.items() if _has_text(header, table, field)),
            sum(any(_has_text(header, column, field) for field in TITLES) for column in columns),
            sum(_flag(header, column, NOT_NULL, 1) == 0 for column in columns)
            + sum(_flag(header, column, UNIQUE, 0) for column in columns),
        )
    except (struct.error, IndexError):
        return Said()


def _columns(header: bytes, table: int) -> Iterator[int]:
    """Where the tables of the columns are, of as many as are read; each place of the list is the way from there."""
    if at := _place(header, table, COLUMNS):
        start = at + NUMBER.unpack_from(header, at)[0]
        count = min(NUMBER.unpack_from(header, start)[0], MAX_COLUMNS)
        for place in range(start + NUMBER.size, start + NUMBER.size * (1 + count), NUMBER.size):
            yield place + NUMBER.unpack_from(header, place)[0]


def _place(header: bytes, table: int, field: int) -> int:
    """Where a field of a table is; 0 if the table lacks it.

    The table begins with the way back to the list of where its fields are, 0 for those that it lacks.
    """
    fields = table - SIGNED.unpack_from(header, table)[0]
    place = SHORT.size * (2 + field)
    if fields < 0 or place >= SHORT.unpack_from(header, fields)[0]:
        return 0
    (within,) = SHORT.unpack_from(header, fields + place)
    return table + within if within else 0


def _has_text(header: bytes, table: int, field: int) -> bool:
    """Whether a field of a table is a text that is not empty."""
    at = _place(header, table, field)
    return bool(at) and bool(NUMBER.unpack_from(header, at + NUMBER.unpack_from(header, at)[0])[0])


def _flag(header: bytes, table: int, field: int, default: int) -> int:
    at = _place(header, table, field)
    return header[at] if at else default
