"""One received file on its way to disk."""

import hashlib
import os
from pathlib import Path

from service.intake.form import Upload
from service.intake.workspace import lack_of_room

FILE_NAME = "upload"


class IncomingFile:
    """Collects a file's bytes until it is `ended`; `write_out`, which alone touches the disk, may run in a thread.

    The bytes are copied into one buffer that is used again and again. To keep the chunks themselves until they are
    written costs more: a mebibyte of them comes from the system and goes back to it each time, a page fault per page.
    """

    def __init__(self, directory: Path, untrusted_name: str, *, max_bytes: int, hashed: bool) -> None:
        self.ended = False
        self._path = directory / FILE_NAME
        self._untrusted_name = untrusted_name
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256() if hashed else None
        self._size_bytes = 0
        self._buffer = bytearray()
        self._filled = 0
        self._descriptor: int | None = None

    @property
    def oversize(self) -> bool:
        """Whether more came than is kept."""
        return self._size_bytes > self._max_bytes

    def add(self, data: bytes) -> None:
        """Take the next bytes; those of an oversize file are counted and let go."""
        self._size_bytes += len(data)
        if self.oversize:
            self._filled = 0
        else:
            end = self._filled + len(data)
            self._buffer[self._filled : end] = data
            self._filled = end

    def write_out(self) -> None:
        """Write and hash what is pending; close the file when it has ended, and remove it when it is oversize.

        Raises:
            Overloaded: the disk is full.
        """
        with lack_of_room():
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with memoryview(self._buffer)[: self._filled] as pending:
                _write_all(self._descriptor, pending)
                if self._hash:
                    self._hash.update(pending)
        self._filled = 0
        if self.ended:
            self.close()
            if self.oversize:
                self._path.unlink()

    def close(self) -> None:
        """Close the file, in whatever state it is, and let its buffer go."""
        self._buffer = bytearray()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def upload(self) -> Upload:
        """The record of the file, once it has ended and is written out."""
        return Upload(
            untrusted_name=self._untrusted_name,
            path=self._path,
            size_bytes=self._size_bytes,
            digest=self._hash.digest() if self._hash and not self.oversize else None,
            oversize=self.oversize,
        )


def _write_all(descriptor: int, data: memoryview) -> None:
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])
