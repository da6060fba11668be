"""Which stored outputs belong to a job, and which jobs have lost theirs."""

from collections.abc import Collection, Sequence
from datetime import datetime

from service.db.pool import Database
from service.db.queries import load
from service.identifiers import JobId

_SQL = load("audit")
_AT_ONCE = 1000


async def unknown_keys(database: Database, keys: Sequence[str]) -> list[str]:
    """Return those of `keys` that no job knows of."""
    unknown: list[str] = []
    async with database.connection() as connection:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            known = {row["object_key"] for row in await connection.fetch(_SQL["known_keys"], some)}
            unknown.extend(key for key in some if key not in known)
    return unknown


async def jobs_without_output(database: Database, stored: Collection[str], now: datetime) -> list[JobId]:
    """Return the jobs whose output was there before `now`, is not due for removal, and is not among `stored`."""
    async with database.transaction() as connection:
        rows = connection.cursor(_SQL["outputs"], now, prefetch=_AT_ONCE)
        return [JobId(row["id"]) async for row in rows if row["object_key"] not in stored]
