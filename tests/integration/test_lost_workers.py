"""Workers that end without leaving are counted by the processes that outlive them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from service.db.pool import Database, open_pool
from service.formats.offer import Availability
from service.ids import ServerId
from service.jobs.leases import Leases
from tests.support.database_time import stop_time

LEASE = timedelta(seconds=30)
START = datetime(2030, 1, 1, tzinfo=UTC)


class Processes:
    """Some processes on a database, all of whose clocks are set together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._passed = timedelta()

    async def started(self, formats: list[Availability] | None = None) -> Leases:
        """A process that has just started; a worker tells its formats."""
        leases = Leases(self._database, ServerId(uuid4()), LEASE, formats, now=self._seconds)
        await leases.beat()
        return leases

    def _seconds(self) -> float:
        return self._passed.total_seconds()

    async def pass_time(self, by: timedelta, *alive: Leases) -> None:
        """Let time pass in steps of a heartbeat, which those send that are alive."""
        for _ in range(by // (LEASE / 6)):
            self._passed += LEASE / 6
            await stop_time(self._database, START + self._passed)
            for one in alive:
                await one.beat()

    async def jump(self, by: timedelta) -> None:
        """Let the database's clock jump."""
        await stop_time(self._database, START + self._passed + by)

    async def count(self) -> int:
        """How many are recorded."""
        return int(await self._database.fetchval("SELECT count(*) FROM server"))


@asynccontextmanager
async def processes(database_url: str) -> AsyncIterator[Processes]:
    """None yet."""
    async with open_pool(database_url, max_size=2) as database:
        await stop_time(database, START)
        yield Processes(database)


async def test_each_worker_that_dies_is_counted_once(database_url: str) -> None:
    """Neither one that has left, nor a process that takes no jobs."""
    async with processes(database_url) as some:
        survivors = [await some.started(), await some.started([])]
        await some.started()
        await some.started([])
        leaving = await some.started([])
        await leaving.give_up()
        await some.pass_time(LEASE, *survivors)
        assert [await one.forget_silent() for one in survivors] == [0, 0]
        await some.pass_time(LEASE, *survivors)
        assert [await one.forget_silent() for one in survivors] == [1, 0]


async def test_workers_that_were_without_the_database_like_all_are_not_lost(database_url: str) -> None:
    """Whoever is back first waits for the heartbeats of the others."""
    async with processes(database_url) as some:
        first, other = await some.started([]), await some.started([])
        await some.pass_time(4 * LEASE)
        await some.pass_time(LEASE / 6, first)
        assert await first.forget_silent() == 0
        await some.pass_time(2 * LEASE, first, other)
        assert await first.forget_silent() == 0


async def test_a_worker_that_wakes_up_judges_nobody(database_url: str) -> None:
    """Before it has sent a heartbeat itself."""
    async with processes(database_url) as some:
        frozen, other = await some.started([]), await some.started([])
        await some.pass_time(4 * LEASE)
        assert [await frozen.forget_silent(), await other.forget_silent()] == [0, 0]


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(days=-1)])
async def test_a_jump_of_the_clock_makes_nobody_silent(database_url: str, by: timedelta, *, is_noticed: bool) -> None:
    """Neither before a heartbeat shows it, nor after that, until the others have sent theirs."""
    async with processes(database_url) as some:
        first, other = await some.started([]), await some.started([])
        await some.pass_time(2 * LEASE, first, other)
        await some.jump(by)
        if is_noticed:
            await first.beat()
        assert await first.forget_silent() == 0
        assert await some.count() == 2
