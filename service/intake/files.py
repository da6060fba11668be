"""A received file on its way to disk."""

import hashlib
import os
from pathlib import Path

from service.intake.form import Upload
from service.intake.workspace import UNUSABLE, lack_of_room

FILE_NAME = "upload"
_MOST_PIECES = 512  # per writev; the kernel allows 1024


class IncomingFile:
    """Collects the bytes of a file until `ended`; only `write_out` accesses the disk, and it may run in a thread."""

    def __init__(self, directory: Path, untrusted_name: str, *, max_bytes: int, hashed: bool) -> None:
        self.ended = False
        self._path = directory / FILE_NAME
        self._untrusted_name = untrusted_name
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256() if hashed else None
        self._size_bytes = 0
        self._pending: list[bytes] = []
        self._descriptor: int | None = None

    @property
    def oversize(self) -> bool:
        """Whether the file exceeds the maximum size."""
        return self._size_bytes > self._max_bytes

    def add(self, data: bytes) -> None:
        """Add the next bytes; those of an oversize file are only counted."""
        self._size_bytes += len(data)
        if self.oversize:
            self._pending.clear()
        else:
            self._pending.append(data)

    def write_out(self) -> None:
        """Write and hash the pending bytes; close the file if it has ended, and delete it if it is oversize.

        Raises:
            Overloaded: the disk is full.
        """
        with lack_of_room(UNUSABLE):
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            _write_all(self._descriptor, self._pending)
        if self._hash:
            for piece in self._pending:
                self._hash.update(piece)
        self._pending.clear()
        if self.ended:
            self.close()
            if self.oversize:
                self._path.unlink()

    def close(self) -> None:
        """Close the file in any state."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def upload(self) -> Upload:
        """Return the record of the file, once it has ended and is written."""
        return Upload(
            untrusted_name=self._untrusted_name,
            path=self._path,
            size_bytes=self._size_bytes,
            digest=self._hash.digest() if self._hash and not self.oversize else None,
            oversize=self.oversize,
        )


def _write_all(descriptor: int, pieces: list[bytes]) -> None:
    for start in range(0, len(pieces), _MOST_PIECES):
        batch = pieces[start : start + _MOST_PIECES]
        written = os.writev(descriptor, batch)
        if written < sum(map(len, batch)):
            rest = b"".join(batch)[written:]
            while rest:
                rest = rest[os.write(descriptor, rest) :]
