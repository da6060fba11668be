"""Checks that ledger, jobs, store and queue agree (interface 6), and makes the others agree with the jobs again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from service.db.pool import Database
from service.ids import JobId, ServerId
from service.jobs.handovers import HandOvers
from service.jobs.outputs import (
    expire,
    jobs_without_output,
    recorded_inputs,
    still_open,
    time_of,
    unknown_jobs,
    unknown_keys,
)
from service.metering.audit import audit_books
from service.storage.port import ObjectKey, Storage

if TYPE_CHECKING:  # loading the client of the queue is of no use without a fleet
    from service.jobs.queue_contents import QueueContents

_AT_ONCE = 500


class StoreComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The store beside the jobs."""

    known: int
    """How many stored outputs belong to a job."""
    orphans: tuple[ObjectKey, ...]
    """Stored outputs that belong to no job."""
    missing: tuple[JobId, ...]
    """Jobs whose output should be in the store and is not."""
    without_input: tuple[JobId, ...] = ()
    """Open jobs that were handed over and whose input should be in the store and is not."""


class QueueComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of a fleet beside the jobs."""

    known: int = 0
    """How many messages belong to a job, which may have ended: a worker removes them in their turn."""
    strays: tuple[str, ...] = ()
    """The subjects of messages that belong to no job."""
    missing: tuple[JobId, ...] = ()
    """Open jobs without a message that were handed over, that no living worker has, and whose gateway is gone."""


async def audit(database: Database, storage: Storage, queue: "QueueContents | None" = None) -> list[str]:
    """Return a sentence for each difference; the list must be empty. `queue` is that of a fleet.

    Takes about 100 bytes of memory per stored output, and about 300 per message.
    """
    books, compared = await audit_books(database), await compare_store(database, storage)
    waiting = await compare_queue(database, queue) if queue is not None else QueueComparison()
    return [
        *books,
        *(f"The stored output {key} belongs to no job." for key in compared.orphans),
        *(f"The output of job {job_id} is not in the store." for job_id in compared.missing),
        *(f"The input of job {job_id} is not in the store." for job_id in compared.without_input),
        *(f"The message {subject} in the queue belongs to no job." for subject in waiting.strays),
        *(f"The job {job_id} waits for a worker, but has no message in the queue." for job_id in waiting.missing),
    ]


async def compare_store(database: Database, storage: Storage) -> StoreComparison:
    """Compare the store with the jobs, while the service runs.

    Raises:
        StorageUnavailable: the store cannot be listed.
    """
    # A job records the key of its output before the output exists, and becomes Completed only after it exists. Objects
    # listed first are therefore no orphans, and the outputs of jobs completed before the listing are in it. So
    # are the inputs of jobs that were handed over before it, for as long as these are open.
    began, inputs = await time_of(database), await recorded_inputs(database)
    stored = {str(entry.key) async for entry in storage.objects()}
    orphans = await unknown_keys(database, sorted(stored))
    known = len(stored) - len(orphans)
    if orphans:  # unless they were removed since the listing
        orphans = sorted({str(entry.key) async for entry in storage.objects()}.intersection(orphans))
    return StoreComparison(
        known=known,
        orphans=tuple(map(ObjectKey, orphans)),
        missing=tuple(await jobs_without_output(database, stored, began)),
        without_input=tuple(await still_open(database, [job for key, job in inputs.items() if key not in stored])),
    )


async def compare_queue(database: Database, queue: "QueueContents") -> QueueComparison:
    """Compare the queue with the jobs, while the service runs.

    Raises:
        QueueUnavailable: the queue cannot be looked at.
    """
    # A job that waits keeps its message until it has ended, so what was waiting before the queue was looked at, and
    # waits after that, should be there.
    handovers = _handovers(database, queue)
    waiting = {handover.job.id async for handover in handovers.all_unclaimed(_AT_ONCE)}
    jobs = await queue.jobs()
    unknown = await unknown_jobs(database, [job_id for job_id in jobs.values() if job_id is not None])
    strays = {subject for subject, job_id in jobs.items() if job_id is None or job_id in unknown}
    known = len(jobs) - len(strays)
    missing = waiting.difference(jobs.values())
    if strays or missing:  # unless they were removed, or handed over again, meanwhile
        missing &= {handover.job.id async for handover in handovers.all_unclaimed(_AT_ONCE)}
        jobs = await queue.jobs()
        strays, missing = strays & jobs.keys(), missing.difference(jobs.values())
    return QueueComparison(known=known, strays=tuple(sorted(strays)), missing=tuple(sorted(missing)))


async def reconcile_queue(database: Database, queue: "QueueContents", compared: QueueComparison) -> None:
    """Make the queue agree with the jobs: remove messages that belong to none, and hand over again what it lacks.

    Raises:
        QueueUnavailable: the queue failed; what is left to do is found by another comparison.
    """
    await queue.remove(compared.strays)
    missing = frozenset(compared.missing)
    if missing:
        everything = _handovers(database, queue).all_unclaimed(_AT_ONCE)
        await queue.offer([handover async for handover in everything if handover.job.id in missing])


def _handovers(database: Database, queue: "QueueContents") -> HandOvers:
    return HandOvers(database, ServerId(uuid4()), queue.lease)


async def reconcile(database: Database, storage: Storage, compared: StoreComparison) -> Sequence[JobId]:
    """Make the jobs and the store agree: jobs without their output become Expired, outputs without a job are deleted.

    What was charged stays charged. Returns the jobs that became Expired; others may have ended in the meantime.

    Raises:
        StorageUnavailable: the store failed; what is left to do is found by another comparison.
    """
    expired = [
        job_id
        for start in range(0, len(compared.missing), _AT_ONCE)
        for job_id in await expire(database, compared.missing[start : start + _AT_ONCE])
    ]
    for start in range(0, len(compared.orphans), _AT_ONCE):
        await storage.delete(compared.orphans[start : start + _AT_ONCE])
    return expired
