"""Objects as files in a directory. Every call may block, and raises the system's errors.

An object is a file `objects/ab/ab12…` in one of 256 directories, selected by the first digits of its random name.

On the file system of the working directories, nothing is copied: the object is a hard link to the converter's output,
whose other name goes with the working directory. On another file system, the output is copied to a temporary name in
`incoming/` and then renamed, so that the final name never shows a partial object.

The file and then its directory are synced before the object counts as stored: right afterwards, a durable commit
charges the job, and a power failure must not leave a paid job with an empty file. On an ordinary disk this takes less
than a millisecond.

Directories that someone has removed are created again by the next check or object that needs them, but not while the
disk is away: what would be stored on the one below it would be hidden once it is back. Until then, their objects
count as deleted, and they cannot be listed.
"""

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from service.storage.port import MARK, PathLike

ABANDONED_SECONDS = 6 * 3600
COPY_BYTES = 1 << 20
SHARDS = tuple(f"{number:02x}" for number in range(256))


class Disk:
    """The objects under `root`, which several processes may use at the same time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._objects = root / "objects"
        self._shards = str(self._objects)
        self._incoming = root / "incoming"
        self._directories = (self._incoming, self._objects, *(self._objects / shard for shard in SHARDS))
        self._device: int | None = None

    def path(self, name: str) -> Path:
        """Return the path of the object `name`, whether or not it exists."""
        return Path(self._file(name))

    def _file(self, name: str) -> str:
        """Return the same as text: creating a Path costs more than linking a file."""
        return f"{self._shard(name)}/{name}"

    def _shard(self, name: str) -> str:
        """Return the directory of the object `name`."""
        return f"{self._shards}/{name[:2]}"

    def prepare(self) -> None:
        """Create the directories, and delete partial files of killed processes."""
        for directory in (self._root, *self._directories):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._device = self._objects.stat().st_dev
        oldest = time.time() - ABANDONED_SECONDS
        for draft, found in _files(self._incoming):
            if found.st_mtime < oldest:
                draft.unlink(missing_ok=True)

    @contextmanager
    def placed(self, name: str, output: PathLike) -> Iterator[int]:
        """Make the file `output` the object `name`, atomically, for a block that gives its descriptor to `sync`.

        The object is deleted if that fails.
        """
        descriptor = self._place(output, self._file(name))
        try:
            yield descriptor
        except OSError:
            self.delete([name])
            raise
        finally:
            os.close(descriptor)

    def sync(self, name: str, descriptor: int) -> None:
        """Make the object `name` durable."""
        os.fsync(descriptor)
        _sync(self._shard(name))

    def store(self, name: str, output: PathLike) -> None:
        """Do both."""
        with self.placed(name, output) as descriptor:
            self.sync(name, descriptor)

    def _place(self, output: PathLike, target: str) -> int:
        """Make `output` the object at `target`; return a descriptor of it."""
        source = _open_regular(output)  # first: once there is an object, nothing may fail
        try:
            os.link(output, target, follow_symlinks=False)
        except OSError:  # another file system, one without hard links, or a second attempt
            try:
                return self._copy(source, target)
            except FileNotFoundError:
                self._restore(self._incoming, self._objects, Path(target).parent)
                return self._copy(source, target)
            finally:
                os.close(source)
        return source

    def _copy(self, source: int, target: str) -> int:
        """Copy the open file `source`; return a descriptor of the copy."""
        draft = self._draft()
        try:
            copy = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                while os.sendfile(copy, source, None, COPY_BYTES):
                    pass
                os.rename(draft, target)  # noqa: PTH104 - creating a Path costs more
            except BaseException:
                os.close(copy)
                raise
        except BaseException:
            with suppress(FileNotFoundError):
                Path(draft).unlink()
            raise
        return copy

    def delete(self, names: Sequence[str]) -> None:
        """Delete those of the objects that exist."""
        for name in names:
            self.path(name).unlink(missing_ok=True)

    def find(self, name: str) -> os.stat_result | None:
        """Return the status of the object, None if there is no such object.

        Raises:
            FileNotFoundError: the disk is not mounted.
        """
        try:
            return self.path(name).stat()
        except FileNotFoundError:
            self._require_disk()
            return None

    def list(self, shard: str) -> list[tuple[str, os.stat_result]]:
        """Return the names, sizes and times of all objects in one of `SHARDS`."""
        return [(path.name, found) for path, found in _files(self._objects / shard)]

    def mark(self, name: str) -> None:
        """Make a durable file of this name beside the objects, which it also contains."""
        self._restore(self._incoming, self._objects)
        draft = Path(self._draft())
        try:
            draft.touch(mode=0o600, exist_ok=False)
            with draft.open("wb") as file:
                file.write(name.encode())
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self._root / name)
        finally:
            draft.unlink(missing_ok=True)
        _sync(str(self._root))

    def marks(self) -> set[str]:
        """Return the names of the files that `mark` has made.

        Raises:
            FileNotFoundError: the disk is not mounted.
        """
        self._require_disk()
        return {path.name for path in self._root.glob(f"{MARK}*") if path.read_bytes() == path.name.encode()}

    def free_bytes(self) -> int:
        """Write and delete a file, and return the free space in bytes."""
        self._restore(*self._directories)
        probe = Path(self._draft())
        try:
            probe.write_bytes(b"geomill")
        finally:
            probe.unlink(missing_ok=True)
        return shutil.disk_usage(self._objects).free

    def _restore(self, *directories: Path) -> None:
        """Create those directories of the store again that were removed.

        Raises:
            FileNotFoundError: the disk is not mounted.
        """
        self._require_disk()
        for directory in directories:
            if not directory.is_dir():
                directory.mkdir(mode=0o700, exist_ok=True)
                _sync(str(directory.parent))

    def _require_disk(self) -> None:
        nearest = self._objects if self._objects.is_dir() else self._root
        if nearest.stat().st_dev != self._device:
            raise FileNotFoundError(errno.ENOENT, "The store is on another disk than at the start; is its own mounted?")

    def _draft(self) -> str:
        return f"{self._incoming}/{secrets.token_hex(16)}"


def open_output(path: PathLike) -> BinaryIO:
    """Open a file that an untrusted program left; links are not followed, and only a regular file is accepted.

    Raises:
        OSError: there is no such file, or it is a symbolic link.
        ValueError: it is not a regular file.
    """
    return os.fdopen(_open_regular(path), "rb")


def _open_regular(path: PathLike) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_regular(os.fstat(descriptor))
    except ValueError:
        os.close(descriptor)
        raise
    return descriptor


def size_of_output(path: PathLike) -> int:
    """Return the size in bytes of a file that an untrusted program left, without opening it.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a regular file.
    """
    found = os.lstat(path)
    _require_regular(found)
    return found.st_size


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("only a regular file can be stored")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Iterate over the files of a directory, from which other processes may delete files in the meantime."""
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                yield Path(entry.path), entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
