"""A share of the connections to a database, for statements that come in bursts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from service.db.faults import unavailable
from service.db.pool import Connection, Database


class Lane:
    """At most `most` connections of a database at a time; the others are left to other statements.

    Statements of any kind wait for a connection in one line. Without a lane, a burst of one kind, such as the first
    admissions of a hundred accounts, would keep everybody waiting until all of it is done.
    """

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._places = asyncio.Semaphore(most)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection, as `Database.connection` does.

        Raises:
            DatabaseUnavailable: the database failed, or neither a place nor a connection became free in time.
        """
        try:
            async with self._database.patience() if self._places.locked() else nullcontext():  # most need no timer
                await self._places.acquire()
        except TimeoutError as error:
            raise unavailable(error) from error
        try:
            async with self._database.connection() as connection:
                yield connection
        finally:
            self._places.release()
