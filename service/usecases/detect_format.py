"""Detects the format of an upload. ZIP archives are unpacked within limits, and only a few large ones at a time."""

import shutil
from functools import partial

from service.blocking import INLINE_BYTES, SHARED, Threads, run_blocking
from service.formats.bounds import Bounds, TooMuch
from service.formats.detect import Source, detect, is_archive, is_gzip
from service.intake.form import Upload
from service.intake.workspace import Workspace, lack_of_room

AT_ONCE = 4
UNPACKED = "unpacked"
LITTLE = Bounds(members=64, unpacked_bytes=INLINE_BYTES, contents_bytes=8 << 10, in_steps=True)
"""How much of an archive is unpacked in the event loop, and in memory: as much as another small file."""
_unpacking = Threads(AT_ONCE)


async def detect_format(upload: Upload) -> Source:
    """Detect the format of an upload; the contents of an archive are unpacked next to it.

    Raises:
        Rejection: see `formats.detect.detect`.
        Overloaded: the disk is full.
    """
    return _detect_little(upload, looks=True) or await _detect_in_thread(upload, looks=True)


async def detect_received(upload: Upload, workspace: Workspace, *, looks: bool) -> tuple[Upload, Source]:
    """Do so for an upload that `workspace` owns, and return it as well; without `looks` as in `formats.detect.detect`.

    If it is an archive of more than little, it is on disk from then on: a few kilobytes may unpack to many megabytes.
    """
    found = _detect_little(upload, looks=looks)
    if found is None:
        upload = await workspace.on_disk(upload)
        found = await _detect_in_thread(upload, looks=looks)
    return upload, found


def _detect_little(upload: Upload, *, looks: bool) -> Source | None:
    """Do so at once; None if the upload, or what is in it, is too large for that, and nothing is unpacked then."""
    if upload.size_bytes > INLINE_BYTES or is_gzip(upload.untrusted_name):
        return None
    try:
        with lack_of_room():
            return detect(upload.path, upload.untrusted_name, upload.directory / UNPACKED, LITTLE, looks=looks)
    except TooMuch:
        shutil.rmtree(upload.directory / UNPACKED, ignore_errors=True)  # only some files are unpacked
        return None


async def _detect_in_thread(upload: Upload, *, looks: bool) -> Source:
    threads = _unpacking if is_archive(upload.untrusted_name) else SHARED
    work = partial(detect, upload.path, upload.untrusted_name, upload.directory / UNPACKED, looks=looks)
    with lack_of_room():
        return await run_blocking(work, inline=False, threads=threads)
