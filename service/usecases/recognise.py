"""What an upload is. A ZIP is unpacked for it, within bounds and a few at a time; nothing else waits for that."""

from functools import partial

import anyio

from service.brief import BRIEF_BYTES, do
from service.formats.detect import Source, detect, is_archive
from service.intake.form import Upload

AT_ONCE = 4
_unpacking = anyio.CapacityLimiter(AT_ONCE)


async def recognise(upload: Upload) -> Source:
    """Recognise an upload; what it holds is put beside it.

    Raises:
        Rejection: see `formats.detect.detect`.
    """
    unpacks = is_archive(upload.untrusted_name)
    return await do(
        partial(detect, upload.path, upload.untrusted_name, upload.directory / "unpacked"),
        brief=upload.size_bytes <= BRIEF_BYTES and not unpacks,
        limiter=_unpacking if unpacks else None,
    )
