"""Files that an untrusted process wrote: opened without following links, and only when they are ordinary files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from service.errors import Rejection

TAIL_BYTES = 256
LITTLE_FILES = 64
LITTLE_BYTES = 1 << 20


@contextmanager
def open_written(path: Path, buffering: int = -1) -> Iterator[BinaryIO]:
    """Open the file at `path`, which a converter wrote, for reading; `buffering` as `open` has it.

    Raises:
        Rejection: it is not there or is no ordinary file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise Rejection("The conversion gave no result: the file holds nothing that could be written.") from None
    with os.fdopen(descriptor, "rb", buffering) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Rejection("The conversion gave no usable result.")
        yield file


def holds_little(path: Path) -> bool:
    """Whether what a converter wrote at `path`, a file or a folder, is read or removed in next to no time."""
    files, size_bytes = 0, 0
    try:
        for status in _below(path):
            files, size_bytes = files + 1, size_bytes + status.st_size
            if files > LITTLE_FILES or size_bytes > LITTLE_BYTES:
                return False
    except OSError:  # nested so deeply that the path is too long
        return False
    return True


def _below(path: Path) -> Iterator[os.stat_result]:
    pending = [str(path)]
    while pending:
        with suppress(FileNotFoundError):
            name = pending.pop()
            status = os.lstat(name)
            yield status
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(name) as entries:
                    pending.extend(entry.path for entry in islice(entries, LITTLE_FILES))


def read_written(path: Path, limit_bytes: int) -> bytes:
    """The content of the file at `path`, which a converter wrote.

    Raises:
        Rejection: it is no ordinary file, or larger than `limit_bytes`.
    """
    with open_written(path) as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise Rejection("The file has too many layers or columns to be converted.")
    return content


def size_of_written(path: Path, trailer: bytes = b"") -> int:
    """The size in bytes of the file at `path`, which ends with `trailer` and white space.

    Raises:
        Rejection: it is not there, no ordinary file, empty, or cut off.
    """
    with open_written(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read().rstrip()
    if trailer and size and not tail.endswith(trailer):
        raise Rejection("The conversion was cut off before its end, so its result was thrown away. Try again.")
    return size


def written_files(directory: Path) -> list[Path]:
    """The files directly in `directory`, which a converter filled, by name; folders and links do not count."""
    if not stat.S_ISDIR(os.lstat(directory).st_mode):
        raise Rejection("The conversion gave no usable result.")
    return sorted(path for path in directory.iterdir() if stat.S_ISREG(os.lstat(path).st_mode))
