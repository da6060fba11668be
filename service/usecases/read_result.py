"""Reads the result of a completed job from the store, for a client that wants the file itself (interface 4.1)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from service.errors import DownloadExpired, ObjectMissing, Overloaded, RequestFault, StorageUnavailable, TooManyRequests
from service.ids import AccountId
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.storage.observed import observed
from service.storage.port import ObjectKey
from service.telemetry import events
from service.usecases.account_places import AccountPlaces
from service.usecases.services import Services

_log = structlog.get_logger()
PER_ACCOUNT = 16
"""Downloads that an account may have in progress in one process."""
_places = AccountPlaces(PER_ACCOUNT, wait_seconds=30.0)


def refuse_if_downloading(account_id: AccountId) -> None:
    """Refuse a file whose account has all its downloads in progress, before it is received and charged.

    Raises:
        TooManyRequests: it has.
    """
    if _places.are_taken(account_id):
        message = f"This account has {PER_ACCOUNT} downloads in progress. Send the request again when some have ended."
        raise TooManyRequests(message, RETRY_AFTER_SECONDS)


async def read_result(services: Services, account_id: AccountId, job: Job) -> AsyncGenerator[bytes]:
    """Iterate over the result of a job that has succeeded; close the iterator if you leave it early.

    From its first piece to its end, it has one of the account's places, however slowly the client reads. What goes
    wrong before that can still have a response of its own.

    Raises:
        DownloadExpired: the result is no longer kept.
        Overloaded: the store cannot deliver it now, or other downloads of the account do not end.
    """
    gone = DownloadExpired(
        f"The result of the job {job.id} is no longer kept. Convert the file again, with another Idempotency-Key if "
        "you sent one."
    )
    if job.status is not Status.COMPLETED or job.object_key is None:
        raise gone
    stored = read_while_kept(services, job, ObjectKey(job.object_key), gone)
    busy = Overloaded(
        f"The file was converted, but other downloads of this account have not ended. Query the job {job.id} for it.",
        RETRY_AFTER_SECONDS,
    )
    async with _places.taking_one(account_id, busy), aclosing(stored):
        yield await _first(stored, job)
        async for piece in stored:
            yield piece


async def read_while_kept(services: Services, job: Job, key: ObjectKey, gone: RequestFault) -> AsyncGenerator[bytes]:
    """Iterate over the result of a job that has succeeded, or over the preview of it; `key` is that of either.

    Raises `gone` if the store lacks it because the result has been erased, or has expired, since the job was read.

    Raises:
        StorageUnavailable: the store is, or it lacks an object that it should have, or a part of the result.
    """
    size = job.output_size_bytes if key == job.object_key else None
    read = 0
    try:
        async with aclosing(services.storage.read(key)) as pieces:
            async for piece in pieces:
                read += len(piece)
                if size is not None and read > size:
                    break
                yield piece
        if size is not None and read != size:
            raise StorageUnavailable("down", f"the store does not give the {size} bytes of a result, but {read}")
    except ObjectMissing:
        if any(found.status is Status.COMPLETED for found in await services.jobs.of_any([job.id])):
            raise
        raise gone from None


async def _first(stored: AsyncGenerator[bytes], job: Job) -> bytes:
    try:
        with observed("read"):
            return await anext(stored, b"")
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=job.id, fault=unavailable.fault, detail=unavailable.detail)
        raise Overloaded(
            f"The file was converted, but the store of results cannot deliver it now. Query the job {job.id} for it.",
            RETRY_AFTER_SECONDS,
        ) from unavailable
