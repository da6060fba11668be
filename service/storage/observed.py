"""Metrics of the store: duration and failures of its operations."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Protocol, get_args

from service.blocking import INLINE_BYTES, run_blocking
from service.errors import StorageFault, StorageUnavailable
from service.storage.disk import COPY_BYTES
from service.storage.port import ObjectKey, Storage
from service.telemetry.metrics import STORAGE_FAILURES, STORAGE_SECONDS, start_at_zero


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


Operation = Literal["put", "link", "read", "delete", "check"]

start_at_zero(STORAGE_FAILURES, get_args(StorageFault))
_SECONDS = {operation: STORAGE_SECONDS.labels(operation) for operation in get_args(Operation)}


class observed:  # noqa: N801 - used like a function
    """Observe the operation in the block; its failure propagates."""

    def __init__(self, operation: Operation) -> None:
        self._seconds = _SECONDS[operation]

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds.observe(time.perf_counter() - self._since)
        if isinstance(error, StorageUnavailable):
            STORAGE_FAILURES.labels(error.fault).inc()


async def delete_observed(storage: Storage, keys: Sequence[str]) -> None:
    """Delete the objects under these keys.

    Raises:
        StorageUnavailable: the store is; some of them may be deleted.
    """
    with observed("delete"):
        await storage.delete([ObjectKey(key) for key in keys])


async def copy_observed(content: AsyncGenerator[bytes], path: Path, digest: _Digest | None = None) -> None:
    """Copy the content of an object, as it is read, to a new file, which a converter may own, and into the `digest`.

    Raises whatever reading raises; a part of the file may be there then.
    """
    with observed("read"):
        async with aclosing(content) as pieces:
            with path.open("xb") as file:
                async for some, size in _gathered(pieces):
                    await run_blocking(partial(_write, file, some, digest), inline=size <= INLINE_BYTES)


def _write(file: BinaryIO, some: Sequence[bytes], digest: _Digest | None) -> None:
    file.writelines(some)
    if digest is not None:
        for piece in some:
            digest.update(piece)


async def _gathered(pieces: AsyncIterable[bytes]) -> AsyncIterator[tuple[list[bytes], int]]:
    """Gather pieces, which may have a few kilobytes, until they are worth a thread; also return their size in bytes."""
    some: list[bytes] = []
    size = 0
    async for piece in pieces:
        some.append(piece)
        size += len(piece)
        if size >= COPY_BYTES:
            yield some, size
            some, size = [], 0
    yield some, size
