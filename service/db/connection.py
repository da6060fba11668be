"""One connection: how its session is set up, and the one place where the driver's failures become ours."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import asyncpg
import structlog

from service.errors import DatabaseUnavailable

CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 5.0
RETRY_AFTER_SECONDS = 5

PORTABLE_SESSION = {"application_name": "geomill", "timezone": "UTC"}
"""What every session sets: start-up parameters that connection poolers accept and carry over to their servers."""

SESSION = {
    **PORTABLE_SESSION,
    "jit": "off",  # compiling a statement takes longer than any of ours runs
    "random_page_cost": "1.1",  # rows are looked up by their keys, and mostly in memory
}
"""What a session sets that has its server to itself."""

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server stops, starts, or ended the statement
    asyncpg.InsufficientResourcesError,  # too many connections, out of memory, disk full
    asyncpg.ReadOnlySQLTransactionError,  # this is a standby now
    TimeoutError,  # the statement took longer than it may
)
"""What the database's own trouble looks like in the middle of statements."""

REFUSED = (
    *LOST,
    OSError,  # nothing listens, or its host is gone
    asyncpg.InterfaceError,  # the pool is closing
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
"""What can go wrong before there is a connection."""

_LOG = structlog.get_logger("service.db")


@asynccontextmanager
async def open_connection(dsn: str) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
    """Open a connection outside of any pool of ours, which works through a pooler too.

    A pooler may run each transaction on another server, so nothing outlives one: no session lock, no setting, no
    prepared statement.

    Raises:
        DatabaseUnavailable: the database cannot be reached, or failed in the block.
    """
    try:
        connection = await asyncpg.connect(
            dsn, timeout=CONNECT_SECONDS, server_settings=PORTABLE_SESSION, statement_cache_size=0
        )
    except REFUSED as error:
        raise unavailable(error) from error
    try:
        yield connection
    except LOST as error:
        raise unavailable(error) from error
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await connection.close()


async def is_pooled(dsn: str) -> bool:
    """Whether a pooler, such as PgBouncer, stands between this process and PostgreSQL.

    A pooler makes up the process id that it announces; the server behind it knows its own.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    async with open_connection(dsn) as connection:
        return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())


def unavailable(cause: Exception) -> DatabaseUnavailable:
    """Log `cause` for the operator, and make of it what a caller may know."""
    _LOG.warning("database.unavailable", cause=type(cause).__name__, detail=str(cause))
    return DatabaseUnavailable(
        f"The service cannot reach its database at the moment. Try again in {RETRY_AFTER_SECONDS} seconds.",
        RETRY_AFTER_SECONDS,
    )
