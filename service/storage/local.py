"""The local store: a directory on this host and signed links to it, for a service on one machine."""

import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from anyio import fail_after, to_thread

from service.blocking import INLINE_BYTES, Threads
from service.clock import Clock, utc_now
from service.errors import DownloadExpired, ObjectMissing, StorageFault, StorageUnavailable
from service.storage.disk import SHARDS, Disk, open_output, size_of_output
from service.storage.links import Grant, LinkSigner
from service.storage.names import clean_name
from service.storage.port import READ_BYTES, Link, ObjectKey, PathLike, StoredObject, is_key, link_seconds, split_key

T = TypeVar("T")

THREADS = 16
CHECK_SECONDS = 5.0
MIN_FREE_BYTES = 256 << 20

_FAULTS: dict[int, StorageFault] = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EFBIG: "full",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ETIMEDOUT: "slow",
}


class Download(msgspec.Struct, frozen=True):
    """A stored file that the holder of a link may fetch."""

    path: Path
    stat: os.stat_result
    etag: str
    media_type: str
    download_name: str


@asynccontextmanager
async def open_local(
    root: Path, link_secrets: Sequence[bytes], *, clock: Clock = utc_now, min_free_bytes: int = MIN_FREE_BYTES
) -> AsyncIterator["LocalStorage"]:
    """Open the store under `root`, which is created if it does not exist; several processes may have it open.

    The first of `link_secrets` signs, all are accepted. `check` fails if less than `min_free_bytes` are free.

    Raises:
        StorageUnavailable: the directory cannot be created or used.
    """
    disk = Disk(root)
    store = LocalStorage(disk, LinkSigner(link_secrets), clock, min_free_bytes)
    await store.run(disk.prepare)
    yield store


class LocalStorage:
    """The `Storage` of one machine; `open_local` opens it."""

    regions: frozenset[str] = frozenset()

    def __init__(self, disk: Disk, signer: LinkSigner, clock: Clock, min_free_bytes: int) -> None:
        self._disk = disk
        self._signer = signer
        self._clock = clock
        self._min_free_bytes = min_free_bytes
        self._threads = Threads(THREADS)

    async def put(
        self,
        key: ObjectKey,
        path: PathLike,
        *,
        media_type: str,  # noqa: ARG002 - the link carries it
        download_name: str,  # noqa: ARG002 - as well
        sha256: bytes = b"",  # noqa: ARG002 - no request is signed
    ) -> None:
        """See `Storage.put`."""
        name = _name(key)
        with _faults():
            if size_of_output(path) > INLINE_BYTES:
                await self._threads.run(partial(self._disk.store, name, path))
            else:  # small files are copied in the event loop, and only waiting for the disk takes a thread
                with self._disk.placed(name, path) as descriptor:
                    await self._threads.run(partial(self._disk.sync, name, descriptor))

    async def link(self, key: ObjectKey, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """See `Storage.link`; the URL is path-absolute."""
        start, seconds = link_seconds(self._clock(), expires_at)
        if not seconds:
            return None
        grant = Grant(ObjectKey(_name(key)), clean_name(download_name), media_type, start + seconds)
        return Link(self._signer.sign(grant), datetime.fromtimestamp(grant.expires, UTC))

    async def read(self, key: ObjectKey) -> AsyncGenerator[bytes]:
        """See `Storage.read`."""
        path = self._disk.path(_name(key))
        with ExitStack() as opened:  # also by a thread whose caller is cancelled meanwhile
            file = await self.run(lambda: opened.enter_context(_open(path)))
            while content := await self.run(partial(file.read, READ_BYTES)):
                yield content

    async def delete(self, keys: Sequence[ObjectKey]) -> None:
        """See `Storage.delete`."""
        await self.run(partial(self._disk.delete, [_name(key) for key in keys]))

    async def objects(self, region: str = "") -> AsyncIterator[StoredObject]:
        """See `Storage.objects`; holds one of 256 directories in memory at a time."""
        _require_home(region)
        for shard in SHARDS:
            for name, found in await self.run(partial(self._disk.list, shard)):
                if is_key(name):
                    yield StoredObject(ObjectKey(name), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    async def check(self, region: str = "") -> None:
        """See `Storage.check`; writes and deletes a file, and checks the free space."""
        _require_home(region)
        try:
            with fail_after(CHECK_SECONDS), _faults():
                free_bytes = await to_thread.run_sync(self._disk.free_bytes, abandon_on_cancel=True)
        except TimeoutError:
            raise StorageUnavailable("slow", f"the disk did not answer within {CHECK_SECONDS:.0f} s") from None
        if free_bytes < self._min_free_bytes:
            needed = f"{self._min_free_bytes >> 20} MiB are kept for conversions under way"
            raise StorageUnavailable("full", f"{free_bytes >> 20} MiB are free; {needed}")

    async def check_objects(self) -> None:
        """See `Storage.check_objects`."""
        await self.check()

    async def mark(self, region: str, mark: str) -> None:
        """See `Storage.mark`."""
        _require_home(region)
        await self.run(partial(self._disk.mark, mark))

    async def has_mark(self, region: str, mark: str) -> bool:
        """See `Storage.has_mark`."""
        return mark in await self.marks(region)

    async def marks(self, region: str) -> set[str]:
        """See `Storage.marks`."""
        _require_home(region)
        return await self.run(self._disk.marks)

    async def resolve(self, key: str, name: str, query: str) -> Download:
        """Return the file of the link with these (decoded) path segments and this query string.

        Raises:
            DownloadRefused: the link is unsigned, forged or altered.
            DownloadExpired: the link has expired, or the object has been deleted.
            StorageUnavailable: the disk cannot be read, or is not there.
        """
        grant = self._signer.verify(key, name, query, self._clock().timestamp())
        found = await self.run(partial(self._disk.find, grant.key))
        if found is None:
            raise DownloadExpired("This result has been deleted. Convert the file again.")
        return Download(self._disk.path(grant.key), found, f'"{grant.key}"', grant.media_type, grant.download_name)

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work in one of this store's threads, and translate the system's errors.

        A cancelled caller waits for work that has begun, so that nothing is written after the caller is gone.
        """
        with _faults():
            return await self._threads.run(work)


@contextmanager
def _faults() -> Iterator[None]:
    """Translate the system's errors."""
    try:
        yield
    except OSError as error:
        fault = _FAULTS.get(error.errno or 0, "down")
        raise StorageUnavailable(fault, error.strerror or "input/output error") from error


def _open(path: Path) -> BinaryIO:
    try:
        return open_output(path)
    except FileNotFoundError:
        raise ObjectMissing("down", "there is no such object") from None


def _name(key: ObjectKey) -> str:
    region, name = split_key(key)
    _require_home(region)
    return name


def _require_home(region: str) -> None:
    if region:
        raise StorageUnavailable("misconfigured", f"the local store has no region {region}")
