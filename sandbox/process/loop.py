"""The spawner's event loop: readable descriptors, timers and ended children, in one thread.

asyncio would triple this process's memory, whose page tables every fork has to copy.
"""

import heapq
import itertools
import os
import select
import signal
import time
from collections.abc import Callable


class Timer:
    """A scheduled call that can be cancelled."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the call."""
        self.cancelled = True


class Loop:
    """Calls registered functions when their events occur."""

    def __init__(self, on_child: Callable[[], None]) -> None:
        self._readable = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._on_child = on_child
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.watch(self._woken, self._child_ended)

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call `call` whenever `descriptor` is readable."""
        self._readable.register(descriptor, select.EPOLLIN)
        self._calls[descriptor] = call

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor; required before closing it."""
        self._readable.unregister(descriptor)
        del self._calls[descriptor]

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call `call` once, `seconds` from now."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), timer))
        return timer

    def turn(self) -> None:
        """Wait for events and make the calls registered for them."""
        for descriptor, call in [(found, self._calls[found]) for found, _ in self._readable.poll(self._patience())]:
            # An earlier call may have stopped watching a descriptor whose event is still in this list.
            if self._calls.get(descriptor) is call:
                call()
        self._run_timers()

    def _patience(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled:
                timer.call()

    def _child_ended(self) -> None:
        os.read(self._woken, 4096)
        self._on_child()
