"""Judges the index (.shx) of a shapefile, which says where the shape of each record is in the .shp."""

import mmap
import struct
from functools import partial
from pathlib import Path
from typing import BinaryIO

from service.formats.opened import opened

HEADER_BYTES = 100
CODE = (9994).to_bytes(4, "big")
LENGTH_AT = slice(24, 28)
"""How many words the file has; the driver reads no entries beyond them."""
ENTRY = struct.Struct(">I4s")
"""Where a shape begins, in words, and how many words its content has; a .shp has the latter before the content."""
WORD_BYTES = 2
NUMBER_BYTES = 4
SHAPE_HEAD = 2 * NUMBER_BYTES
FIRST_SHAPE = HEADER_BYTES // WORD_BYTES
ENTRIES_AT_ONCE = 1 << 15


def is_whole(shx: Path, shp: Path) -> bool:
    """Whether `shx` is as long as it says, and each entry leads to a whole shape of `shp` of its length. Blocking."""
    size = shx.stat().st_size
    with opened(shx) as index:
        header = index.read(HEADER_BYTES)
        length = int.from_bytes(header[LENGTH_AT], "big") * WORD_BYTES
        if len(header) < HEADER_BYTES or not header.startswith(CODE):
            return False
        if length != size or (size - HEADER_BYTES) % ENTRY.size:
            return False
        return _leads_to_shapes(index, shp)


def _leads_to_shapes(index: BinaryIO, shp: Path) -> bool:
    if not shp.stat().st_size:
        return False
    with opened(shp) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as shapes:
        return all(
            start >= FIRST_SHAPE
            and shapes[(at := start * WORD_BYTES) + NUMBER_BYTES : at + SHAPE_HEAD] == words
            and at + SHAPE_HEAD + int.from_bytes(words, "big") * WORD_BYTES <= len(shapes)
            for entries in iter(partial(index.read, ENTRIES_AT_ONCE * ENTRY.size), b"")
            for start, words in ENTRY.iter_unpack(entries)
        )
