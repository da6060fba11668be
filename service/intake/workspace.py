"""Private directories of uploads: who owns them, and who removes them.

Every upload has a directory of its own with an unguessable name, in the area of this process (`areas`). A `Workspace`
owns the directories of one request and removes them when it ends; a directory that it has handed over is the job's.
"""

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import structlog
from anyio import CancelScope, CapacityLimiter, to_thread

from service.errors import Overloaded
from service.intake.areas import claim_area, sweep
from service.intake.form import MEBIBYTE
from service.intake.trees import new_name, remove_tree
from service.telemetry import events

DISK_THREADS = 2
RETRY_SECONDS = 30
BUFFERS_BYTES = 32 * MEBIBYTE

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
_LEAST_BUFFER_BYTES = 64 * 1024
_MOST_BUFFER_BYTES = MEBIBYTE
_Result = TypeVar("_Result")
_log = structlog.get_logger()


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
        _log.error(events.DISK_FULL, reason=error.strerror)
        raise Overloaded("The service has no room for this upload now. Send it again later.", RETRY_SECONDS) from error


class WorkArea:
    """This process's directory of uploads; made by `open_work_area`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = CapacityLimiter(DISK_THREADS)
        self._workspaces = 0

    @asynccontextmanager
    async def workspace(self) -> AsyncIterator["Workspace"]:
        """Open the workspace of one request."""
        workspace = Workspace(self)
        self._workspaces += 1
        try:
            yield workspace
        finally:
            self._workspaces -= 1
            await workspace.close()

    @property
    def buffer_bytes(self) -> int:
        """How much one upload may hold in memory: a mebibyte, less when there are many at once."""
        share = BUFFERS_BYTES // max(1, self._workspaces)
        return min(max(share, _LEAST_BUFFER_BYTES), _MOST_BUFFER_BYTES)

    def new_directory(self) -> Path:
        """Make a private directory with an unguessable name.

        Raises:
            Overloaded: the disk is full.
        """
        path = self._path / new_name()
        with lack_of_room():
            path.mkdir(mode=0o700)
        return path

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run `work`, which touches the disk, beside the event loop; a cancellation waits for its end."""
        return await to_thread.run_sync(work, limiter=self._threads)

    async def remove(self, directory: Path) -> None:
        """Remove `directory`, which `new_directory` made, and all in it; a rest that stays is swept with the area."""
        with CancelScope(shield=True):
            await self.in_thread(lambda: _remove_or_log(directory))


class Workspace:
    """The directories of one request: removed when it ends, but for those handed over to a job."""

    def __init__(self, area: WorkArea) -> None:
        self._area = area
        self._owned: set[Path] = set()

    @property
    def buffer_bytes(self) -> int:
        """See `WorkArea.buffer_bytes`."""
        return self._area.buffer_bytes

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

    async def close(self) -> None:
        """Remove what is still owned."""
        while self._owned:
            await self._area.remove(self._owned.pop())


@asynccontextmanager
async def open_work_area(root: Path) -> AsyncIterator[WorkArea]:
    """Sweep `root`, make this process's area in it, and remove that at the end.

    Raises:
        OSError: the root cannot be made or written.
    """
    await to_thread.run_sync(sweep, root)
    path, lock = await to_thread.run_sync(claim_area, root)
    try:
        yield WorkArea(path)
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_remove_or_log, path)
        os.close(lock)


def _remove_or_log(directory: Path) -> None:
    try:
        remove_tree(directory)
    except OSError as error:
        _log.error(events.DIRECTORY_LEFT, reason=error.strerror)
