"""Blocking work on files: little of it in the event loop at once, more of it in a thread beside the loop.

A thread takes the work over and hands its outcome back by waking each other up, which costs more processor time than
the handful of calls that a file of some kilobytes needs.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sized
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from service.cancellation import outlast
from service.permit import Permit

INLINE_BYTES = 256 * 1024
"""Up to here a file is small: read, written or removed in less time than others notice."""
INLINE_COLUMNS = 1000
"""Up to here the columns of a file are few; several hundred tables may have 15,000, which take a fifth of a second."""
MOST_THREADS = 16

_Result = TypeVar("_Result")


class _Call(Generic[_Result]):
    """Work for a thread, and its outcome, which the event loop receives once the work has ended."""

    def __init__(self, work: Callable[[], _Result], permit: Permit) -> None:
        self._work = work
        self._permit = permit
        self._context = copy_context()  # what the work logs names the request
        self._taken = Lock()
        self._loop = asyncio.get_running_loop()
        self._woken = self._loop.create_future()
        self._is_over = False
        self._result: _Result
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work, unless the caller has withdrawn it."""
        if not self._take():
            return
        try:
            self._result = self._context.run(self._permit.use, self._work)
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            self._error = error
        try:
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:  # the loop has closed, and nobody waits
            return

    def _take(self) -> bool:
        """Decide what becomes of the work; True for the first who asks, the thread or a cancelled caller."""
        return self._taken.acquire(blocking=False)

    def _tell(self) -> None:
        self._is_over = True
        if not self._woken.done():
            self._woken.set_result(None)

    async def outcome(self) -> _Result:
        """Wait for the end of the work; a cancelled caller withdraws it, and waits for its end if it has begun."""
        try:
            await self._end()
            if self._error is not None:
                raise self._error
            return self._result
        finally:
            self._error = None  # its traceback leads back here

    async def _end(self) -> None:
        try:
            await self._woken
        except asyncio.CancelledError:
            if not self._is_over and not self._take():
                self._permit.withdraw()
                self._woken = self._loop.create_future()
                await outlast(self._woken)
            raise


class _Idler:
    """A thread without work, and the call for which it is woken; None ends it."""

    __slots__ = ("call", "woken")

    def __init__(self) -> None:
        self.call: _Call[Any] | None = None
        self.woken = Lock()
        self.woken.acquire()


class _Calls:
    """The calls that no thread has begun, and the threads that have none.

    A queue of the standard library wakes a second thread for each call, which finds nothing to do. Here a call wakes
    one: the thread that had work last, whose caches are the warmest.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: deque[_Call[Any]] = deque()
        self._idle: list[_Idler] = []
        self._is_over = False

    def put(self, call: _Call[Any]) -> None:
        """Give a call to a thread: to one that is idle, or to the first that will be."""
        with self._lock:
            if not self._idle:
                self._calls.append(call)
                return
            thread = self._idle.pop()
        thread.call = call
        thread.woken.release()

    def get(self) -> _Call[Any] | None:
        """Wait for a call; None if there will be no more."""
        with self._lock:
            if self._calls:
                return self._calls.popleft()
            if self._is_over:
                return None
            thread = _Idler()
            self._idle.append(thread)
        thread.woken.acquire()
        return thread.call

    def end(self) -> None:
        """Let the threads end when they have no call."""
        with self._lock:
            self._is_over = True
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.woken.release()


class Threads:
    """Up to `most` threads, started when there is work; they end with this object, or with the process.

    A call costs a third of what anyio's costs, which checks for cancellation three times.
    """

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._started = 0
        self._busy = 0
        self._calls = _Calls()
        weakref.finalize(self, self._calls.end)

    async def run(self, work: Callable[[], _Result], permit: Permit | None = None) -> _Result:
        """Run `work` in a thread, as far as `permit` allows.

        If its caller is cancelled, it is left undone; if it has begun, it ends first, at its next call of `go_on`. Its
        result is then dropped, so it must not be what only the caller can close. While this host has no thread to
        spare, not even the first one, the work runs in the event loop.

        Raises:
            OutOfTime: the work has taken the computing time that the permit allows.
        """
        call = _Call(work, permit or Permit())
        self._busy += 1
        try:
            if self._busy > self._started and self._started < self._most:
                self._start()
            if self._started:
                self._calls.put(call)
            else:
                call.run()
            return await call.outcome()
        finally:
            self._busy -= 1

    def _start(self) -> None:
        with suppress(RuntimeError):  # this host is at its limit of threads; the next call tries again
            Thread(target=_serve, args=(self._calls,), daemon=True, name="files").start()
            self._started += 1


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # what it holds is not kept until the next one


SHARED = Threads()
"""The threads of callers that have none of their own."""


async def run_blocking(
    work: Callable[[], _Result], *, inline: bool, threads: Threads = SHARED, permit: Permit | None = None
) -> _Result:
    """Run blocking work: at once if `inline`, else in one of `threads`; see `Threads.run`."""
    return work() if inline else await threads.run(work, permit)


async def run_for_columns(work: Callable[[], _Result], tables: Iterable[Sized]) -> _Result:
    """Run work on the columns of `tables`: at once if these are few, else in a thread."""
    return await run_blocking(work, inline=sum(map(len, tables)) <= INLINE_COLUMNS)
