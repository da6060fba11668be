"""Reads the result of a completed job from the store, for a client that wants the file itself (interface 4.1)."""

from collections.abc import AsyncGenerator

import msgspec
import structlog

from service.errors import DownloadExpired, Overloaded, StorageUnavailable
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.storage.observed import observed
from service.storage.port import ObjectKey
from service.telemetry import events
from service.usecases.services import Services

_log = structlog.get_logger()


class Result(msgspec.Struct, frozen=True):
    """The file that a conversion has produced; of its content, the first piece has been read, and `rest` is open."""

    download_name: str
    media_type: str
    size_bytes: int
    first: bytes
    rest: AsyncGenerator[bytes]


async def read_result(services: Services, job: Job) -> Result:
    """Open the result of a job that has succeeded. The caller closes `rest`.

    Raises:
        DownloadExpired: the result is not kept any more.
        Overloaded: the store cannot deliver it now.
    """
    if job.status is not Status.COMPLETED or job.object_key is None:
        raise DownloadExpired(f"The result of the job {job.id} is not kept any more. Convert the file again.")
    stored = services.storage.read(ObjectKey(job.object_key))
    try:
        with observed("read"):
            first = await anext(stored, b"")
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=job.id, fault=unavailable.fault, detail=unavailable.detail)
        raise Overloaded(
            f"The file was converted, but the store of results cannot deliver it now. Query the job {job.id} for it.",
            RETRY_AFTER_SECONDS,
        ) from unavailable
    return Result(job.download_name or "", job.media_type or "", job.output_size_bytes or 0, first, stored)
