"""The sockets of clients that have data, a few in each turn of the event loop.

Theory of operation. asyncio runs everything that is ready before it looks again. If two thousand clients that were
refused come back together, a converter that has finished would wait until all of them are refused. The sockets of
clients are therefore in sets of their own (epoll), each of which is one descriptor to the event loop, and in one of its
turns a few sockets of each set are read. The kernel puts a socket that was read behind all others of its set.
"""

import asyncio
import select
from collections.abc import Callable

AT_ONCE = 64
"""How many sockets of a set are read in one turn, so that a turn takes a few milliseconds. With 16, probes wait half as
long while others flood, and refusals three to five times as long."""


class ReadableSockets:
    """A set of sockets that are read when data arrives; all in one turn where the system has no epoll."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._readers: dict[int, Callable[[], None]] = {}
        self._ready = select.epoll() if hasattr(select, "epoll") else None
        if self._ready is not None:
            self._loop.add_reader(self._ready.fileno(), self._read_some, self._ready)

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
        for number, _ in ready.poll(0, AT_ONCE):
            if (read := self._readers.get(number)) is not None:
                read()
