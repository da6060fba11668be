"""Swaps the parallels of conic systems of MapInfo. Runs in the sandbox.

MapInfo has the lower one first. Before GDAL 3.7.1, the driver exchanges those of the states of the USA, as EPSG has
them. It takes an origin in feet for one in meters then, and a system in meters for EPSG's in feet. In the other order,
the system is the same, and the driver leaves it alone.
"""

import re
import shutil
import struct
from contextlib import suppress
from pathlib import Path

HEAD_BYTES = 4096
_NUMBER = rb"[-+.\deE]++"
TEXT = re.compile(
    rb"^[ \t]*+coordsys\s++earth\s++projection\s++3\s*+,\s*+\d++\s*+,\s*+\"[^\"\r\n]{1,20}\"\s*+,"
    rb"(?:\s*+%b\s*+,){2}\s*+(?P<one>%b)(?P<between>\s*+,\s*+)(?P<other>%b)\s*+," % (_NUMBER, _NUMBER, _NUMBER),
    re.IGNORECASE | re.MULTILINE,
)
"""A conic system of a .mif."""
MAGIC, CONIC = struct.pack("<I", 42_424_242), 3
MAGIC_AT, PROJECTION_AT, ORIGIN_AT, PARALLELS_AT = 0x100, 0x16D, 0x190, 0x1A0
ORIGIN = PARALLELS = struct.Struct("<dd")
"""Where the header of a .map says what it is, and how it describes such a system."""

SOUTH_OF_KANSAS = (37.266667, 38.566667)
"""The only ones that the driver exchanges if the greater one is first."""
SAME = 1e-5
EAST_OF_AMERICA = -50


def swapped(head: bytes) -> bytes:
    """The beginning of a .mif or a .map with the parallels as the driver leaves them."""
    if head[MAGIC_AT:].startswith(MAGIC):
        start, end = PARALLELS_AT, PARALLELS_AT + PARALLELS.size
        if len(head) < end or head[PROJECTION_AT] != CONIC:
            return head
        one, other = PARALLELS.unpack_from(head, start)
        return head[:start] + PARALLELS.pack(other, one) + head[end:] if _are_exchanged(one, other) else head
    found = TEXT.search(head)
    with suppress(ValueError):
        if found and _are_exchanged(float(found["one"]), float(found["other"])):
            swap = found["other"] + found["between"] + found["one"]
            return head[: found.start("one")] + swap + head[found.end("other") :]
    return head


def _are_exchanged(one: float, other: float) -> bool:
    known = zip(sorted((one, other)), SOUTH_OF_KANSAS, strict=True)
    return (abs(one) < abs(other)) is not all(abs(own - same) < SAME for own, same in known)


def swapped_in_america(head: bytes) -> bytes:
    """The beginning of a .map with the parallels as all drivers leave them, if its system may be that of a state.

    Drivers since 3.7.1, too, call a system of a state in meters by the code of the one in feet, by which programs go.
    """
    if len(head) < PARALLELS_AT + PARALLELS.size or not head[MAGIC_AT:].startswith(MAGIC):
        return head
    longitude, latitude = ORIGIN.unpack_from(head, ORIGIN_AT)
    return swapped(head) if longitude < EAST_OF_AMERICA and latitude > 0 else head


def main(file: str, copy: str) -> None:
    """Write `file` to `copy` with the parallels of its system as the driver leaves them."""
    with Path(file).open("rb") as read, Path(copy).open("xb") as written:
        written.write(swapped(read.read(HEAD_BYTES)))
        shutil.copyfileobj(read, written)
