"""Checks that ledger, jobs and store agree (interface 6), and makes the jobs and the store agree again."""

from collections.abc import Sequence

import msgspec

from service.db.pool import Database
from service.ids import JobId
from service.jobs.outputs import (
    expire,
    jobs_without_output,
    recorded_inputs,
    still_open,
    time_of,
    unknown_keys,
)
from service.metering.audit import audit_books
from service.storage.port import ObjectKey, Storage

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


async def audit(database: Database, storage: Storage) -> list[str]:
    """Return a sentence for each difference; the list must be empty.

    Takes about 100 bytes of memory per stored output.
    """
    books, compared = await audit_books(database), await compare_store(database, storage)
    return [
        *books,
        *(f"The stored output {key} belongs to no job." for key in compared.orphans),
        *(f"The output of job {job_id} is not in the store." for job_id in compared.missing),
        *(f"The input of job {job_id} is not in the store." for job_id in compared.without_input),
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
