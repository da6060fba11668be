"""Opens files that an untrusted process wrote or may replace: without following links, and only regular files."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import islice
from operator import attrgetter
from pathlib import Path

from sandbox.verdict import Ending, Verdict
from service.engine.diagnostics import rejection
from service.errors import Rejection

TAIL_BYTES = 256
LITTLE_FILES = 64
LITTLE_BYTES = 1 << 20
READABLE = 0o644
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open what is there: no link is followed, and no reader or writer of a pipe is waited for."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_NO_FILE = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO})
"""Errors of opening a directory, a link or a pipe that nobody reads, to write to it."""
_OF_THE_HOST = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
"""Errors that say nothing of what a converter wrote."""
PathLike = str | os.PathLike[str]
NO_RESULT = "The conversion gave no result: the file holds nothing that could be written."
TOO_MUCH_FOUND = "The file has too many layers or columns to be converted."
NO_USABLE_RESULT = "The conversion gave no usable result."


@contextmanager
def told_lack_of_room() -> Iterator[None]:
    """Tell that there is no space left, in the words for a converter that has none. Also a decorator.

    Raises:
        NoRoom: there is none.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise rejection(Verdict(ending=Ending.DISK_FULL)) from error
        raise


def open_written(path: PathLike) -> tuple[int, int]:
    """Open the file at `path`, which a converter wrote, for reading; return its descriptor and its size in bytes.

    Raises:
        Rejection: it does not exist or is not a regular file.
        OSError: the host cannot open any file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except OSError as error:
        if error.errno in _OF_THE_HOST:
            raise
        raise Rejection(NO_RESULT) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Rejection(NO_USABLE_RESULT)
    return descriptor, status.st_size


@told_lack_of_room()
def write_for_runs(path: PathLike, text: str) -> None:
    """Write `text` to a file at `path` that runs may read, in a directory that a converter may write to.

    A run has another user if the service is root, and gets the files of its directory only when it starts.

    Raises:
        Rejection: a converter has put something there that is not a regular file, or there is no space.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _AS_IT_IS, READABLE)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise Rejection(NO_USABLE_RESULT) from None
        raise
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Rejection(NO_USABLE_RESULT)
        os.fchmod(descriptor, READABLE)  # whatever the umask of the host
        file.write(text)


def holds_little(path: PathLike) -> bool:
    """Whether what a converter wrote at `path`, a file or a folder, can be read or removed at negligible cost."""
    files, size_bytes = 0, 0
    try:
        for status in _below(path):
            files, size_bytes = files + 1, size_bytes + status.st_size
            if files > LITTLE_FILES or size_bytes > LITTLE_BYTES:
                return False
    except OSError:  # nested so deeply that the path is too long
        return False
    return True


def _below(path: PathLike) -> Iterator[os.stat_result]:
    pending: list[PathLike] = []
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        yield status
        if stat.S_ISDIR(status.st_mode):
            pending.append(path)
    while pending:
        with suppress(FileNotFoundError), os.scandir(pending.pop()) as entries:
            for entry in islice(entries, LITTLE_FILES):
                status = entry.stat(follow_symlinks=False)
                yield status
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)


def read_written(path: Path, limit_bytes: int) -> bytes:
    """The content of the file at `path`, which a converter wrote.

    Raises:
        Rejection: it is not a regular file, or is larger than `limit_bytes`.
    """
    descriptor, _ = open_written(path)
    with FileIO(descriptor) as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise Rejection(TOO_MUCH_FOUND)
    return content


def size_of_written(path: PathLike, trailer: bytes = b"") -> int:
    """The size in bytes of the file at `path`, which must end with `trailer` and optional white space.

    Raises:
        Rejection: it does not exist, or is not a regular file, or is truncated.
    """
    if not trailer:
        return _status_of_written(path).st_size
    descriptor, size = open_written(path)
    try:
        tail = os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES))
    finally:
        os.close(descriptor)
    if size and not tail.rstrip().endswith(trailer):
        raise Rejection("The result was cut off before its end, so it was discarded. Try again.")
    return size


def _status_of_written(path: PathLike) -> os.stat_result:
    try:
        status = os.lstat(path)
    except OSError:
        raise Rejection(NO_RESULT) from None
    if not stat.S_ISREG(status.st_mode):
        raise Rejection(NO_USABLE_RESULT)
    return status


def written_files(directory: PathLike) -> list[os.DirEntry[str]]:
    """The files directly in `directory`, which a converter filled, by name; folders and links are ignored."""
    if not stat.S_ISDIR(os.lstat(directory).st_mode):
        raise Rejection(NO_USABLE_RESULT)
    with os.scandir(directory) as entries:
        return sorted((entry for entry in entries if entry.is_file(follow_symlinks=False)), key=attrgetter("name"))
