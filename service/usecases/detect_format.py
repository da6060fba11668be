"""Detects the format of an upload. ZIP archives are unpacked within limits, and only a few large ones at a time.

Looking through a large one is bounded in computing time, and ends with the request or the job for which it is done.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from sandbox.command import Limits
from service.blocking import INLINE_BYTES, SHARED, Threads, run_blocking
from service.engine.diagnostics import out_of_time
from service.formats.bounds import Bounds, MuchToRead, TooMuch
from service.formats.detect import Depth, detect, is_gzip, is_read_through, most_made_of
from service.formats.source import Source
from service.ids import AccountId
from service.intake.disk_space import DiskSpace
from service.intake.form import Upload
from service.intake.trees import tree_bytes
from service.intake.workspace import Workspace, lack_of_room
from service.permit import OutOfSpace, OutOfTime, Permit

_Result = TypeVar("_Result")

AT_ONCE = 4
UNPACKED = "unpacked"
LITTLE = Bounds(members=64, unpacked_bytes=INLINE_BYTES, contents_bytes=8 << 10, in_steps=True)
"""How much of an archive is unpacked in memory: as much as another small file."""
READ_INLINE_BYTES = 32 << 10
"""How much text may be read through in the event loop, packed or not; beyond that, also a small file takes a thread."""
QUICK = msgspec.structs.replace(LITTLE, read_through_bytes=READ_INLINE_BYTES)
"""How much of an archive is unpacked and looked at in the event loop."""
_looking = Threads(AT_ONCE)
"""The threads for files that are read through, of all accounts together: others have threads of their own."""
_turns: WeakValueDictionary[AccountId, asyncio.Lock] = WeakValueDictionary()
"""Of each account, a thread looks at one large file at a time: a crafted one takes minutes, in which others' must not
wait."""


class _Look(Protocol):
    """Runs work in one of the threads, within the computing time for one upload."""

    async def __call__(self, work: Callable[[], _Result]) -> _Result:
        """See `run_blocking`."""


async def detect_format(
    upload: Upload, limits: Limits, space: DiskSpace, account_id: AccountId | None = None
) -> Source:
    """Detect the format of an upload; the contents of an archive are unpacked next to it.

    A large one waits for others of the account, if that is given, and takes at most the computing time of `limits`.
    What it unpacks to has its part of `space` until its directory is removed.

    Raises:
        Rejection: see `formats.detect.detect`; or it takes more time.
        Overloaded: the disk is full, or others leave too little of `space`.
    """
    return await _detect_little(upload, Depth.TEXT) or await _detect_in_thread(
        upload, limits, space, account_id, Depth.TEXT
    )


async def detect_received(
    upload: Upload,
    limits: Limits,
    account_id: AccountId,
    workspace: Workspace,
    depth: Depth,
) -> tuple[Upload, Source]:
    """Do so for an upload that `workspace` owns, to a `depth`, and return it as well.

    If it is an archive of more than little, it is on disk from then on: a few kilobytes may unpack to many megabytes.
    If only its format is detected, nothing is left there of what such an archive unpacks to.
    """
    found = await _detect_little(upload, depth)
    if found is None:
        upload = await workspace.on_disk(upload)
        found = await _detect_in_thread(upload, limits, workspace.space, account_id, depth)
    return upload, found


async def _detect_little(upload: Upload, depth: Depth) -> Source | None:
    """Do so at once; None if the upload, or what is in it, is too large for that, and nothing is unpacked then."""
    if upload.size_bytes > INLINE_BYTES or is_gzip(upload.untrusted_name):
        return None
    is_quick = upload.size_bytes <= READ_INLINE_BYTES or not is_read_through(upload.untrusted_name)
    try:
        if is_quick:
            with suppress(MuchToRead):
                return await run_blocking(partial(_detect_within, QUICK, upload, depth), inline=True)
        return await run_blocking(partial(_detect_within, LITTLE, upload, depth), inline=False)
    except TooMuch:
        return None


def _detect_within(bounds: Bounds, upload: Upload, depth: Depth) -> Source:
    try:
        with lack_of_room():
            return detect(upload.path, upload.untrusted_name, upload.directory / UNPACKED, bounds, depth=depth)
    except TooMuch:
        shutil.rmtree(upload.directory / UNPACKED, ignore_errors=True)  # only some files are unpacked
        raise


async def _detect_in_thread(
    upload: Upload, limits: Limits, space: DiskSpace, account_id: AccountId | None, depth: Depth
) -> Source:
    turn = asyncio.Lock() if account_id is None else _turns.setdefault(account_id, asyncio.Lock())
    threads = _looking if is_read_through(upload.untrusted_name) else SHARED
    permit = Permit(limits.cpu_seconds)
    look: _Look = partial(run_blocking, inline=False, threads=threads, permit=permit)
    work = partial(detect, upload.path, upload.untrusted_name, upload.directory / UNPACKED, depth=depth)
    async with turn:
        with lack_of_room():
            try:
                if is_read_through(upload.untrusted_name):
                    most_bytes = await look(partial(most_made_of, upload.path, upload.untrusted_name))
                    source = await _in_space(
                        most_bytes,
                        partial(space.take, upload.directory, account_id),
                        permit,
                        partial(_settled, upload, space, look, work, keeps=depth > Depth.FORMAT),
                    )
                else:
                    source = await look(work)
            except OutOfTime:
                raise out_of_time() from None
    return msgspec.structs.replace(source, looked_seconds=permit.used)


async def _in_space(
    most_bytes: int, take: Callable[[int], Awaitable[int]], permit: Permit, work: Callable[[], Awaitable[Source]]
) -> Source:
    """Do the work in `most_bytes` on the disk, or, if it turns out to take more, from the start in twice as much.

    Few texts take more: those in encodings of which a byte becomes three in UTF-8, if they need several copies.
    """
    while True:
        permit.room_bytes = granted = await take(most_bytes)
        try:
            return await work()
        except OutOfSpace:
            if granted < most_bytes or not most_bytes:
                raise
        most_bytes *= 2


async def _settled(upload: Upload, space: DiskSpace, look: _Look, work: Callable[[], Source], *, keeps: bool) -> Source:
    """Do the work on an upload that has taken its part of `space`, and note what is left there."""
    left = 0
    try:
        source, left = await look(partial(_and_size, upload.directory / UNPACKED, work, keeps=keeps))
    finally:
        space.settle(upload.directory, left)
    return source


def _and_size(unpacked: Path, work: Callable[[], Source], *, keeps: bool) -> tuple[Source, int]:
    """The source, and how many bytes are in the directory after the work: nothing if it fails, or unless `keeps`."""
    left = 0
    try:
        source = work()
        left = tree_bytes(unpacked) if keeps else 0
    finally:
        if not left:
            shutil.rmtree(unpacked, ignore_errors=True)
    return source, left
