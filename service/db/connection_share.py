"""A share of the connections to a database, for statements that come in bursts."""

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from service.db.faults import unavailable
from service.db.pool import Connection, Database


class ConnectionShare:
    """At most `most` connections of a database at a time; the others are left to other statements.

    Statements of any kind wait for a connection in one line. Without a share, a burst of one kind, such as the first
    admissions of a hundred accounts, would keep everybody waiting until all of it is done.
    """

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._places = asyncio.Semaphore(most)

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection, as `Database.connection` does.

        Raises:
            DatabaseUnavailable: the database failed, or neither a place nor a connection became free in time.
        """
        return _SharedLoan(self._database, self._places)


class _SharedLoan(AbstractAsyncContextManager[Connection]):
    """A borrowed connection, and its place; a class, because an asynchronous generator costs twice as much."""

    def __init__(self, database: Database, places: asyncio.Semaphore) -> None:
        self._database = database
        self._places = places
        self._loan = database.connection()

    async def __aenter__(self) -> Connection:
        if self._places.locked():
            try:
                async with self._database.patience():
                    await self._places.acquire()
            except TimeoutError as error:
                raise unavailable(error) from error
        else:
            await self._places.acquire()  # at once; most need no timer
        try:
            return await self._loan.__aenter__()
        except BaseException:
            self._places.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._loan.__aexit__(kind, error, trace)
        finally:
            self._places.release()
