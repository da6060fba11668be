"""Stored objects and messages that belong to no job, and jobs that have lost their outputs or inputs."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from service.db.pool import Database
from service.db.queries import load
from service.ids import JobId

_SQL = load("audit")
_AT_ONCE = 1000
_LINKED_FOR = timedelta(hours=1)
"""Outputs whose links expire within this time may be removed during the comparison."""


async def time_of(database: Database) -> datetime:
    """Return the current time by the database's clock, which applies to jobs and outputs."""
    now: datetime = await database.fetchval(_SQL["time"])
    return now


async def unknown_keys(database: Database, keys: Sequence[str]) -> list[str]:
    """Return those of `keys` that no job has."""
    unknown: list[str] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        known = {row["object_key"] for row in await database.fetch(_SQL["known_keys"], some)}
        unknown.extend(key for key in some if key not in known)
    return unknown


async def missing(database: Database, stored: Collection[str], now: datetime) -> dict[JobId, str]:
    """Return the keys of outputs that existed before `now`, are not due for removal, and are not `stored`; by job."""
    found: dict[JobId, str] = {}
    after = (now + _LINKED_FOR, UUID(int=0))
    while True:
        async with database.connection() as connection:
            rows = await connection.fetch(_SQL["outputs"], now, *after, _AT_ONCE)
            lost = {JobId(row["id"]): str(row["object_key"]) for row in rows if row["object_key"] not in stored}
            if lost:  # a job may have been deleted meanwhile
                still = {row["id"] for row in await connection.fetch(_SQL["still_completed"], list(lost))}
                found |= {job_id: key for job_id, key in lost.items() if job_id in still}
        if len(rows) < _AT_ONCE:
            return found
        after = (rows[-1]["expires_at"], rows[-1]["id"])


async def recorded_inputs(database: Database) -> dict[str, JobId]:
    """Return the keys of the inputs that workers need, with their jobs."""
    found: dict[str, JobId] = {}
    after = UUID(int=0)
    while True:
        rows = await database.fetch(_SQL["inputs"], after, _AT_ONCE)
        found |= {row["input_key"]: JobId(row["id"]) for row in rows}
        if len(rows) < _AT_ONCE:
            return found
        after = rows[-1]["id"]


async def unknown_jobs(database: Database, jobs: Sequence[JobId]) -> set[JobId]:
    """Return those of these jobs that do not exist."""
    unknown = set(jobs)
    for start in range(0, len(jobs), _AT_ONCE):
        rows = await database.fetch(_SQL["known_jobs"], jobs[start : start + _AT_ONCE])
        unknown.difference_update(row["id"] for row in rows)
    return unknown


async def still_open(database: Database, jobs: Sequence[JobId]) -> list[JobId]:
    """Return those of these jobs that have not ended."""
    return [JobId(row["id"]) for row in await database.fetch(_SQL["still_open"], jobs)]


async def expire(database: Database, jobs: Sequence[JobId]) -> list[JobId]:
    """Make those of `jobs` that are Completed Expired, because their outputs are gone; return which these were."""
    return [JobId(row["id"]) for row in await database.fetch(_SQL["expire_lost"], jobs)]
