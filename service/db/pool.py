"""The connection pool, and the one place where the driver's failures become ours.

A capability takes a connection for as long as its statements run, never while a file converts:

    async with database.connection() as connection:
        row = await connection.fetchrow(QUERIES["read_job"], job_id)

A database that cannot be reached, refuses, dies underway or is too slow raises `DatabaseUnavailable` from that block
(contract 1: 503 with Retry-After). Whether a transaction that was underway took effect is then unknown, so callers
are built to be repeated. Every other error of a statement, such as a violated constraint, is its caller's to know.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
import asyncpg
import msgspec
import structlog
from asyncpg.pool import PoolConnectionProxy

from service.errors import DatabaseUnavailable

Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

RETRY_AFTER_SECONDS = 5
CLOSING_SECONDS = 5.0

_LOG = structlog.get_logger("service.db")

_REFUSED = (
    OSError,  # nothing listens, the host is gone, or (as TimeoutError) every connection stayed taken
    asyncpg.InterfaceError,  # the pool is closing
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
"""What besides `_LOST` can go wrong before there is a connection."""

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server stops, starts, or ended the statement
    asyncpg.InsufficientResourcesError,  # too many connections, out of memory, disk full
    asyncpg.ReadOnlySQLTransactionError,  # this is a standby now
    TimeoutError,  # the statement took longer than the pool allows
)
"""What the database's own trouble looks like in the middle of statements."""


class Database:
    """Connections to one database."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, acquire_timeout_seconds: float) -> None:
        self._pool = pool
        self._acquire_timeout_seconds = acquire_timeout_seconds

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection; each statement is a transaction of its own.

        Raises:
            DatabaseUnavailable: the database failed, or every connection stayed taken.
        """
        connection = await self._acquire()
        try:
            try:
                yield connection
            except asyncpg.InterfaceError as error:
                if _is_open(connection):
                    raise
                raise asyncpg.ConnectionDoesNotExistError(str(error)) from error
            finally:
                await self._pool.release(connection)
        except _LOST as error:
            raise _unavailable(error) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection whose statements take effect together, or not at all when the block raises.

        Raises:
            DatabaseUnavailable: as `connection`.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def _acquire(self) -> Connection:
        try:
            return await self._pool.acquire(timeout=self._acquire_timeout_seconds)
        except (*_REFUSED, *_LOST) as error:
            raise _unavailable(error) from error


def _is_open(connection: Connection) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back, as it does when a connection ends
        return False


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    max_size: int = 16,
    command_timeout_seconds: float = 10.0,
    acquire_timeout_seconds: float = 5.0,
) -> AsyncGenerator[Database]:
    """Open a pool of at most `max_size` connections to the database `dsn`.

    16 serve a gateway: statements take well under a millisecond of the server's time.

    Raises:
        DatabaseUnavailable: the database cannot be reached now.
    """
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=max_size,
            command_timeout=command_timeout_seconds,
            timeout=acquire_timeout_seconds,
            init=_prepare,
            reset=_keep,
            server_settings=_SESSION,
        )
    except (*_REFUSED, *_LOST) as error:
        raise _unavailable(error) from error
    try:
        yield Database(pool, acquire_timeout_seconds=acquire_timeout_seconds)
    finally:
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            await pool.close()
        pool.terminate()


_SESSION = {
    "application_name": "geomill",
    "jit": "off",  # compiling a statement takes longer than any of ours runs
    "timezone": "UTC",
}


async def _prepare(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Let JSON columns be plain Python objects."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_encode_json, decoder=msgspec.json.decode)


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def _keep(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Return a connection as it is.

    The driver would send a query at each return to undo SET, LISTEN and session locks, a third of the cost of a small
    statement, and nothing here does those on a pooled connection. An abandoned transaction it rolls back all the same.
    """


def _unavailable(cause: Exception) -> DatabaseUnavailable:
    _LOG.warning("database.unavailable", cause=type(cause).__name__, detail=str(cause))
    return DatabaseUnavailable(
        f"The service cannot reach its database at the moment. Try again in {RETRY_AFTER_SECONDS} seconds.",
        RETRY_AFTER_SECONDS,
    )
