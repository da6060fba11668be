"""Threads for blocking work: their outcomes, how many there are, and callers that are cancelled."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, active_count

import anyio.lowlevel
import pytest

from service.blocking import INLINE_COLUMNS, Threads, run_blocking, run_for_columns
from service.permit import OutOfTime, Permit, go_on
from tests.support.patience import until

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


@contextmanager
def _no_thread() -> Iterator[None]:
    """No further thread starts meanwhile: there is no room for its stack."""
    before = threading.stack_size(1 << 60)
    try:
        yield
    finally:
        threading.stack_size(before)


class _Endless:
    """Work that goes on for as long as it may."""

    def __init__(self) -> None:
        self.has_begun = False

    def __call__(self) -> None:
        self.has_begun = True
        while True:
            go_on()


def _fail() -> None:
    raise ValueError("as expected")


async def test_the_caller_gets_the_result_or_the_error() -> None:
    threads = Threads()
    assert await threads.run(lambda: 1) == 1
    with pytest.raises(ValueError, match="as expected"):
        await threads.run(_fail)
    assert await run_blocking(lambda: 3, inline=False) == 3
    assert await run_blocking(lambda: 2, inline=True) == 2


async def test_work_on_many_columns_leaves_the_event_loop_free() -> None:
    """Also if no table has many; that on few takes less than a thread."""
    few, one_more = [range(INLINE_COLUMNS - 1), range(1)], [range(INLINE_COLUMNS), range(1)]
    assert await run_for_columns(threading.get_ident, few) == threading.get_ident()
    assert await run_for_columns(threading.get_ident, one_more) != threading.get_ident()


async def test_as_much_goes_on_at_once_as_there_are_threads_and_the_rest_waits() -> None:
    threads, busy = Threads(2), _Busy()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(threads.run, busy)
        await until(lambda: busy.begun == 2)
        busy.let_go.set()
    assert (busy.ended, busy.most) == (5, 2)


async def test_work_goes_to_threads_that_had_work_lately_and_the_others_sleep() -> None:
    """Not in turn to all: a caller may be told before its thread is idle again, so the next call may take another."""
    threads, busy = Threads(8), _Busy()
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(threads.run, busy)
        await until(lambda: busy.begun == 8)
        busy.let_go.set()
    assert len({await threads.run(threading.get_ident) for _ in range(50)}) < 8


async def test_a_cancelled_caller_waits_for_the_end_of_its_work() -> None:
    threads, busy, told = Threads(1), _Busy(), anyio.Event()

    async def call() -> None:
        try:
            await threads.run(busy)
        finally:
            told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await until(lambda: busy.begun == 1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
            assert not told.is_set()
            busy.let_go.set()
            await told.wait()
    assert busy.ended == 1
    assert await threads.run(lambda: 1) == 1


async def test_work_that_asks_ends_once_its_caller_is_cancelled() -> None:
    threads, endless = Threads(1), _Endless()
    call = asyncio.ensure_future(threads.run(endless))
    await until(lambda: endless.has_begun)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await threads.run(lambda: 1) == 1


async def test_work_that_asks_ends_when_it_has_taken_its_computing_time() -> None:
    """Also if it is done one part after another: what a part has taken is left for no other."""
    threads, permit = Threads(1), Permit(0.01)
    for endless in (_Endless(), _Endless()):
        with pytest.raises(OutOfTime):
            await threads.run(endless, permit)
    with pytest.raises(OutOfTime):
        await threads.run(go_on, permit)
    await threads.run(go_on)


async def test_threads_end_with_their_owner() -> None:
    before, threads = active_count(), Threads(3)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(threads.run, lambda: None)
    assert active_count() > before
    del threads
    gc.collect()
    await until(lambda: active_count() <= before)


async def test_a_host_without_a_thread_to_spare_does_the_work_and_then_starts_threads_again() -> None:
    threads = Threads(2)
    with _no_thread():
        assert [await threads.run(threading.get_ident) for _ in range(3)] == [threading.get_ident()] * 3
        with pytest.raises(ValueError, match="as expected"):
            await threads.run(_fail)
    assert await threads.run(threading.get_ident) != threading.get_ident()


async def test_what_no_further_thread_can_do_waits_for_those_that_there_are() -> None:
    threads, busy = Threads(2), _Busy()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(threads.run, busy)
        await until(lambda: busy.begun == 1)
        with _no_thread():
            tasks.start_soon(threads.run, lambda: 1)
            await anyio.lowlevel.checkpoint()
        busy.let_go.set()
    assert busy.ended == 1


async def test_work_that_has_not_begun_ends_with_its_caller() -> None:
    threads, busy, done, told = Threads(1), _Busy(), list[int](), list[int]()
    first = asyncio.ensure_future(threads.run(busy))
    second = asyncio.ensure_future(threads.run(lambda: done.append(2)))
    second.add_done_callback(lambda _: told.append(busy.ended))
    await until(lambda: busy.begun == 1)
    second.cancel()
    await anyio.sleep(0.01)
    busy.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await second
    await first
    await threads.run(lambda: done.append(3))
    assert (done, told) == ([3], [0])


async def test_a_caller_that_is_cancelled_again_still_waits_for_its_work() -> None:
    threads, busy = Threads(1), _Busy()
    call = asyncio.ensure_future(threads.run(busy))
    await until(lambda: busy.begun == 1)
    for _ in range(3):
        call.cancel()
        await anyio.sleep(0.01)
    assert not call.done()
    busy.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert busy.ended == 1


async def test_work_knows_the_context_of_its_caller() -> None:
    request = ContextVar("request", default="")
    request.set("mine")
    assert await Threads().run(request.get) == "mine"


async def test_nothing_of_a_failed_call_is_kept() -> None:
    class Held:
        def fail(self) -> None:
            raise ValueError("as expected")

    held, threads = Held(), Threads(1)
    gone = weakref.ref(held)
    gc.disable()
    try:
        with pytest.raises(ValueError, match="as expected"):
            await threads.run(held.fail)
        del held
        await threads.run(lambda: None)  # the thread has let go of the first call
        assert gone() is None
    finally:
        gc.enable()
