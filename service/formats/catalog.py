"""What the catalog of a File Geodatabase lists: a row for each table, whose number is in the names of its files.

The driver passes over a table without files silently. Everything read is bounded, and a catalog that cannot be
understood lists nothing: the driver judges it.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from service.formats.opened import opened

CATALOG = 1
"""The number of the catalog's own table."""
OWN_TABLES = b"GDB_"
"""What is in the names of tables that hold no features; some of them are often missing."""
HEAD = struct.Struct("<4I")
"""Version, blocks of rows, rows, and bytes of an offset."""
VERSION = 3
BLOCK = 1024
OFFSET_BYTES = range(4, 7)
MOST_ROWS = 100_000
MOST_BYTES = 4096
"""The longest row that is read; a row is little more than a name."""


def table_file(number: int, extension: str) -> str:
    """The name of a file of the table with this number."""
    return f"a{number:08x}{extension}"


def tables_in(folder: Path, index: str, data: str) -> Iterator[tuple[str, str]]:
    """The tables with features that the catalog in `folder` lists: the file with the extension `data`, and the name."""
    files = {file.name.lower(): file for file in folder.iterdir()}
    try:
        yield from _rows(files, index, data)
    except (LookupError, struct.error, OSError, UnicodeError):
        return


def _rows(files: Mapping[str, Path], index: str, data: str) -> Iterator[tuple[str, str]]:
    with opened(files[table_file(CATALOG, index)]) as offsets, opened(files[table_file(CATALOG, data)]) as rows:
        version, blocks, count, width = HEAD.unpack(offsets.read(HEAD.size))
        if version != VERSION or count > min(blocks * BLOCK, MOST_ROWS) or width not in OFFSET_BYTES:
            return
        for number in range(1, count + 1):
            if place := int.from_bytes(offsets.read(width), "little"):  # 0: the row was deleted
                rows.seek(place)
                (size,) = struct.unpack("<I", rows.read(4))
                row = rows.read(min(size, MOST_BYTES))
                if OWN_TABLES not in row:
                    yield table_file(number, data), _name(row)


def _name(row: bytes) -> str:
    """The first value of a row: a text, after the number of its bytes in one byte or, from 128 on, in two."""
    is_long = row[:1] >= b"\x80"
    size = row[0] & 0x7F | row[1] << 7 if is_long else row[0]
    return row[1 + is_long :][:size].decode()
