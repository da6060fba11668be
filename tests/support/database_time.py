"""The clock of a test's database, by which the service judges jobs, leases and keys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from service.db.pool import Database

_TAKE_OVER = """
CREATE TABLE IF NOT EXISTS test_time (now timestamptz NOT NULL);
CREATE OR REPLACE FUNCTION service_time() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now FROM test_time';
"""


def far_ahead() -> datetime:
    """The clock of a host that is never behind the database's."""
    return datetime(9000, 1, 1, tzinfo=UTC)


async def stop_time(database: Database, now: datetime) -> None:
    """Set the database's time to `now`, where it stays."""
    async with stopping_time(database, now):
        pass


@asynccontextmanager
async def stopping_time(database: Database, now: datetime) -> AsyncIterator[None]:
    """Do the same as soon as the block ends, in which a host's clock can be set; heartbeats wait until both are."""
    async with database.transaction() as connection:
        await connection.execute("LOCK TABLE server IN EXCLUSIVE MODE")
        await connection.execute(_TAKE_OVER)
        await connection.execute("DELETE FROM test_time")
        await connection.execute("INSERT INTO test_time VALUES ($1)", now)
        yield


async def reach_time(database: Database, now: datetime) -> None:
    """Advance the database's time to `now`, unless it is later already."""
    async with database.connection() as connection:
        await connection.execute("UPDATE test_time SET now = greatest(now, $1)", now)
