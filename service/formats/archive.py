"""Reads untrusted ZIP files: lists their members and unpacks some of them, within bounds.

Headers are only hints. Names are shown and compared, never used as paths; sizes are counted while unpacking. The size
of the central directory is capped because the reader's file object refuses to read more at once.
"""

import errno
import stat
import struct
import unicodedata
import zipfile
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from service.errors import Rejection
from service.formats.bounds import Bounds, TooMuch, Unpacked
from service.formats.names import shown
from service.formats.opened import opened
from service.formats.other_kinds import no_archive
from service.formats.xml_root import HEAD_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ENCRYPTED = 0x1
UTF8_NAME = 0x800
CHUNK, PIECE = 256 * 1024, 64 * 1024
NESTED = frozenset({".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".z", ".lzma", ".jar", ".iso"})
METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})
"""Not LZMA: the archive says how much memory unpacking it takes, up to 4 GiB."""
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    OverflowError,
    ValueError,
    RuntimeError,
)


class Member(msgspec.Struct, frozen=True):
    """A file in the ZIP. `path` is its untrusted name in full, with `/` between the parts."""

    path: str
    info: zipfile.ZipInfo
    parts: tuple[str, ...]
    """The names of its folders, and its own."""
    extension: str
    """The extension in lower case."""

    @property
    def base(self) -> str:
        """The name without folders."""
        return self.parts[-1]

    @property
    def stem(self) -> str:
        """The full path without its extension, in lower case: what the parts of one shapefile share."""
        return self.path[: len(self.path) - len(self.extension)].casefold()

    @property
    def is_clutter(self) -> bool:
        """Whether an operating system left it: resource forks, dot files."""
        return any(part.startswith(".") or part == "__MACOSX" for part in self.parts)


class Archive:
    """An opened ZIP whose members have been looked at and found harmless."""

    def __init__(self, zip_file: zipfile.ZipFile, size_bytes: int, bounds: Bounds) -> None:
        self._zip = zip_file
        self._unpacked = Unpacked("ZIP", size_bytes, bounds)
        self.members = tuple(_checked(zip_file, bounds))

    def unpack(self, member: Member, target: Path) -> None:
        """Write the content of `member` to the new file `target`.

        Raises:
            Rejection: it is damaged, or the ZIP unpacks to more than the bounds allow.
        """
        try:
            with self._content(member) as content:
                self._unpacked.write(iter(partial(content.read, CHUNK), b""), target)
        except FileExistsError:
            raise
        except BROKEN as error:
            _raise_if_disk(error)
            raise Rejection(f"{shown(member.path)!r} in the ZIP is damaged. Create the ZIP again.") from None

    def head(self, member: Member, size: int) -> bytes:
        """The first `size` bytes of the content of `member`; raises the same."""
        return b"".join(self.pieces(member, size))

    def pieces(self, member: Member, size: int) -> Iterator[bytes]:
        """The same, one piece after another.

        Raises:
            Rejection: as `unpack`.
        """
        try:
            with self._content(member) as content:
                while piece := content.read(min(size, PIECE)):
                    self._unpacked.count(len(piece))
                    yield piece
                    size -= len(piece)
        except BROKEN as error:
            _raise_if_disk(error)
            raise Rejection(f"{shown(member.path)!r} in the ZIP is damaged. Create the ZIP again.") from None

    def _content(self, member: Member) -> IO[bytes]:
        """The content of `member`, of which no more than is read is in memory."""
        info = member.info
        if info.compress_type == zipfile.ZIP_BZIP2:
            member = Member(member.path, _as_it_lies(info), member.parts, member.extension)
        content = self._zip.open(member.info)
        return content if member.info is info else BufferedReader(_Bunzipped(content, info), CHUNK)


