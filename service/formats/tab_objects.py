"""Finds what the driver changes or leaves out of a binary MapInfo table.

These are curves, rows beyond those that it counts, and parts of the coordinate system. The .id says where the object of
each row is in the .map, where its first byte is its type.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from service.formats.mif_charset import AFFINE_UNREAD, CURVES_BECAME, ORIGIN_UNREAD
from service.formats.names import counted, shown
from service.formats.opened import opened
from service.formats.source import Part

CURVES = bytes([0x0A, 0x0B, 0x16, 0x17, 0x19, 0x1A])
"""Arcs, rounded rectangles and ellipses, each with short and with long coordinates."""
VERSION_AT, PROJECTION_AT, AFFINE_AT = 0x104, 0x16D, 0x200
"""Where the header of a .map has its version, the projection, and, since `HAS_AFFINE`, whether there is a change."""
HAS_AFFINE = 500
UNREAD_ORIGINS_AT: Mapping[int, int] = {26: 0x1A0, **dict.fromkeys((4, 5, 28, 29), 0x1A8)}
"""By projection, as in `mif_charset`: where the header has the origin that the driver does not read."""
ORIGIN = struct.Struct("<dd")
OFFSET_BYTES = 4
OFFSETS_AT_ONCE = 1 << 15
DAT_HEAD = struct.Struct("<4xIHH")
"""How many rows a .dat says that it has, where they begin, and how long each is."""
SURPLUS_ROWS = "The .dat of {layer} says that it has only {said}; what is beyond them was left out: {rows}."


def tab_warnings(part: Part) -> Iterator[str]:
    """What to tell of a table whose text is a .tab. Blocking."""
    dat, ids, objects = (part.files.get(extension) for extension in (".dat", ".id", ".map"))
    if dat is not None and (told := _surplus_warning(dat, part.layer)):
        yield told
    if objects is not None:
        yield from _system_warnings(objects)
    if ids is not None and objects is not None and (count := _curves(ids, objects)):
        yield CURVES_BECAME.format(count=count)


def _surplus_warning(dat: Path, layer: str) -> str:
    with opened(dat) as file:
        head, size = file.read(DAT_HEAD.size), os.fstat(file.fileno()).st_size
    if len(head) < DAT_HEAD.size:
        return ""  # the driver refuses it
    said, start, length = DAT_HEAD.unpack(head)
    surplus = (size - start) // length - said if length else 0
    if surplus <= 0:
        return ""
    return SURPLUS_ROWS.format(layer=repr(shown(layer)), said=counted(said, "row"), rows=counted(surplus, "row"))


def _system_warnings(objects: Path) -> Iterator[str]:
    """What the driver does not follow of the system that the header of a .map describes."""
    with opened(objects) as file:
        head = file.read(AFFINE_AT + 1)
    if len(head) <= AFFINE_AT:
        return
    if int.from_bytes(head[VERSION_AT : VERSION_AT + 2], "little") >= HAS_AFFINE and head[AFFINE_AT]:
        yield AFFINE_UNREAD.format(file=".map")
    if (start := UNREAD_ORIGINS_AT.get(head[PROJECTION_AT])) and any(origin := ORIGIN.unpack_from(head, start)):
        east, north = map("{:.10g}".format, origin)
        yield ORIGIN_UNREAD.format(file=".map", east=east, north=north)


def _curves(ids: Path, objects: Path) -> int:
    """How many rows have an object that is a curve."""
    size = objects.stat().st_size
    if not size:
        return 0
    with opened(ids) as index, opened(objects) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as types:
        count = 0
        for read in iter(partial(index.read, OFFSETS_AT_ONCE * OFFSET_BYTES), b""):
            whole = read[: len(read) // OFFSET_BYTES * OFFSET_BYTES]
            found = bytes(types[offset] for (offset,) in struct.iter_unpack("<I", whole) if 0 < offset < size)
            count += len(found) - len(found.translate(None, CURVES))
        return count
