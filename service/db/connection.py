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

SESSION = {
    "application_name": "geomill",
    "jit": "off",  # compiling a statement takes longer than any of ours runs
    "random_page_cost": "1.1",  # rows are looked up by their keys, and mostly in memory
    "timezone": "UTC",
}
"""What every session of ours sets."""

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
    """Open a connection of its own, for what outlives a statement: listening, session locks.

    Raises:
        DatabaseUnavailable: the database cannot be reached, or failed in the block.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=CONNECT_SECONDS, server_settings=SESSION)
    except REFUSED as error:
        raise unavailable(error) from error
    try:
        yield connection
    except LOST as error:
        raise unavailable(error) from error
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await connection.close()


def unavailable(cause: Exception) -> DatabaseUnavailable:
    """Log `cause` for the operator, and make of it what a caller may know."""
    _LOG.warning("database.unavailable", cause=type(cause).__name__, detail=str(cause))
    return DatabaseUnavailable(
        f"The service cannot reach its database at the moment. Try again in {RETRY_AFTER_SECONDS} seconds.",
        RETRY_AFTER_SECONDS,
    )
