"""The connections that requests share.

A capability borrows one while its statements run, never while a file converts: for one statement, or for several.

    row = await database.fetchrow(QUERIES["read_job"], job_id)

    async with database.connection() as connection:
        ...

If the database is unreachable, refuses the connection, fails or is too slow, both raise `DatabaseUnavailable`
(interface 7.1: 503 with Retry-After). It is then unknown whether a running transaction took effect, so callers are
idempotent. Every other error of a statement, such as a violated constraint, is passed on to its caller.

A caller waits longer for a connection while the database answers others: it is slow then, not away.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import anyio
import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from service.db.connection import CLOSE_SECONDS, CONNECT_SECONDS, PORTABLE_SESSION, SESSION, is_pooled
from service.db.faults import LOST, REFUSED, unavailable
from service.db.hosts import Hosts
from service.db.queries import name_of

Watch = Callable[[str, float], None]
"""Receives the name of a statement and its duration in seconds."""
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

PREPARED_STATEMENTS = 100
"""Prepared statements kept per connection, more than there are."""

RELEASE_SECONDS = 1.0
"""How long the server may take to cancel a statement or roll back; after that, the connection is closed instead."""

FULL_SECONDS = 30.0
"""How long a full disk of the server counts: only another large statement can show whether it still is full."""

MOST_AT_HAND = 3
"""Connections kept outside the pool: what admissions and settlements that overlap need."""

LOOKS = 5
"""How often a caller that waits looks for answers before it gives up. A process that got no core for seconds, and
could not have seen any, has looked only once in that time."""

MOST_PATIENCE = 4
"""How many times longer a caller waits for a connection of a database that answers others."""


class Database:
    """Connections to one database."""

    def __init__(
        self, pool: "asyncpg.Pool[asyncpg.Record]", *, acquire_timeout_seconds: float, idle_seconds: float
    ) -> None:
        self._pool = pool
        self._idle_seconds = idle_seconds
        self.acquire_timeout_seconds = acquire_timeout_seconds
        self._at_hand: deque[tuple[Connection, float]] = deque()
        self._queuing = 0
        self._answers = 0
        self._full_at = -math.inf

    @property
    def is_full(self) -> bool:
        """Whether a statement has found the server's disk full a moment ago; small ones may succeed all the same."""
        return time.monotonic() - self._full_at < FULL_SECONDS

    def note_full(self) -> None:
        """Note that a statement has found the server's disk full."""
        self._full_at = time.monotonic()

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection; each statement is its own transaction.

        Raises:
            DatabaseUnavailable: the database failed, or no connection became free in time.
        """
        return _Loan(self)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction, which is rolled back if the block raises.

        Raises:
            DatabaseUnavailable: see `connection`.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, statement: str, *arguments: Any) -> "list[asyncpg.Record]":
        """Run one statement and return its rows; this and the next three raise what `connection` raises."""
        async with self.connection() as connection:
            return await connection.fetch(statement, *arguments)

    async def fetchrow(self, statement: str, *arguments: Any) -> asyncpg.Record | None:
        """Run one statement and return its first row."""
        async with self.connection() as connection:
            return await connection.fetchrow(statement, *arguments)

    async def fetchval(self, statement: str, *arguments: Any) -> Any:
        """Run one statement and return the first value of its first row."""
        async with self.connection() as connection:
            return await connection.fetchval(statement, *arguments)

    async def execute(self, statement: str, *arguments: Any) -> None:
        """Run one statement."""
        async with self.connection() as connection:
            await connection.execute(statement, *arguments)

    async def take(self) -> Connection:
        """Acquire a connection, to be returned with `keep` or `give_back`."""
        while self._at_hand:
            connection, _since = self._at_hand.pop()
            if _is_open(connection):
                return connection
        self._queuing += 1
        try:
            async with self.patience():
                return await self._connected()
        except REFUSED as error:
            raise unavailable(error) from error
        finally:
            self._queuing -= 1

    async def _connected(self) -> Connection:
        """Acquire a connection; one that took too long to open is none if the database has answered meanwhile."""
        while True:
            before = self._answers
            try:
                return await self._pool.acquire()
            except TimeoutError:
                if self._answers == before:
                    raise

    @asynccontextmanager
    async def patience(self) -> AsyncIterator[None]:
        """End the block with a `TimeoutError` once it has waited too long for a connection.

        That is `acquire_timeout_seconds` without an answer of the database to anybody, or `MOST_PATIENCE` times that.
        """
        loop = asyncio.get_running_loop()
        pause = self.acquire_timeout_seconds / LOOKS
        give_up_at = loop.time() + MOST_PATIENCE * self.acquire_timeout_seconds
        next_look: asyncio.TimerHandle

        def look(answers: int, left: int) -> None:
            nonlocal next_look
            left = left - 1 if self._answers == answers else LOOKS
            if left == 0 or loop.time() > give_up_at:
                limit.reschedule(loop.time())
            else:
                next_look = loop.call_later(pause, look, self._answers, left)

        next_look = loop.call_later(pause, look, self._answers, LOOKS)
        try:
            async with asyncio.timeout(None) as limit:
                yield
        finally:
            next_look.cancel()

    async def keep(self, connection: Connection) -> None:
        """Return a connection without errors; it is kept for the next caller, unless one is waiting.

        Returning it to the pool and acquiring it again takes longer than a small statement. One that nobody has used
        for a while does return, so that the pool closes it.
        """
        self._answers += 1
        if self._queuing or len(self._at_hand) >= MOST_AT_HAND:
            await self.give_back(connection)
            return
        now = time.monotonic()
        self._at_hand.append((connection, now))
        if now - self._at_hand[0][1] > self._idle_seconds:
            await self.give_back(self._at_hand.popleft()[0])

    async def give_back(self, connection: Connection) -> None:
        """Return a connection to the pool, which rolls back an open transaction and closes idle connections."""
        await self._pool.release(connection, timeout=RELEASE_SECONDS)

    async def replace_idle(self) -> None:
        """Replace all connections that nobody has: they may be as dead as one on which a statement got no answer.

        A connection whose other end has vanished silently, as with its host, stays open on this side.
        """
        await self._pool.expire_connections()
        while self._at_hand:
            connection, _since = self._at_hand.pop()
            connection.terminate()
            with suppress(*LOST):
                await self.give_back(connection)

    async def give_back_all(self) -> None:
        """Return all kept connections, so that the pool can be closed."""
        while self._at_hand:
            await self.give_back(self._at_hand.pop()[0])


class _Loan(AbstractAsyncContextManager[Connection]):
    """A borrowed connection; translates the driver's errors."""

    _connection: Connection

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __aenter__(self) -> Connection:
        self._connection = await self._database.take()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = self._connection
        if error is None:
            await self._database.keep(connection)
            return
        lost = _as_lost(error, connection)
        if isinstance(lost, TimeoutError):
            await self._database.replace_idle()
        elif isinstance(lost, asyncpg.DiskFullError):
            self._database.note_full()
        try:
            await self._database.give_back(connection)
        except LOST as failure:
            lost = lost or failure
        if lost is not None and isinstance(error, Exception):  # a cancellation stays one
            raise unavailable(lost) from lost


