"""Private directories of uploads, their ownership and deletion.

Every upload has its own directory with an unguessable name, in the area of this process (`areas`). A `Workspace` owns
the directories of one request and deletes them at its end, except those that it has handed over to a job.
"""

import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import structlog
from anyio import CancelScope, to_thread

from service.blocking import Threads, run_blocking
from service.errors import Overloaded
from service.ids import AccountId
from service.intake.areas import claim_area, sweep
from service.intake.disk_space import DiskSpace
from service.intake.form import MEBIBYTE, Upload
from service.intake.memory import has_room, leave_memory_root
from service.intake.trees import new_name, remove_tree, remove_trees
from service.telemetry import events

DISK_THREADS = 2
RETRY_SECONDS = 30
BUFFERS_BYTES = 32 * MEBIBYTE
LEAST_FREE_BYTES = 16 * MEBIBYTE
"""With less space than this on disk, most uploads are refused."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EROFS})
UNUSABLE = _NO_ROOM | {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}
"""The same, and the errors of a disk that has gone or is no longer the service's own."""
_LEAST_BUFFER_BYTES = 64 * 1024
_MOST_BUFFER_BYTES = MEBIBYTE
_Result = TypeVar("_Result")
_log = structlog.get_logger()


@contextmanager
def lack_of_room(errors: frozenset[int] = _NO_ROOM) -> Iterator[None]:
    """Translate `errors` of the operating system into a fault.

    The usual ones are a disk that is full or read-only, a limit on the size of files, and a lack of descriptors.

    Raises:
        Overloaded: there is no space; the operating system's error is its cause.
    """
    try:
        yield
    except OSError as error:
        if error.errno in errors:
            _log.error(events.DISK_FULL, reason=error.strerror)
            message = "The service has no space for this upload at the moment. Try again later."
            raise Overloaded(message, RETRY_SECONDS) from error
        raise


class WorkArea:
    """The directories of this process for uploads, on disk and, for small ones, in memory; see `open_work_area`."""

    def __init__(self, on_disk: Path, in_memory: Path | None = None) -> None:
        self._on_disk = on_disk
        self._in_memory = in_memory
        self._threads = Threads(DISK_THREADS)
        self.space = DiskSpace(lambda: shutil.disk_usage(on_disk).free)
        """The space on the disk that accounts share."""
        self.workspaces = 0
        """How many workspaces are open."""
        self._left: list[list[str]] = []
        """The directories that could not be deleted, each with those that were in it."""

    def workspace(self, account_id: AccountId | None = None) -> "Workspace":
        """Return a workspace for one request, of the account, to be entered."""
        return Workspace(self, account_id)

    @property
    def buffer_bytes(self) -> int:
        """The buffer size of one upload: a mebibyte, less if there are many uploads."""
        share = BUFFERS_BYTES // max(1, self.workspaces)
        return min(max(share, _LEAST_BUFFER_BYTES), _MOST_BUFFER_BYTES)

    def new_directory(self, *, small: bool = False) -> Path:
        """Create a private directory with an unguessable name, in memory if it is for `small` files and there is space.

        Raises:
            Overloaded: the disk is full.
        """
        area = self._in_memory if small and self._in_memory and has_room(self._in_memory) else self._on_disk
        path = area / new_name()
        with lack_of_room(UNUSABLE):
            path.mkdir(mode=0o700)
        return path

    def is_in_memory(self, directory: Path) -> bool:
        """Return whether `new_directory` created it in memory."""
        return directory.parent == self._in_memory

    def note_result(self, directory: Path, account_id: AccountId, size_bytes: int) -> None:
        """Note that a result of so many bytes waits in a directory for the store, until that is removed."""
        if not self.is_in_memory(directory):
            self.space.add(directory, account_id, size_bytes)

    async def is_full(self) -> bool:
        """Return whether there is too little space on disk for uploads.

        Raises:
            OSError: the directory cannot be looked at.
        """
        free = await to_thread.run_sync(shutil.disk_usage, self._on_disk, abandon_on_cancel=True)
        return free.free < LEAST_FREE_BYTES

    async def run_blocking(self, work: Callable[[], _Result], *, inline: bool = False) -> _Result:
        """Run `work`, which accesses the disk, in a thread or `inline`; see `Threads.run`."""
        return await run_blocking(work, inline=inline, threads=self._threads)

    async def sweep(self) -> None:
        """Delete what processes that were killed have left beside the areas of this one."""
        for area in filter(None, (self._on_disk, self._in_memory)):
            await to_thread.run_sync(sweep, area.parent)

    async def remove(self, directory: Path, *, inline: bool = False) -> None:
        """Delete a directory of `new_directory` and its contents; `inline` if there is little in it.

        What cannot be deleted now is deleted by `remove_left`.
        """
        trees = [[str(directory)]]
        if inline:
            self._remove(trees, _tell_of_left)
        else:
            with CancelScope(shield=True):
                await self.run_blocking(lambda: self._remove(trees, _tell_of_left))
        self.space.leave(directory)

    async def remove_left(self) -> None:
        """Try again to delete what could not be deleted, as while the system allowed no more open files."""
        trees, self._left = self._left, []
        if trees:
            await self.run_blocking(lambda: self._remove(trees))

    def _remove(self, trees: list[list[str]], tell: Callable[[OSError], None] = lambda _error: None) -> None:
        for pending in trees:
            try:
                remove_trees(pending)
            except OSError as error:
                tell(error)
                self._left.append(pending)


