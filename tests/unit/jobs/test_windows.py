"""An account has only so many jobs in the queue; the others wait for their turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import anyio.lowlevel

from service.ids import AccountId
from service.jobs.windows import Windows

MANY = 20


@asynccontextmanager
async def place(windows: Windows, account: AccountId) -> AsyncIterator[None]:
    """Wait for a place, and hold it until the end of the block."""
    told = anyio.Event()
    with windows.turn(account, told.set) as turn:
        await told.wait()
        assert turn.has_come
        yield


async def test_the_jobs_of_an_account_take_turns() -> None:
    """In the order of arrival, never more than there are places, whatever another account does."""
    most, held, order = 3, set[int](), list[int]()
    windows, account, other = Windows(lambda: most), AccountId(uuid4()), AccountId(uuid4())

    async def run(number: int) -> None:
        async with place(windows, account):
            held.add(number)
            order.append(number)
            assert len(held) <= most
            await anyio.lowlevel.checkpoint()
            async with place(windows, other):
                await anyio.lowlevel.checkpoint()
            held.remove(number)

    async with anyio.create_task_group() as tasks:
        for number in range(MANY):
            tasks.start_soon(run, number)
    assert order == list(range(MANY))
    assert not windows._waiting
    assert not windows._taken


async def test_a_job_that_is_cancelled_leaves_its_turn_to_the_next() -> None:
    """While it waits, and while it holds a place."""
    windows, account = Windows(lambda: 1), AccountId(uuid4())
    scopes = [anyio.CancelScope() for _ in range(3)]
    held: list[int] = []

    async def run(number: int) -> None:
        with scopes[number]:
            async with place(windows, account):
                held.append(number)
                await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        for number in range(len(scopes)):
            tasks.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()
        for number in (1, 0, 2):
            scopes[number].cancel()
            await anyio.wait_all_tasks_blocked()
    assert held == [0, 2]
    assert not windows._waiting


async def test_more_places_serve_those_that_wait() -> None:
    """At the next end of a job; nobody loses the place that it has once there are fewer."""
    most = [1]
    windows, account = Windows(lambda: most[0]), AccountId(uuid4())
    ends, held = [anyio.Event() for _ in range(4)], list[int]()

    async def run(number: int) -> None:
        async with place(windows, account):
            held.append(number)
            await ends[number].wait()

    async with anyio.create_task_group() as tasks:
        for number in range(len(ends)):
            tasks.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()
        most[0] = 2
        ends[0].set()
        await anyio.wait_all_tasks_blocked()
        assert held == [0, 1, 2]
        most[0] = 1
        ends[1].set()
        await anyio.wait_all_tasks_blocked()
        assert held == [0, 1, 2]
        ends[2].set()
        await anyio.wait_all_tasks_blocked()
        assert held == [0, 1, 2, 3]
        ends[3].set()


async def test_more_places_need_no_end_of_a_job() -> None:
    """Those that wait get them as soon as there are more, in the order of arrival."""
    most = [1]
    windows, account, other = Windows(lambda: most[0]), AccountId(uuid4()), AccountId(uuid4())
    held = list[int]()

    async def run(number: int, whose: AccountId) -> None:
        async with place(windows, whose):
            held.append(number)
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(run, number, (account, other)[number % 2])
        await anyio.wait_all_tasks_blocked()
        most[0] = 2
        windows.give_all()
        await anyio.wait_all_tasks_blocked()
        assert sorted(held) == [0, 1, 2, 3]
        tasks.cancel_scope.cancel()
    assert not windows._waiting


async def test_all_that_wait_are_told() -> None:
    """So that they look whether they still need a place; nobody gets one by that."""
    windows, account = Windows(lambda: 1), AccountId(uuid4())
    told = list[str]()
    with (
        windows.turn(account, lambda: told.append("first")) as first,
        windows.turn(account, lambda: told.append("second")) as second,
    ):
        assert (told, first.has_come) == (["first"], True)
        windows.tell_all()
        assert (told, second.has_come) == (["first", "second"], False)
