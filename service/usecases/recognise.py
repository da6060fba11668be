"""What an upload is. A ZIP is unpacked for it, within bounds and a few at a time; nothing else waits for that."""

import anyio
import anyio.to_thread

from service.formats.detect import ZIP, Source, detect
from service.intake.form import Upload

AT_ONCE = 4
_unpacking = anyio.CapacityLimiter(AT_ONCE)


async def recognise(upload: Upload) -> Source:
    """Recognise an upload; what it holds is put beside it.

    Raises:
        Rejection: see `formats.detect.detect`.
    """
    unpack_into = upload.directory / "unpacked"
    limiter = _unpacking if upload.untrusted_name.casefold().endswith(ZIP) else None
    return await anyio.to_thread.run_sync(detect, upload.path, upload.untrusted_name, unpack_into, limiter=limiter)
