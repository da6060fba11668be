"""Checks that ledger, jobs and store agree (interface 6)."""

from service.db.pool import Database
from service.jobs.outputs import jobs_without_output, time_of, unknown_keys
from service.metering.audit import audit_books
from service.storage.port import Storage


async def audit(database: Database, storage: Storage) -> list[str]:
    """Return a sentence for each difference; the list must be empty.

    Takes about 100 bytes of memory per stored output.
    """
    return [*await audit_books(database), *await _audit_store(database, storage)]


async def _audit_store(database: Database, storage: Storage) -> list[str]:
    # A job records the key of its output before the output exists, and becomes Completed only after it exists. Objects
    # listed first are therefore no orphans, and the outputs of jobs completed before the listing are in it.
    began = await time_of(database)
    stored = {str(entry.key) async for entry in storage.objects()}
    orphans = await unknown_keys(database, sorted(stored))
    if orphans:  # unless they were removed since the listing
        orphans = sorted({str(entry.key) async for entry in storage.objects()}.intersection(orphans))
    missing = await jobs_without_output(database, stored, began)
    return [
        *(f"The stored output {key} belongs to no job." for key in orphans),
        *(f"The output of job {job_id} is not in the store." for job_id in missing),
    ]
