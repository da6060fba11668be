"""The event loop's selector finds the same as that of the standard library."""

import asyncio
import os
import select
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from selectors import EVENT_READ, EVENT_WRITE

import pytest

from service.selector import Selector, new_event_loop

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the system has no epoll")


def _nothing(_ours: socket.socket, _theirs: socket.socket) -> None:
    pass


def _send(_ours: socket.socket, theirs: socket.socket) -> None:
    theirs.send(b"x")


def _finish(_ours: socket.socket, theirs: socket.socket) -> None:
    theirs.shutdown(socket.SHUT_WR)


def _close(_ours: socket.socket, theirs: socket.socket) -> None:
    theirs.close()


def _send_urgently(ours: socket.socket, theirs: socket.socket) -> None:
    del ours
    theirs.send(b"x", socket.MSG_OOB)


def _fill(ours: socket.socket, _theirs: socket.socket) -> None:
    ours.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            ours.send(bytes(65536))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over TCP."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, ExitStack() as opened:
        theirs = opened.enter_context(socket.create_connection(listening.getsockname()))
        ours = opened.enter_context(listening.accept()[0])
        yield ours, theirs


@pytest.mark.parametrize("events", [EVENT_READ, EVENT_WRITE, EVENT_READ | EVENT_WRITE])
@pytest.mark.parametrize("happens", [_nothing, _send, _finish, _close, _send_urgently, _fill])
def test_it_finds_what_the_library_finds(
    pair: tuple[socket.socket, socket.socket],
    happens: Callable[[socket.socket, socket.socket], None],
    events: int,
) -> None:
    """For every combination of events."""
    ours, theirs = pair
    happens(ours, theirs)
    with closing(Selector()) as selector, closing(selectors.EpollSelector()) as library:
        for each in (selector, library):
            each.register(ours, events, "data")
        select.select([ours], [], [], 0.1 if happens is not _nothing and happens is not _fill else 0)
        assert selector.select(0) == library.select(0)


def test_it_reports_each_of_many(pair: tuple[socket.socket, socket.socket]) -> None:
    """In one call, with their data."""
    with ExitStack() as opened, closing(Selector()) as selector:
        for number in range(20):
            reader, writer = os.pipe()
            opened.callback(os.close, reader)
            opened.callback(os.close, writer)
            selector.register(reader, EVENT_READ, number)
            os.write(writer, b"x")
        selector.register(pair[0], EVENT_READ, "idle")
        assert sorted(key.data for key, events in selector.select() if events == EVENT_READ) == list(range(20))


@pytest.mark.parametrize("timeout", [0, -1, 0.001])
def test_it_waits_no_longer_than_it_may(timeout: float) -> None:
    """A negative time is none, also without any descriptor."""
    with closing(Selector()) as selector:
        assert selector.select(timeout) == []


def test_the_event_loop_waits_with_it() -> None:
    """A call from another thread and a timer wake it."""
    loop = new_event_loop()

    async def both() -> str:
        return await asyncio.to_thread(lambda: "thread") + await asyncio.sleep(0.001, " and timer")

    with closing(loop):
        assert isinstance(loop._selector, Selector)  # type: ignore[attr-defined] # it has no public name
        assert loop.run_until_complete(both()) == "thread and timer"
