"""Threads for blocking work: their outcomes, how many there are, and callers that are cancelled."""

import gc
from collections.abc import Callable
from threading import Event, Lock, active_count

import anyio
import pytest

from service.blocking import Threads, run_blocking

pytestmark = pytest.mark.anyio


class _Busy:
    """Work that goes on until it is let go, and counts how much of it goes on at once."""

    def __init__(self) -> None:
        self.let_go = Event()
        self.begun = self.ended = self.most = 0
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self.begun += 1
            self.most = max(self.most, self.begun - self.ended)
        self.let_go.wait()
        with self._lock:
            self.ended += 1
        return self.ended


def _fail() -> None:
    raise ValueError("as expected")


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - threads know no event of the loop
        await anyio.sleep(0.005)


async def test_the_caller_gets_the_result_or_the_error() -> None:
    threads = Threads()
    assert await threads.run(lambda: 1) == 1
    with pytest.raises(ValueError, match="as expected"):
        await threads.run(_fail)
    assert await run_blocking(lambda: 3, inline=False) == 3
    assert await run_blocking(lambda: 2, inline=True) == 2


async def test_as_much_goes_on_at_once_as_there_are_threads_and_the_rest_waits() -> None:
    threads, busy = Threads(2), _Busy()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(threads.run, busy)
        await _until(lambda: busy.begun == 2)
        busy.let_go.set()
    assert (busy.ended, busy.most) == (5, 2)


async def test_a_cancelled_caller_waits_for_the_end_of_its_work() -> None:
    threads, busy, told = Threads(1), _Busy(), anyio.Event()

    async def call() -> None:
        try:
            await threads.run(busy)
        finally:
            told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await _until(lambda: busy.begun == 1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
            assert not told.is_set()
            busy.let_go.set()
            await told.wait()
    assert busy.ended == 1
    assert await threads.run(lambda: 1) == 1


async def test_threads_end_with_their_owner() -> None:
    before, threads = active_count(), Threads(3)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(threads.run, lambda: None)
    assert active_count() > before
    del threads
    gc.collect()
    await _until(lambda: active_count() <= before)
