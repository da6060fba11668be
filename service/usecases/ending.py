"""Records the end of a job: released by this attempt, or as another attempt has ended it.

No client learns of an end before it is recorded.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Literal, TypeVar

import anyio
import msgspec
import structlog

from sandbox.pool import Pool
from service.engine.convert import Engine
from service.errors import (
    DatabaseUnavailable,
    JobNotFound,
    LimitRefusal,
    MultipleLayers,
    Overloaded,
    RetryableFault,
    StorageUnavailable,
)
from service.intake.workspace import WorkArea
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Details, Job
from service.jobs.register import JobRegister
from service.jobs.spec import JobSpec
from service.metering.ledger import Ledger, Release
from service.storage.port import Storage
from service.telemetry import events
from service.usecases.own_store import OwnStore

_log = structlog.get_logger()
_T = TypeVar("_T")

JobOutcome = Literal["refused", "rejected", "storage", "queue", "stopped", "forgotten", "unknown", "defect"]
"""The outcome of a failed job, as operators count it; recovery decides about jobs whose outcome is unknown."""
STOPPED = "The service was stopped before the conversion ended. Nothing was counted; send the file again."
FORGOTTEN = "The service's database was interrupted during the conversion. Nothing was counted; send the file again."
UNREACHED = "The service could not reach its converters. Nothing was counted; send the file again."
DATABASE_RETRY_SECONDS = 60.0
"""How long the end of a job waits for an unavailable database; after that, recovery ends the job."""


class JobParts(msgspec.Struct, frozen=True, kw_only=True):
    """What running a job needs."""

    ledger: Ledger
    jobs: JobRegister
    engine: Engine
    pool: Pool
    storage: Storage
    own_store: OwnStore
    """Stores and deletes in `storage`, and knows whether it is the one of this database."""
    work_area: WorkArea
    gives_back: bool = False
    """Whether a job that this process cannot finish is left open for another process."""


async def release(
    parts: JobParts, spec: JobSpec, failed: Job, *, interrupted: bool, may_have_stored: bool
) -> tuple[Job, bool]:
    """Fail a job: nothing is charged, no output is kept. Return the ended job, and whether this failure ended it.

    Raises:
        Overloaded: another attempt holds the job and has not ended it.
    """
    change = Release(
        job_id=failed.id,
        attempt=failed.attempt,
        error_message=failed.error_message or "",
        details=failed.details.encode(),
        feature_count=failed.feature_count,
        geometry_type=failed.geometry_type,
        processing_time_ms=failed.processing_time_ms,
        object_key=spec.object_key if may_have_stored else None,  # the sweep removes it
        interrupted=interrupted,
    )
    ended_at = await retry_while_unavailable(lambda: parts.ledger.release(change))
    if ended_at is not None:
        if may_have_stored:
            await _discard_output(parts, spec)
        return msgspec.structs.replace(failed, completed_at=ended_at), True
    insert = partial(parts.jobs.insert_failed, failed, spec.account_id, interrupted=interrupted)
    while True:
        found = await end_on_record(parts, spec, may_have_stored=may_have_stored)
        if found is not None:
            return found, _is_same_end(found, failed)
        inserted = await retry_while_unavailable(insert)
        if inserted is not None:
            return inserted, True


async def end_on_record(parts: JobParts, spec: JobSpec, *, may_have_stored: bool) -> Job | None:
    """Return the job as another attempt ended it, and remove what this attempt has stored, and nothing else.

    None if the job no longer exists.

    Raises:
        Overloaded: another attempt holds the job and has not ended it.
    """
    found: Job | None = None
    with suppress(JobNotFound):
        found = await retry_while_unavailable(lambda: parts.jobs.find(spec.job.id, spec.account_id))
    is_kept = found is not None and found.object_key == spec.object_key and found.status is not Status.FAILED
    if may_have_stored and not is_kept:
        await _discard_output(parts, spec)
    if found is not None and found.status not in ENDED:
        message = f"Another process is working on the job {found.id}. Query the job for its result."
        raise Overloaded(message, RETRY_AFTER_SECONDS)
    return found


def _is_same_end(found: Job, failed: Job) -> bool:
    """Whether a job has ended as this attempt wanted: then the answer to the statement that did so was lost."""
    ends = [(job.status, job.attempt, job.error_message, job.processing_time_ms) for job in (found, failed)]
    return ends[0] == ends[1]


def details_of(error: BaseException) -> Details:
    """Return the flags that a rejection adds to the response (interface 7)."""
    if isinstance(error, LimitRefusal):
        return Details(limit=error.limit, needs_upgrade=error.needs_upgrade, payment_past_due=error.payment_past_due)
    if isinstance(error, MultipleLayers):
        return Details(target_format=error.target_format, layers=error.layers)
    return Details()


async def retry_while_unavailable(change: Callable[[], Awaitable[_T]]) -> _T:
    """Make a repeatable change to the database, and retry it while the database is unavailable.

    Raises:
        RetryableFault: it stayed unavailable.
    """
    give_up_at = time.monotonic() + DATABASE_RETRY_SECONDS
    pause = 0.1
    while True:
        try:
            return await change()
        except RetryableFault:
            if time.monotonic() + pause > give_up_at:
                raise
        await anyio.sleep(pause)
        pause = min(pause * 2, 2.0)


async def _discard_output(parts: JobParts, spec: JobSpec) -> None:
    try:
        await parts.own_store.delete([spec.object_key])
    except DatabaseUnavailable:  # the sweep removes it
        return
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=spec.job.id, fault=unavailable.fault)
