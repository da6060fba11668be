"""Finds what a user wrote into the header of a FlatGeobuf, which its driver does not pass on."""

import struct
from pathlib import Path

from service.formats.opened import opened

MAGIC = b"fgb"
MAGIC_BYTES, SIZE_BYTES = 8, 4
MOST_BYTES = 1 << 20
TEXTS = {11: "title", 12: "description", 13: "metadata"}
"""The texts in the header that users write, by their number in its table."""
NUMBER, SIGNED, SHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


def said_in_header(path: Path) -> list[str]:
    """The names of the texts that the header of the FlatGeobuf at `path` holds; none if it is damaged. Blocking."""
    with opened(path) as file:
        start = file.read(MAGIC_BYTES + SIZE_BYTES)
        header = file.read(min(int.from_bytes(start[MAGIC_BYTES:], "little"), MOST_BYTES))
    try:
        return [name for field, name in TEXTS.items() if start.startswith(MAGIC) and _has_text(header, field)]
    except struct.error:
        return []


def _has_text(header: bytes, field: int) -> bool:
    """Whether a field of the table with which the header begins is a text that is not empty.

    The table begins with the way back to the list of where its fields are, 0 for those that it lacks.
    """
    (table,) = NUMBER.unpack_from(header)
    fields = table - SIGNED.unpack_from(header, table)[0]
    place = SHORT.size * (2 + field)
    if fields < 0 or place >= SHORT.unpack_from(header, fields)[0]:
        return False
    (within,) = SHORT.unpack_from(header, fields + place)
    if not within:
        return False
    (distance,) = NUMBER.unpack_from(header, table + within)
    (length,) = NUMBER.unpack_from(header, table + within + distance)
    return bool(length)
