"""Concurrent requests of many callers are done in few operations, and one caller's failure does not affect others."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from service.db.batching import Batcher, BatcherByKey
from service.errors import DatabaseUnavailable


class Work:
    """Squares numbers when it is allowed to; negative ones are refused."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.allowed = anyio.Event()
        self.error: Exception | None = None

    async def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.groups.append(list(numbers))
        await self.allowed.wait()
        if self.error is not None:
            raise self.error
        if min(numbers) < 0:
            raise ValueError(numbers)
        return [number**2 for number in numbers]


class Callers:
    """Callers of one `Batcher`, and their results."""

    def __init__(self, groups: Batcher[int, int]) -> None:
        self._groups = groups
        self.got: dict[int, int | str] = {}
        self.scopes: dict[int, anyio.CancelScope] = {}

    async def first_one_then_the_others(self, tasks: TaskGroup, *numbers: int) -> None:
        """Have the first number processed, and call with the others meanwhile."""
        for some in (numbers[:1], numbers[1:]):
            for number in some:
                tasks.start_soon(self.call, number)
            await anyio.wait_all_tasks_blocked()

    async def call(self, number: int) -> None:
        with anyio.CancelScope() as self.scopes[number]:
            try:
                self.got[number] = await self._groups.submit(number)
            except (ValueError, DatabaseUnavailable) as error:
                self.got[number] = type(error).__name__


async def test_what_is_asked_meanwhile_goes_together() -> None:
    """They follow the one that is running in order, up to the limit at a time."""
    work = Work()
    callers = Callers(Batcher(work, most=3))
    async with anyio.create_task_group() as tasks:
        await callers.first_one_then_the_others(tasks, *range(8))
        assert work.groups == [[0]]
        work.allowed.set()
    assert work.groups == [[0], [1, 2, 3], [4, 5, 6], [7]]
    assert callers.got == {number: number**2 for number in range(8)}


async def test_what_is_asked_at_the_same_time_goes_together() -> None:
    """Even if each caller is called only after the one before, as with those that wait for one lock."""
    work = Work()
    work.allowed.set()
    callers = Callers(Batcher(work, most=4))
    lock = anyio.Lock()

    async def call_after_the_one_before(number: int) -> None:
        async with lock:
            pass
        await callers.call(number)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(call_after_the_one_before, number)
    assert work.groups == [[0, 1, 2, 3], [4, 5]]
    assert callers.got == {number: number**2 for number in range(6)}


@pytest.mark.parametrize("leaving", [{0}, {1}, {0, 1}, {0, 1, 2}])
async def test_who_leaves_before_the_work_begins_leaves_the_others_theirs(leaving: set[int]) -> None:
    """Even if it came first, and would have done the work for all."""
    work = Work()
    work.allowed.set()
    groups: Batcher[int, int] = Batcher(work, most=9)
    callers = Callers(groups)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(callers.call, number)
        while len(callers.scopes) < 3:
            await anyio.lowlevel.checkpoint()
        assert not work.groups
        for number in leaving:
            callers.scopes[number].cancel()
    assert callers.got == {number: number**2 for number in set(range(3)) - leaving}
    assert await groups.submit(7) == 49


async def test_an_item_at_fault_fails_alone() -> None:
    """The others of its group are done without it."""
    work = Work()
    callers = Callers(Batcher(work, most=9))
    async with anyio.create_task_group() as tasks:
        await callers.first_one_then_the_others(tasks, 0, 1, -2, 3)
        work.allowed.set()
    assert callers.got == {0: 0, 1: 1, -2: "ValueError", 3: 9}


async def test_an_absent_database_is_asked_once_for_a_group() -> None:
    """Its effect is unknown, so nothing is repeated here."""
    work = Work()
    work.error = DatabaseUnavailable("away", 5)
    callers = Callers(Batcher(work, most=9))
    async with anyio.create_task_group() as tasks:
        await callers.first_one_then_the_others(tasks, *range(4))
        work.allowed.set()
    assert work.groups == [[0], [1, 2, 3]]
    assert set(callers.got.values()) == {"DatabaseUnavailable"}


@pytest.mark.parametrize("leaving", [{0}, {1}, {0, 1}, {2}, {1, 2, 3}, {0, 1, 2, 3}])
async def test_who_leaves_takes_only_its_own_item_along(leaving: set[int]) -> None:
    """Whether running or waiting; the others are served, and so are later callers."""
    work = Work()
    groups: Batcher[int, int] = Batcher(work, most=9)
    callers = Callers(groups)
    async with anyio.create_task_group() as tasks:
        await callers.first_one_then_the_others(tasks, *range(4))
        for number in leaving:
            callers.scopes[number].cancel()
        work.allowed.set()
    assert callers.got == {number: number**2 for number in set(range(4)) - leaving}
    assert await groups.submit(7) == 49


@pytest.mark.parametrize("leaving", [1, 2])
async def test_who_leaves_during_the_work_of_its_group_leaves_the_others_theirs(leaving: int) -> None:
    """Even if it is the caller that does the work for all."""
    work = Work()
    work.allowed.set()
    gate = anyio.Event()

    async def second_waits(numbers: Sequence[int]) -> list[int]:
        if len(numbers) > 1:
            await gate.wait()
        await anyio.lowlevel.checkpoint()
        return await work(numbers)

    groups: Batcher[int, int] = Batcher(second_waits, most=9)
    callers = Callers(groups)
    async with anyio.create_task_group() as tasks:
        await callers.first_one_then_the_others(tasks, *range(4))
        callers.scopes[leaving].cancel()
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert work.groups == [[0], [1, 2, 3]]
    assert {number: callers.got[number] for number in {0, 1, 2, 3} - {leaving}} == {
        number: number**2 for number in {0, 1, 2, 3} - {leaving}
    }
    assert await groups.submit(7) == 49


async def test_different_keys_do_not_wait_for_each_other() -> None:
    """Only items with the same key wait for each other."""
    work = Work()
    groups: BatcherByKey[int, int] = BatcherByKey(work, most=9)
    async with anyio.create_task_group() as tasks:
        for some in ((("a", 1), ("b", 2)), (("a", 3), ("a", 4))):
            for key, number in some:
                tasks.start_soon(groups.submit, key, number)
            await anyio.wait_all_tasks_blocked()
        assert work.groups == [[1], [2]]
        work.allowed.set()
    assert work.groups == [[1], [2], [3, 4]]
