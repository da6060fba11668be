"""Deletes a job on its owner's request: cancels an open one, erases the result of a completed one (interface 4.8)."""

import secrets
from functools import partial

import structlog

from service.errors import Overloaded, RetryableFault, StorageUnavailable
from service.ids import AccountId
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Job
from service.metering.ledger import Release
from service.telemetry import events, metrics
from service.usecases.ending import retry_while_unavailable
from service.usecases.jobs import parse_job_id
from service.usecases.services import Services

_log = structlog.get_logger()

CANCELLED = "The conversion was cancelled on request. Nothing was counted."


async def delete_job(services: Services, account_id: AccountId, untrusted_id: str) -> None:
    """Cancel a job of the account at no charge, or erase its result; a repeat changes nothing.

    A job that completes first stays charged, and its result is erased.

    Raises:
        JobNotFound: there is no such job, it is another account's, or `untrusted_id` is not a job id.
        Overloaded: the store is unavailable, so that the result is not erased yet.
    """
    completed = await cancel_job(services, account_id, untrusted_id)
    if completed is not None and completed.object_key is not None:
        await _erase(services, completed, completed.object_key)


async def cancel_job(services: Services, account_id: AccountId, untrusted_id: str) -> Job | None:
    """Cancel a job of the account at no charge, unless it has completed: then return it, and change nothing.

    Raises:
        JobNotFound: as `delete_job`.
    """
    job_id = parse_job_id(untrusted_id)
    job = await services.jobs.find(job_id, account_id)
    while job.status not in ENDED:
        if await _cancel(services, job):
            return None
        job = await services.jobs.find(job_id, account_id)  # it has ended meanwhile, or another attempt has begun
    return None if job.status is Status.FAILED else job


async def _cancel(services: Services, job: Job) -> bool:
    """Fail an open job, and end its run if it is here; return False if this attempt of it is not open any more.

    A run of another process ends when that process notices, at the latest when it settles.
    """
    if not await _fail(services, job):
        return False
    metrics.JOBS_ENDED.labels("cancelled").inc()
    _log.info(events.JOB_CANCELLED, job_id=job.id)
    for ended in await services.jobs.ended([job.id]):
        await services.runner.cancel(ended)
    services.ends.wake(job.id)
    return True


async def _fail(services: Services, job: Job) -> bool:
    """Fail this attempt of a job; return whether it has, also if the answer to the statement that did so was lost.

    The record says which request has cancelled the job: a client may repeat one that gets no response.
    """
    cancellation = secrets.token_hex(8)
    release = Release(
        job_id=job.id,
        attempt=job.attempt,
        error_message=CANCELLED,
        details={"cancellation": cancellation},
        object_key=job.object_key,  # its run may be storing an output, which the sweep removes
    )
    again = partial(services.ledger.release, release)
    try:
        return await again() is not None
    except RetryableFault:
        if await retry_while_unavailable(again) is not None:
            return True
        return await retry_while_unavailable(partial(services.jobs.was_cancelled, job.id, cancellation))


async def _erase(services: Services, job: Job, object_key: str) -> None:
    try:
        await services.jobs.erase(job.id, object_key, services.own_store.delete)
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=job.id, fault=unavailable.fault, detail=unavailable.detail)
        raise Overloaded(
            "The result could not be erased yet, because the store of results is unavailable: links to it may still "
            "work. Send the request again.",
            RETRY_AFTER_SECONDS,
        ) from unavailable
    _log.info(events.RESULT_ERASED, job_id=job.id)
