"""The connections that requests share.

A capability takes one for as long as its statements run, never while a file converts:

    async with database.connection() as connection:
        row = await connection.fetchrow(QUERIES["read_job"], job_id)

A database that cannot be reached, refuses, dies underway or is too slow raises `DatabaseUnavailable` from that block
(contract 1: 503 with Retry-After). Whether a transaction that was underway took effect is then unknown, so callers
are built to be repeated. Every other error of a statement, such as a violated constraint, is its caller's to know.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio
import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from service.db.connection import CLOSE_SECONDS, CONNECT_SECONDS, LOST, REFUSED, SESSION, unavailable
from service.db.queries import name_of

Watch = Callable[[str, float], None]
"""Is told the name of a statement and the seconds that it took."""
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"


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
            except asyncpg.InternalClientError as error:
                # The server's farewell came between two statements and the driver lost its bearings; so it is over.
                connection.terminate()
                raise asyncpg.ConnectionDoesNotExistError(str(error)) from error
            finally:
                await self._pool.release(connection)
        except LOST as error:
            raise unavailable(error) from error

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
        except REFUSED as error:
            raise unavailable(error) from error


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
    idle_seconds: float = 10.0,
    watch: Watch | None = None,
) -> AsyncGenerator[Database]:
    """Open a pool of at most `max_size` connections to the database `dsn`.

    16 serve a gateway: statements take well under a millisecond of the server's time. What a busy moment has opened is
    closed when nobody has needed it for `idle_seconds`: opening it takes 5 ms of CPU, keeping it 4 MB of memory.
    `watch` hears of each statement.

    Raises:
        DatabaseUnavailable: the database cannot be reached now.
    """
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=max_size,
            command_timeout=command_timeout_seconds,
            timeout=CONNECT_SECONDS,
            max_inactive_connection_lifetime=idle_seconds,
            init=partial(_prepare, watch),
            reset=_keep,
            server_settings=SESSION,
        )
    except REFUSED as error:
        raise unavailable(error) from error
    try:
        yield Database(pool, acquire_timeout_seconds=acquire_timeout_seconds)
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await pool.close()
        pool.terminate()


async def _prepare(watch: Watch | None, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Let JSON columns be plain Python objects, and tell `watch` of the statements."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_encode_json, decoder=msgspec.json.decode)
    if watch is not None:
        connection.add_query_logger(lambda record: watch(name_of(record.query), record.elapsed))


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def _keep(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Return a connection as it is.

    The driver would send a query at each return to undo SET, LISTEN and session locks, a third of the cost of a small
    statement, and nothing here does those on a pooled connection. An abandoned transaction it rolls back all the same.
    """
