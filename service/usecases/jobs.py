"""Jobs as their owner sees them, each with a new link if its output is available (interface 2.3, 4.6, 4.7)."""

from contextlib import AbstractAsyncContextManager
from uuid import UUID

import anyio
import msgspec
import structlog

from service.errors import JobNotFound, StorageUnavailable, TooManyRequests
from service.ids import AccountId, JobId
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Job
from service.storage.observed import observed
from service.storage.port import Link, ObjectKey
from service.telemetry import events
from service.usecases.account_places import AccountPlaces
from service.usecases.services import Services

_log = structlog.get_logger()
LISTS_PER_ACCOUNT = 2
"""Lists of jobs that an account may have in progress in one process: one of a hundred jobs may have 90 MB."""
_lists = AccountPlaces(LISTS_PER_ACCOUNT, wait_seconds=30.0)


class LinkedJob(msgspec.Struct, frozen=True):
    """The current state of a job, and the link to its output if there is a valid one."""

    job: Job
    link: Link | None


async def with_link(services: Services, job: Job) -> LinkedJob:
    """Sign a link to the output of a Completed job within its retention; there is none if the store cannot sign."""
    if job.status is not Status.COMPLETED or job.object_key is None or job.expires_at is None:
        return LinkedJob(job, None)
    try:
        with observed("link"):
            link = await services.storage.link(
                ObjectKey(job.object_key),
                expires_at=job.expires_at,
                download_name=job.download_name or "",
                media_type=job.media_type or "",
            )
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=job.id, fault=unavailable.fault, detail=unavailable.detail)
        link = None
    return LinkedJob(job, link)


async def read_job(services: Services, account_id: AccountId, untrusted_id: str) -> LinkedJob:
    """Return one job of the account.

    Raises:
        JobNotFound: there is no such job, it is another account's, or `untrusted_id` is not a job id.
    """
    return await with_link(services, await services.jobs.find(parse_job_id(untrusted_id), account_id))


async def await_job(services: Services, account_id: AccountId, untrusted_id: str, seconds: float) -> LinkedJob:
    """Return one job of the account once it has ended, and after `seconds` at the latest.

    Returns sooner if this process is about to stop, or too many callers wait.

    Raises:
        JobNotFound: as `read_job`.
    """
    job_id = parse_job_id(untrusted_id)
    with services.ends.watching(job_id, account_id) as may_have_ended:  # from before the job is read
        job = await services.jobs.find(job_id, account_id)
        if job.status not in ENDED:
            with anyio.move_on_after(seconds):
                await may_have_ended.wait()
            job = await services.jobs.find(job_id, account_id)
    return await with_link(services, job)


def listing(account_id: AccountId) -> AbstractAsyncContextManager[None]:
    """Have one of the account's places for a list, until its client has read it: a job may be a megabyte.

    Raises:
        TooManyRequests: other lists of the account do not end.
    """
    message = f"This account has {LISTS_PER_ACCOUNT} lists of jobs in progress. Finish reading them first."
    return _lists.taking_one(account_id, TooManyRequests(message, RETRY_AFTER_SECONDS))


async def read_recent_jobs(services: Services, account_id: AccountId, limit: int) -> list[LinkedJob]:
    """Return the account's newest jobs, newest first."""
    return [await with_link(services, job) for job in await services.jobs.recent(account_id, limit)]


def parse_job_id(untrusted_id: str) -> JobId:
    """Parse a job id.

    Raises:
        JobNotFound: it is not one.
    """
    try:
        return JobId(UUID(untrusted_id))
    except ValueError:
        raise JobNotFound("There is no such job in this account. A job id is a UUID.") from None