def _as_lost(error: BaseException, connection: Connection) -> Exception | None:
    """Return the error that says that the database is unavailable, None if `error` has another cause."""
    if isinstance(error, LOST):
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            connection.terminate()  # the next one may lead to the primary
        return error
    if isinstance(error, asyncpg.InternalClientError):
        # The server closed the connection between two statements, which the driver reports as an internal error.
        connection.terminate()
    elif not isinstance(error, asyncpg.InterfaceError) or _is_open(connection):
        return None
    ended = asyncpg.ConnectionDoesNotExistError(str(error))
    ended.__cause__ = error
    return ended


def _is_open(connection: Connection) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has reclaimed it, as it does when a connection ends
        return False


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    max_size: int = 8,
    command_timeout_seconds: float = 10.0,
    acquire_timeout_seconds: float = 5.0,
    idle_seconds: float = 10.0,
    watch: Watch | None = None,
) -> AsyncGenerator[Database]:
    """Open a pool of at most `max_size` connections to the database `dsn`.

    8 are enough for a gateway: statements take well under a millisecond of the server's time. Connections opened at
    peak load are closed after `idle_seconds` without use: opening one takes 5 ms of CPU, keeping it 4 MB of memory.
    `watch` is called for each statement.

    Behind a pooler (PgBouncer), each statement is prepared every time, because the next may run on another server.

    Raises:
        DatabaseUnavailable: the database is unreachable.
    """
    pooled = await is_pooled(dsn)
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=max_size,
            command_timeout=command_timeout_seconds,
            connect=Hosts(dsn, CONNECT_SECONDS).connect,
            max_inactive_connection_lifetime=idle_seconds,
            init=partial(_prepare, watch),
            connection_class=_Watched,
            reset=_keep,
            server_settings=PORTABLE_SESSION if pooled else SESSION,
            statement_cache_size=0 if pooled else PREPARED_STATEMENTS,
        )
    except REFUSED as error:
        raise unavailable(error) from error
    database = Database(pool, acquire_timeout_seconds=acquire_timeout_seconds, idle_seconds=idle_seconds)
    try:
        yield database
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await database.give_back_all()
            await pool.close()
        pool.terminate()


class _Watched(asyncpg.Connection):
    """A connection that reports the duration of each statement.

    The driver's query loggers would take a record and another callback of the event loop for each of them.
    """

    watch: Watch | None = None

    async def _execute(self, query: str, *arguments: Any, **options: Any) -> Any:
        """Execute a statement: the one method through which the driver executes all that have arguments or results."""
        since = time.monotonic()
        try:
            return await super()._execute(query, *arguments, **options)  # type: ignore[misc]  # private
        finally:
            self._report(query, since)

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 -- theirs
        """Execute a statement; the driver sends one without arguments, such as COMMIT, another way."""
        if arguments:
            return await super().execute(query, *arguments, timeout=timeout)
        since = time.monotonic()
        try:
            return await super().execute(query, timeout=timeout)
        finally:
            self._report(query, since)

    def _report(self, query: str, since: float) -> None:
        if self.watch is not None:
            self.watch(name_of(query), time.monotonic() - since)


async def _prepare(watch: Watch | None, connection: _Watched) -> None:
    """Decode JSON columns to Python objects, and report statements to `watch`."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_encode_json, decoder=msgspec.json.decode)
    connection.watch = watch


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def _keep(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Return a connection without resetting its session.

    The driver would send a query at each return to undo SET, LISTEN and session locks, which costs a third of a small
    statement and is not needed, because we use none of them. It still rolls back an abandoned transaction.
    """
