"""ZIP archives of every kind, including those that no program writes."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping

MIB = 1 << 20


def packed(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP archive with `members`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def packed_as(info: zipfile.ZipInfo, content: bytes) -> bytes:
    """Return a ZIP archive with one member that is described by `info`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, content)
    return buffer.getvalue()


def deflated(content: bytes) -> bytes:
    """Return content as members of an archive hold it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


class Entry:
    """One member written byte by byte, with arbitrary headers."""

    def __init__(
        self, name: bytes, data: bytes, *, method: int = 8, size: int = 0, crc: int = 0, flags: int = 0, mode: int = 0
    ) -> None:
        self.name = name
        self.data = data
        self.mode = mode
        self.fields = struct.pack("<HHHHHIIIHH", 20, flags, method, 0, 33, crc, len(data), size, len(name), 0)

    @property
    def local(self) -> bytes:
        """The member with its local header."""
        return b"PK\x03\x04" + self.fields + self.name + self.data

    def central(self, offset: int) -> bytes:
        """The entry in the central directory, for a member that begins at `offset`."""
        rest = struct.pack("<HHHII", 0, 0, 0, self.mode << 16, offset)
        return b"PK\x01\x02" + struct.pack("<H", 0x0314) + self.fields + rest + self.name


def assembled(entries: Iterable[Entry], *, overlapping: bool = False) -> bytes:
    """Return a ZIP archive of `entries`; if `overlapping`, all of them refer to the first one."""
    body, directory, count = b"", b"", 0
    for count, entry in enumerate(entries, start=1):  # noqa: B007 -- counted
        directory += entry.central(0 if overlapping else len(body))
        body += b"" if overlapping and body else entry.local
    end = struct.pack("<HHHHIIH", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def blanks(mebibytes: int, head: bytes = b"", tail: bytes = b"", filler: bytes = b" ") -> tuple[bytes, int, int]:
    """Deflate `head`, that many MiB of `filler`, and `tail`; return the bytes, and the content's size and checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(filler * (MIB // len(filler))) + packer.flush(zlib.Z_FULL_FLUSH)
    crc, plain = zlib.crc32(head), filler * (MIB // len(filler))
    for _ in range(mebibytes):
        crc = zlib.crc32(plain, crc)
    end = packer.compress(tail) + packer.flush()
    size = len(head) + mebibytes * len(plain) + len(tail)
    return start + block * mebibytes + end, size, zlib.crc32(tail, crc)


def bomb(name: str, mebibytes: int, head: bytes = b"", tail: bytes = b"") -> Entry:
    """A member that unpacks to that many MiB."""
    data, size, crc = blanks(mebibytes, head, tail)
    return Entry(name.encode(), data, size=size, crc=crc)
