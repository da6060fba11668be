"""The sockets of clients that have data, a few in each turn of the event loop.

Theory of operation. asyncio runs everything that is ready before it looks again. If two thousand clients that were
refused come back together, a converter that has finished would wait until all of them are refused. The sockets of
clients are therefore in sets of their own (epoll), each of which is one descriptor to the event loop, and in one of its
turns a few sockets of each set are read. The kernel puts a socket that was read behind all others of its set.

Clients that repeat a refused request at once, without end, would leave no time for what makes room for them: where the
processor is slow or shared, the fewer conversions there are, the more is refused. A set may therefore take only a share
of the time, and what it exceeds that by it rests.
"""

import asyncio
import select
from collections.abc import Callable

AT_ONCE = 64
"""How many sockets of a set are read in one turn, so that a turn takes a few milliseconds. With 16, probes wait half as
long while others flood, and refusals three to five times as long."""
CREDIT_SECONDS = 0.005
"""By how much work a set may exceed its share before it rests: the event loop's timers count milliseconds."""
MOST_SECONDS = 0.1
"""The most work for which it rests: a process that was suspended meanwhile has not worked."""


class ReadableSockets:
    """A set of sockets that are read when data arrives; all in one turn where the system has no epoll.

    With `share`, reading them takes no more than that share of the time, over a few turns.
    """

    def __init__(self, share: float = 1.0) -> None:
        self._loop = asyncio.get_running_loop()
        self._share = share
        self._excess_seconds = 0.0
        self._read_at = self._loop.time()
        self._readers: dict[int, Callable[[], None]] = {}
        self._ready = select.epoll() if hasattr(select, "epoll") else None
        if self._ready is not None:
            self._wake(self._ready)

    def add(self, number: int, read: Callable[[], None]) -> None:
        """Call `read` whenever the socket with this descriptor has data, or has ended; `read` takes the data."""
        if self._ready is None:
            self._loop.add_reader(number, read)
        else:
            self._readers[number] = read
            self._ready.register(number, select.EPOLLIN)

    def remove(self, number: int) -> None:
        """Take a socket out of the set, before it is closed."""
        if self._ready is None:
            self._loop.remove_reader(number)
        else:
            del self._readers[number]
            self._ready.unregister(number)

    def _read_some(self, ready: "select.epoll") -> None:
        """Read a few sockets; what this leaves, also because of a defect, is ready again in the next turn."""
        began = self._loop.time()
        for number, _ in ready.poll(0, AT_ONCE):
            if (read := self._readers.get(number)) is not None:
                read()
        now = self._loop.time()
        left_seconds = max(0.0, self._excess_seconds - (now - self._read_at) * self._share)
        self._excess_seconds = min(left_seconds + now - began, MOST_SECONDS)
        self._read_at = now
        if self._share < 1 and self._excess_seconds > CREDIT_SECONDS:
            self._loop.remove_reader(ready.fileno())
            self._loop.call_later(self._excess_seconds / self._share, self._wake, ready)

    def _wake(self, ready: "select.epoll") -> None:
        self._loop.add_reader(ready.fileno(), self._read_some, ready)
