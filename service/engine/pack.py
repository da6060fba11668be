"""Writing a ZIP fast: raw deflate by ISA-L, a tenth of zlib's time at the same size.

Members come one after the other without data descriptors, their sizes patched in afterwards, with a fixed time stamp:
the same files make the same bytes. Names are in UTF-8. Below 4 GiB, which the limits of a run keep it to.
"""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
from isal import isal_zlib

from service.engine.files import open_written
from service.errors import Rejection

LEVEL = 1
CHUNK = 1 << 20
LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
VERSION = 20
MADE_BY_UNIX = 3 << 8 | VERSION
UTF8 = 0x800
DEFLATE = 8
MIDNIGHT = 0
NEW_YEAR_1980 = 0x21
REGULAR_FILE = 0o100644 << 16
LIMIT_BYTES = 0xFFFFFFFF


class Entry(msgspec.Struct, frozen=True):
    """A file for the ZIP and its name in there."""

    path: Path
    name: str


class _Member(msgspec.Struct, frozen=True):
    name: bytes
    offset: int
    checksum: int
    packed_bytes: int
    bytes: int


def write_zip(target: Path, entries: Sequence[Entry]) -> int:
    """Pack `entries`, which converters wrote, into the new file `target`; returns its size in bytes. Blocking.

    Raises:
        Rejection: an entry is no ordinary file, or the result is too large.
    """
    with target.open("xb") as output:
        members = [_append(output, entry) for entry in entries]
        start = output.tell()
        for member in members:
            output.write(_central(member))
        size = output.tell() - start
        output.write(END.pack(b"PK\x05\x06", 0, 0, len(members), len(members), size, start, 0))
        return output.tell()


def _append(output: BinaryIO, entry: Entry) -> _Member:
    name, offset = entry.name.encode(), output.tell()
    output.seek(LOCAL.size + len(name), 1)
    checksum, size = _deflate(entry.path, output)
    end = output.tell()
    if max(end, size) > LIMIT_BYTES:
        raise Rejection("The result is larger than 4 GiB. Split the file.")
    member = _Member(name, offset, checksum, end - offset - LOCAL.size - len(name), size)
    output.seek(offset)
    output.write(_local(member))
    output.seek(end)
    return member


def _deflate(path: Path, output: BinaryIO) -> tuple[int, int]:
    """Append the packed content of `path`; returns its checksum and unpacked size."""
    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, -15)
    checksum = size = 0
    with open_written(path) as file:
        while chunk := file.read(CHUNK):
            checksum, size = zlib.crc32(chunk, checksum), size + len(chunk)
            output.write(packer.compress(chunk))
    output.write(packer.flush())
    return checksum, size


def _local(member: _Member) -> bytes:
    sizes = (member.checksum, member.packed_bytes, member.bytes)
    fields = LOCAL.pack(b"PK\x03\x04", VERSION, UTF8, DEFLATE, MIDNIGHT, NEW_YEAR_1980, *sizes, len(member.name), 0)
    return fields + member.name


def _central(member: _Member) -> bytes:
    sizes = (member.checksum, member.packed_bytes, member.bytes)
    fields = CENTRAL.pack(
        b"PK\x01\x02",
        MADE_BY_UNIX,
        VERSION,
        UTF8,
        DEFLATE,
        MIDNIGHT,
        NEW_YEAR_1980,
        *sizes,
        len(member.name),
        0,
        0,
        0,
        0,
        REGULAR_FILE,
        member.offset,
    )
    return fields + member.name
