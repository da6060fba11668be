"""Private directories of uploads: who owns them, and who removes them.

Every upload has a directory of its own with an unguessable name, in the area of this process (`areas`). A `Workspace`
owns the directories of one request and removes them when it ends; a directory that it has handed over is the job's.
"""

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import structlog
from anyio import CancelScope, CapacityLimiter, to_thread

from service.blocking import run_blocking
from service.errors import Overloaded
from service.intake.areas import claim_area, sweep
from service.intake.form import MEBIBYTE
from service.intake.memory import has_room, leave_memory_root
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
    """This process's directories of uploads, on disk and, for small ones, in memory; made by `open_work_area`."""

    def __init__(self, on_disk: Path, in_memory: Path | None = None) -> None:
        self._on_disk = on_disk
        self._in_memory = in_memory
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

    def new_directory(self, *, small: bool = False) -> Path:
        """Make a private directory with an unguessable name; in memory, if little will be in it and there is room.

        Raises:
            Overloaded: the disk is full.
        """
        area = self._in_memory if small and self._in_memory and has_room(self._in_memory) else self._on_disk
        path = area / new_name()
        with lack_of_room():
            path.mkdir(mode=0o700)
        return path

    def is_in_memory(self, directory: Path) -> bool:
        """Whether `new_directory` made it there."""
        return directory.parent == self._in_memory

    async def run_blocking(self, work: Callable[[], _Result], *, inline: bool = False) -> _Result:
        """Run `work`, which touches the disk, beside the event loop, or in it; a cancellation waits for its end."""
        return await run_blocking(work, inline=inline, limiter=self._threads)

    async def remove(self, directory: Path, *, inline: bool = False) -> None:
        """Remove `directory`, which `new_directory` made, and all in it; a rest that stays is swept with the area.

        Where it is known to hold little, that is `brief`.
        """
        if inline:
            _remove_or_log(directory)
            return
        with CancelScope(shield=True):
            await self.run_blocking(lambda: _remove_or_log(directory))


class Workspace:
    """The directories of one request: removed when it ends, but for those handed over to a job."""

    def __init__(self, area: WorkArea) -> None:
        self._area = area
        self._owned: set[Path] = set()

    @property
    def buffer_bytes(self) -> int:
        """See `WorkArea.buffer_bytes`."""
        return self._area.buffer_bytes

    def new_directory(self, *, small: bool = False) -> Path:
        """Make a private directory that lives as long as the workspace, unless it is handed over.

        See `WorkArea.new_directory`.
        """
        directory = self._area.new_directory(small=small)
        self._owned.add(directory)
        return directory

    def handover(self, directory: Path) -> Path:
        """Give up `directory` and return it: from now on its removal (`WorkArea.remove`) is the caller's duty.

        Raises:
            KeyError: the workspace does not own it, or not any more.
        """
        self._owned.remove(directory)
        return directory

    async def run_blocking(self, work: Callable[[], _Result], *, inline: bool = False) -> _Result:
        """See `WorkArea.do`."""
        return await self._area.run_blocking(work, inline=inline)

    async def close(self) -> None:
        """Remove what is still owned."""
        while self._owned:
            await self._area.remove(self._owned.pop())


@asynccontextmanager
async def open_work_area(root: Path, memory: Path | None = None) -> AsyncIterator[WorkArea]:
    """Make this process's area in `root`, and one in `memory`, the root for small uploads.

    Raises:
        OSError: a root cannot be made or written.
    """
    async with AsyncExitStack() as areas:
        on_disk = await areas.enter_async_context(_area(root))
        if memory:
            areas.callback(leave_memory_root, memory)
        in_memory = await areas.enter_async_context(_area(memory)) if memory else None
        yield WorkArea(on_disk, in_memory)


@asynccontextmanager
async def _area(root: Path) -> AsyncIterator[Path]:
    """Sweep `root`, make this process's area in it, and remove that at the end."""
    await to_thread.run_sync(sweep, root)
    path, lock = await to_thread.run_sync(claim_area, root)
    try:
        yield path
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_remove_or_log, path)
        os.close(lock)


def _remove_or_log(directory: Path) -> None:
    try:
        remove_tree(directory)
    except OSError as error:
        _log.error(events.DIRECTORY_LEFT, reason=error.strerror)
