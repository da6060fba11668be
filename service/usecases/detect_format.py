"""Detects the format of an upload. ZIP archives are unpacked within limits, and only a few at a time."""

from functools import partial

from service.blocking import INLINE_BYTES, SHARED, Threads, run_blocking
from service.formats.detect import Source, detect, is_archive
from service.intake.form import Upload
from service.intake.workspace import lack_of_room

AT_ONCE = 4
_unpacking = Threads(AT_ONCE)


async def detect_format(upload: Upload) -> Source:
    """Detect the format of an upload; the contents of an archive are unpacked next to it.

    Raises:
        Rejection: see `formats.detect.detect`.
        Overloaded: the disk is full.
    """
    unpacks = is_archive(upload.untrusted_name)
    with lack_of_room():
        return await run_blocking(
            partial(detect, upload.path, upload.untrusted_name, upload.directory / "unpacked"),
            inline=upload.size_bytes <= INLINE_BYTES and not unpacks,
            threads=_unpacking if unpacks else SHARED,
        )
