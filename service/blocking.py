"""Blocking work on files: little of it in the event loop at once, more of it in a thread beside the loop.

A thread takes the work over and hands its outcome back by waking each other up, which costs more processor time than
the handful of calls that a file of some kilobytes needs.
"""

import asyncio
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from anyio import CancelScope

INLINE_BYTES = 256 * 1024
"""Up to here a file is small: read, written or removed in less time than others notice."""
MOST_THREADS = 16

_Result = TypeVar("_Result")


class _Call(Generic[_Result]):
    """Work for a thread, and its outcome, of which the event loop hears once the work has ended."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._woken = self._loop.create_future()
        self._is_over = False
        self._result: _Result
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work; for the thread."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            self._error = error
        try:
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:  # the loop has closed, and nobody waits
            return

    def _tell(self) -> None:
        self._is_over = True
        if not self._woken.done():
            self._woken.set_result(None)

    async def outcome(self) -> _Result:
        """Wait for the end of the work; a cancelled caller waits for it, too, before it is told."""
        try:
            await self._woken
        except asyncio.CancelledError:
            if not self._is_over:
                self._woken = self._loop.create_future()
                with CancelScope(shield=True):
                    await self._woken
            raise
        if self._error is not None:
            raise self._error
        return self._result


class Threads:
    """Up to `most` threads, started when there is work; they end with this object, or with the process.

    A call costs a third of what anyio's costs, which checks for cancellation three times and copies the context.
    """

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._started = 0
        self._busy = 0
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        weakref.finalize(self, self._calls.put, None)

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in a thread; a cancelled caller waits for its end."""
        call = _Call(work)
        self._busy += 1
        if self._busy > self._started and self._started < self._most:
            self._started += 1
            Thread(target=_serve, args=(self._calls,), daemon=True, name="files").start()
        try:
            self._calls.put(call)
            return await call.outcome()
        finally:
            self._busy -= 1


def _serve(calls: SimpleQueue[_Call[Any] | None]) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # what it holds is not kept until the next one
    calls.put(None)  # for the next thread


SHARED = Threads()
"""The threads of those who have none of their own."""


async def run_blocking(work: Callable[[], _Result], *, inline: bool, threads: Threads = SHARED) -> _Result:
    """Run blocking work: at once if `inline`, else in one of `threads`; a cancelled caller waits for its end."""
    return work() if inline else await threads.run(work)
