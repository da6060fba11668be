"""Judges the index (.shx) of a shapefile, which says where the shape of each record is in the .shp."""

import mmap
import struct
from pathlib import Path

HEADER_BYTES = 100
CODE = (9994).to_bytes(4, "big")
ENTRY = struct.Struct(">I4s")
"""Where a shape begins, in words, and how many words its content has; a .shp has the latter before the content."""
WORD_BYTES = 2
NUMBER_BYTES = 4
SHAPE_HEAD = 2 * NUMBER_BYTES


def is_whole(shx: Path, shp: Path) -> bool:
    """Whether each entry of `shx` leads to a shape of `shp` that is complete and as long as it says. Blocking."""
    index = shx.read_bytes()
    if not index.startswith(CODE) or len(index) < HEADER_BYTES or (len(index) - HEADER_BYTES) % ENTRY.size:
        return False
    if not shp.stat().st_size:
        return False
    with shp.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as shapes:
        return all(
            shapes[(at := start * WORD_BYTES) + NUMBER_BYTES : at + SHAPE_HEAD] == words
            and at + SHAPE_HEAD + int.from_bytes(words, "big") * WORD_BYTES <= len(shapes)
            for start, words in ENTRY.iter_unpack(memoryview(index)[HEADER_BYTES:])
        )