class Workspace:
    """The directories of one request: deleted at the end of the block, except those handed over to a job."""

    def __init__(self, area: WorkArea, account_id: AccountId | None) -> None:
        self._area = area
        self._account_id = account_id
        self._owned: set[Path] = set()

    async def __aenter__(self) -> Self:
        self._area.workspaces += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._area.workspaces -= 1
        self.space.leave(self)
        while self._owned:
            await self._area.remove(self._owned.pop())

    @property
    def space(self) -> DiskSpace:
        """See `WorkArea.space`."""
        return self._area.space

    @property
    def buffer_bytes(self) -> int:
        """See `WorkArea.buffer_bytes`."""
        return self._area.buffer_bytes

    def new_directory(self, *, small: bool = False) -> Path:
        """Create a private directory that is deleted with the workspace, unless it is handed over.

        See `WorkArea.new_directory`.
        """
        directory = self._area.new_directory(small=small)
        self._owned.add(directory)
        return directory

    async def reserve(self, size_bytes: int) -> None:
        """Reserve space on disk for uploads of so many bytes together, instead of what was reserved before.

        Raises:
            Overloaded: others leave too little.
        """
        with lack_of_room(UNUSABLE):
            await self.space.reserve(self, self._account_id, size_bytes)

    def settle(self, uploads: Iterable[Upload]) -> None:
        """Note that `uploads` are on disk in place of what was reserved, each until its directory is removed."""
        self.space.leave(self)
        for upload in uploads:
            if not upload.oversize:
                self.space.add(upload.directory, self._account_id, upload.size_bytes)

    async def on_disk(self, upload: Upload) -> Upload:
        """Return `upload`, which this workspace owns, after moving it to disk if it is in memory.

        Raises:
            Overloaded: the disk is full.
        """
        if not self._area.is_in_memory(upload.directory):
            return upload
        path = self.new_directory() / upload.path.name
        with lack_of_room(UNUSABLE):
            await self.run_blocking(partial(shutil.copy, upload.path, path))
        await self.discard(upload)
        return msgspec.structs.replace(upload, path=path)

    async def discard(self, upload: Upload) -> None:
        """Delete `upload` before the end of the block, if this workspace owns it."""
        if upload.directory in self._owned:
            await self._area.remove(self.handover(upload.directory))

    def handover(self, directory: Path) -> Path:
        """Return `directory` and its ownership: from now on, the caller must delete it (`WorkArea.remove`).

        Raises:
            KeyError: the workspace does not own it.
        """
        self._owned.remove(directory)
        return directory

    async def run_blocking(self, work: Callable[[], _Result]) -> _Result:
        """See `WorkArea.run_blocking`."""
        return await self._area.run_blocking(work)


@asynccontextmanager
async def open_work_area(root: Path, memory: Path | None = None) -> AsyncIterator[WorkArea]:
    """Create the area of this process in `root`, and one in `memory`, the root for small uploads.

    Raises:
        OSError: a root cannot be created or written.
    """
    async with AsyncExitStack() as areas:
        on_disk = await areas.enter_async_context(_area(root))
        if memory:
            areas.callback(leave_memory_root, memory)
        in_memory = await areas.enter_async_context(_area(memory)) if memory else None
        yield WorkArea(on_disk, in_memory)


@asynccontextmanager
async def _area(root: Path) -> AsyncIterator[Path]:
    """Sweep `root`, create the area of this process in it, and delete the area at the end."""
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
        _tell_of_left(error)


def _tell_of_left(error: OSError) -> None:
    _log.error(events.DIRECTORY_LEFT, reason=error.strerror)
