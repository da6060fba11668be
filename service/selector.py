"""What the event loop waits with: the library's selector for epoll, with a third of its Python.

A small conversion takes twenty turns of the event loop, and each asks for what is ready.
"""

import asyncio
import select
import selectors
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey

_BOTH = EVENT_READ | EVENT_WRITE
_READY = {select.EPOLLIN: EVENT_READ, select.EPOLLOUT: EVENT_WRITE} if hasattr(select, "epoll") else {}
"""What is ready for an event that stands alone; for all others, such as the end of a connection, it is both."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop that waits with `Selector`, where the system has epoll."""
    return asyncio.SelectorEventLoop(Selector() if hasattr(select, "epoll") else None)


class Selector(getattr(selectors, "EpollSelector", selectors.DefaultSelector)):  # type: ignore[misc] # a class that not all systems have
    """The library's selector for epoll, with another `select`."""

    _fd_to_key: dict[int, SelectorKey]
    _selector: "select.epoll"

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """See `selectors.BaseSelector.select`."""
        keys = self._fd_to_key
        seconds = timeout if timeout is None or timeout > 0 else 0
        try:
            found = self._selector.poll(seconds, len(keys) or 1)
        except InterruptedError:
            return []
        return [
            (key, _READY.get(event, _BOTH) & key.events)
            for number, event in found
            if (key := keys.get(number)) is not None
        ]
