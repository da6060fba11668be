"""A connection outside our pools, and the parameters of every session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import asyncpg

from service.db.faults import LOST, REFUSED, unavailable
from service.db.hosts import Hosts

CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 5.0

PORTABLE_SESSION = {"application_name": "geomill", "timezone": "UTC"}
"""Start-up parameters of every session; connection poolers accept them and pass them on to their servers."""

SESSION = {
    **PORTABLE_SESSION,
    "jit": "off",  # compiling takes longer than any of our statements runs
    "default_transaction_isolation": "read committed",  # statements are written for it, and others refuse some of them
    "random_page_cost": "1.1",  # rows are looked up by key, mostly in memory
}
"""Start-up parameters of a session without a pooler."""


@asynccontextmanager
async def open_connection(dsn: str) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
    """Open a connection outside our pools, which also works through a pooler.

    A pooler may run each transaction on another server, so the connection must not use session locks, settings or
    prepared statements.

    Raises:
        DatabaseUnavailable: the database is unreachable, or failed in the block.
    """
    try:
        connection = await Hosts(dsn, CONNECT_SECONDS).connect(server_settings=PORTABLE_SESSION, statement_cache_size=0)
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
