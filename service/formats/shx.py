"""Judges the index (.shx) of a shapefile, which says where the shape of each record is in the .shp."""

import mmap
import struct
from array import array
from functools import partial
from pathlib import Path
from sys import byteorder
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
NO_SHAPE = bytes(NUMBER_BYTES)
SHORTEST_BYTES = SHAPE_HEAD
"""Less than a null shape has, so that no two shapes begin within so many."""
ENTRIES_AT_ONCE = 1 << 15


def is_whole(shx: Path, shp: Path, nulls: int = 0) -> bool:
    """Whether `shx` is as long as it says, and each entry leads to a whole shape of `shp` of its length. Blocking.

    All but `nulls` empty ones, which stand for null shapes. No two that are looked at one by one lead to the same.
    """
    size = shx.stat().st_size
    with opened(shx) as index:
        header = index.read(HEADER_BYTES)
        length = int.from_bytes(header[LENGTH_AT], "big") * WORD_BYTES
        if len(header) < HEADER_BYTES or not header.startswith(CODE):
            return False
        if length != size or (size - HEADER_BYTES) % ENTRY.size:
            return False
        return _leads_to_shapes(index, shp, nulls)


def _leads_to_shapes(index: BinaryIO, shp: Path, nulls: int) -> bool:
    if not shp.stat().st_size:
        return False
    with opened(shp) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as shapes:
        taken = bytearray(len(shapes) // SHORTEST_BYTES + 1)
        for entries in iter(partial(index.read, ENTRIES_AT_ONCE * ENTRY.size), b""):
            if _are_even(entries, shapes):
                continue
            for start, words in ENTRY.iter_unpack(entries):
                if not start and words == NO_SHAPE:
                    nulls -= 1
                elif not _leads_to_shape(start, words, shapes, taken):
                    return False
    return nulls == 0


def _leads_to_shape(start: int, words: bytes, shapes: mmap.mmap, taken: bytearray) -> bool:
    """Whether an entry leads to a shape that is not `taken`, which it is then."""
    at = start * WORD_BYTES
    is_its_length = shapes[at + NUMBER_BYTES : at + SHAPE_HEAD] == words
    ends_at = at + SHAPE_HEAD + int.from_bytes(words, "big") * WORD_BYTES
    if start < FIRST_SHAPE or not is_its_length or ends_at > len(shapes) or taken[at // SHORTEST_BYTES]:
        return False
    taken[at // SHORTEST_BYTES] = True
    return True


def _are_even(entries: bytes, shapes: mmap.mmap) -> bool:
    """Whether they lead to shapes of one length, such as points, one behind the other: all are compared at once."""
    start, words = ENTRY.unpack_from(entries)
    count, step = len(entries) // ENTRY.size, SHAPE_HEAD // WORD_BYTES + int.from_bytes(words, "big")
    first, last = start * WORD_BYTES + NUMBER_BYTES, (start + count * step) * WORD_BYTES
    if start < FIRST_SHAPE or last > len(shapes):
        return False
    starts, numbers = array("I", range(start, start + count * step, step)), array("I", entries)
    if byteorder == "little":
        starts.byteswap()
    are_in_order = numbers[::2] == starts and numbers[1::2].tobytes() == count * words
    lengths = (shapes[first + place : last : step * WORD_BYTES] for place in range(NUMBER_BYTES))
    return are_in_order and all(found == count * bytes([byte]) for found, byte in zip(lengths, words, strict=True))
