"""A connection: the parameters of its session, and the translation of the driver's errors."""

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
"""Start-up parameters of every session; connection poolers accept them and pass them on to their servers."""

SESSION = {
    **PORTABLE_SESSION,
    "jit": "off",  # compiling takes longer than any of our statements runs
    "random_page_cost": "1.1",  # rows are looked up by key, mostly in memory
}
"""Start-up parameters of a session without a pooler."""

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server is stopping or starting, or ended the statement
    asyncpg.InsufficientResourcesError,  # too many connections, out of memory, disk full
    asyncpg.ReadOnlySQLTransactionError,  # the server has become a standby
    TimeoutError,  # the statement exceeded its time limit
)
"""Errors during statements that mean that the database is unavailable."""

REFUSED = (
    *LOST,
    OSError,  # nothing listens, or the host is unreachable
    asyncpg.InterfaceError,  # the pool is closing
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    ValueError,  # the URL cannot be parsed
)
"""Errors before there is a connection."""

_LOG = structlog.get_logger()


@asynccontextmanager
async def open_connection(dsn: str) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
    """Open a connection outside our pools, which also works through a pooler.

    A pooler may run each transaction on another server, so the connection must not use session locks, settings or
    prepared statements.

    Raises:
        DatabaseUnavailable: the database is unreachable, or failed in the block.
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
    """Return whether a pooler, such as PgBouncer, is between this process and PostgreSQL.

    A pooler announces an invented process id; the server behind it knows its own.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    async with open_connection(dsn) as connection:
        return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())


def unavailable(cause: Exception) -> DatabaseUnavailable:
    """Log `cause` for the operator, and return the error for the caller."""
    _LOG.warning("database.unavailable", cause=type(cause).__name__, detail=str(cause))
    return DatabaseUnavailable(
        f"The service cannot reach its database at the moment. Try again in {RETRY_AFTER_SECONDS} seconds.",
        RETRY_AFTER_SECONDS,
    )