def _as_it_lies(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """What describes the packed bytes of a member as if they were its content, with no checksum."""
    packed = copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC
    return packed


class _Bunzipped(RawIOBase):
    """Unpacks bzip2 in pieces; `zipfile` unpacks all of what it reads at once, so that 800 bytes become a gibibyte."""

    def __init__(self, packed: IO[bytes], info: zipfile.ZipInfo) -> None:
        self._packed = packed
        self._info = info
        self._unpacker = BZ2Decompressor()
        self._crc = 0
        self._left = info.file_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a part of the buffer; 0 at the end.

        Raises:
            EOFError: the member is cut off.
            BadZipFile: it is not what its header says.
        """
        room = memoryview(buffer)
        piece = b""
        while not piece and not self._unpacker.eof:
            fed = self._packed.read(CHUNK) if self._unpacker.needs_input else b""
            if self._unpacker.needs_input and not fed:
                raise EOFError
            piece = self._unpacker.decompress(fed, len(room))
        room[: len(piece)] = piece
        self._crc = zlib.crc32(piece, self._crc)
        self._left -= len(piece)
        if self._left < 0 or (not piece and self._crc != self._info.CRC):
            raise zipfile.BadZipFile
        return len(piece)

    def close(self) -> None:
        self._packed.close()
        super().close()


@contextmanager
def open_archive(path: Path, bounds: Bounds) -> Iterator[Archive]:
    """Open the ZIP at `path`.

    Raises:
        TooMuch: it has too many members, or too large a table of contents.
        Rejection: it is no ZIP, or holds what no upload may hold: encrypted members, links, names that leave the ZIP,
            archives.
    """
    with opened(path) as file:
        try:
            capped = _Capped(file, bounds.contents_bytes)
            zip_file = zipfile.ZipFile(capped)
        except BROKEN as error:
            _raise_if_disk(error)
            file.seek(0)
            raise no_archive(file.read(HEAD_BYTES)) from None
        capped.most_bytes = CHUNK
        with zip_file:
            yield Archive(zip_file, path.stat().st_size, bounds)


class _Capped:
    """A file of which never more than `most_bytes` are read at once."""

    def __init__(self, file: BufferedReader, most_bytes: int) -> None:
        self._file = file
        self.most_bytes = most_bytes
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable
        self.close = file.close

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(self.most_bytes + 1 if size < 0 else min(size, self.most_bytes + 1))
        if len(content) > self.most_bytes:
            raise TooMuch("The ZIP's table of contents is too large. Put fewer files into it.")
        return content


def _raise_if_disk(error: BaseException) -> None:
    if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:  # EINVAL: a place before the start
        raise error


def _checked(zip_file: zipfile.ZipFile, bounds: Bounds) -> Iterator[Member]:
    infos = zip_file.infolist()
    if len(infos) > bounds.members:
        told = f"The ZIP holds {len(infos)} entries; at most {bounds.members} are read."
        raise TooMuch(f"{told} Put fewer files into it.")
    for info in infos:
        member = _member(info)
        _refuse_dangerous(member)
        if not info.is_dir() and not member.is_clutter:
            _refuse_unreadable(member)
            if bounds.in_steps and info.compress_type == zipfile.ZIP_BZIP2:
                raise TooMuch("A file in the ZIP is compressed with bzip2. Create the ZIP with Deflate compression.")
            yield member


def _member(info: zipfile.ZipInfo) -> Member:
    """A member; its path is taken apart without `PurePosixPath`, of which each takes longer than all of this."""
    path = _decoded(info)
    parts = tuple(part for part in path.split("/") if part not in {"", "."}) or ("",)
    stem, _, end = parts[-1].rpartition(".")
    return Member(path=path, info=info, parts=parts, extension=f".{end}".casefold() if stem and end else "")


def _decoded(info: zipfile.ZipInfo) -> str:
    """The name with `/` between its parts; names without the UTF-8 flag are often UTF-8 all the same."""
    name = info.orig_filename
    if not info.flag_bits & UTF8_NAME:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.orig_filename
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def _refuse_dangerous(member: Member) -> None:
    kind = stat.S_IFMT(member.info.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise Rejection(
            f"{shown(member.path)!r} in the ZIP is a link or a special file. Put only ordinary files into it."
        )
    leaves = member.path.startswith("/") or ".." in member.parts or member.path[1:2] == ":"
    if leaves or not member.path or not member.path.isprintable():
        raise Rejection(f"{shown(member.path)!r} is not a valid path inside a ZIP. Create the ZIP again.")


def _refuse_unreadable(member: Member) -> None:
    if member.info.flag_bits & ENCRYPTED:
        raise Rejection(f"{shown(member.path)!r} in the ZIP is encrypted. Send it without a password.")
    if member.extension in NESTED:
        raise Rejection(f"{shown(member.path)!r} in the ZIP is itself an archive. Put its files into the ZIP directly.")
    if member.info.compress_type not in METHODS:
        raise Rejection(
            f"{shown(member.path)!r} in the ZIP is compressed with an unsupported method. Create the ZIP with Deflate "
            "compression."
        )
