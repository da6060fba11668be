"""Private directories of uploads, and who removes them.

Theory of operation. Under one root each process has an area: a directory on whose descriptor it holds a lock (flock)
for as long as it lives, so that the kernel itself says which areas belong to the dead. Starting, a process removes the
areas whose lock it can take, and only those: several servers may share one root. The lock does not outlive a program
that the process starts, since its descriptor is closed on exec. In the area every upload has a directory of its own
with a random name; an area can be crossed but not listed by other users, an upload's directory neither.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

from service.errors import Overloaded

DISK_THREADS = 8
RETRY_SECONDS = 30

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
_Result = TypeVar("_Result")


@contextmanager
def lack_of_room() -> Iterator[None]:
    """Turn a full disk, or a want of descriptors, into the fault that the caller is told.

    Raises:
        Overloaded: there is no room; the operating system's error is its cause.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise Overloaded("The service has no room for this upload now. Send it again later.", RETRY_SECONDS) from error


class WorkArea:
    """This process's directory of uploads; made by `open_work_area`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = CapacityLimiter(DISK_THREADS)

    def workspace(self) -> "Workspace":
        """A workspace for one request, to be entered with `async with`."""
        return Workspace(self)

    def new_directory(self) -> Path:
        """Make a private directory with an unguessable name.

        Raises:
            Overloaded: the disk is full.
        """
        path = self._path / secrets.token_hex(16)
        with lack_of_room():
            path.mkdir(mode=0o700)
        return path

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run `work`, which touches the disk, beside the event loop; a cancellation waits for its end."""
        return await to_thread.run_sync(work, limiter=self._threads)

    async def remove(self, directory: Path) -> None:
        """Remove `directory`, which `new_directory` made, and all in it; whatever is already gone is no error."""
        with CancelScope(shield=True):
            await self.in_thread(lambda: remove_tree(directory))


class Workspace:
    """The directories of one request: removed when it ends, but for those handed over to a job."""

    def __init__(self, area: WorkArea) -> None:
        self._area = area
        self._owned: set[Path] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for directory in tuple(self._owned):
            await self._area.remove(directory)
            self._owned.discard(directory)

    def new_directory(self) -> Path:
        """Make a private directory that lives as long as the workspace, unless it is handed over.

        Raises:
            Overloaded: the disk is full.
        """
        directory = self._area.new_directory()
        self._owned.add(directory)
        return directory

    def handover(self, directory: Path) -> Path:
        """Give up `directory` and return it: from now on its removal (`WorkArea.remove`) is the caller's duty.

        Raises:
            KeyError: the workspace does not own it, or not any more.
        """
        self._owned.remove(directory)
        return directory

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """See `WorkArea.in_thread`."""
        return await self._area.in_thread(work)


@asynccontextmanager
async def open_work_area(root: Path) -> AsyncIterator[WorkArea]:
    """Sweep `root`, make this process's area in it and remove that at the end.

    Raises:
        OSError: the root cannot be made or written.
    """
    path, lock = await to_thread.run_sync(_claim_area, root)
    try:
        yield WorkArea(path)
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, path)
        os.close(lock)


def sweep(root: Path) -> int:
    """Remove the areas under `root` that dead processes left; return how many there were."""
    swept = 0
    for path in tuple(root.iterdir()):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(path)
                swept += 1
            finally:
                os.close(lock)
    return swept


def remove_tree(root: Path) -> None:
    """Remove the directory `root` with all in it, whatever its depth and its modes, following no link.

    Directories are moved up into `root` before they are emptied, so neither the stack nor a path grows with the depth.
    """
    emptied = [root]
    for directory in emptied:
        for child in _empty(directory):
            moved = root / secrets.token_hex(16)
            with suppress(FileNotFoundError):
                child.chmod(0o700)
                child.rename(moved)
                emptied.append(moved)
    for directory in reversed(emptied):
        with suppress(FileNotFoundError):
            directory.rmdir()


def _empty(directory: Path) -> list[Path]:
    """Remove what is in `directory` but the directories, which are returned."""
    children = []
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                children.append(Path(entry.path))
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)  # noqa: PTH108  (no Path per file of a large directory)
    return children


def _claim_area(root: Path) -> tuple[Path, int]:
    """Sweep the root and make an area in it, locked.

    Another process's sweep may come between making and locking; then the next area is made.
    """
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    sweep(root)
    while True:
        path = root / secrets.token_hex(16)
        path.mkdir(mode=0o711)
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(path.stat(), os.fstat(lock)):
                    return path, lock
            except OSError:
                os.close(lock)
                raise
            os.close(lock)
