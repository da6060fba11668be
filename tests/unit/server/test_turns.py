"""Clients that are refused together make neither converters nor other clients wait."""

import asyncio
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import cast

import pytest
from starlette.types import Receive, Scope, Send

from service.accounts.keys import Authenticator
from service.jobs.promises import VISITORS, Promise, Promises
from service.server.connection import ClientConnection
from service.server.gate import Gate
from service.server.serving import Server
from service.server.site import ServerLimits
from service.server.turns import AT_ONCE, ReadableSockets
from tests.support.patience import PATIENCE_SECONDS

UPLOAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"
FLOOD = 4 * AT_ONCE
LONG_SECONDS, SUSPENDED_SECONDS = 0.5, 3600.0


async def respond(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application whose responses are empty."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Flooded:
    """A server that refuses uploads while it is full, and clients of it."""

    def __init__(self) -> None:
        self._promises = Promises(converters=1, most=1, taken=lambda: 0, taken_by={}, now=time.monotonic)
        gate = Gate(cast("Authenticator", None), self._promises)  # asked for callers with keys only
        self._server = Server(respond, socket.socket(), ServerLimits(), gate=gate)
        self._visits: list[Promise] = []
        self._clients: list[socket.socket] = []
        self.fill()

    def fill(self) -> None:
        """Take all places."""
        while (visit := self._promises.seek_visit()) is not None:
            self._visits.append(visit)
        assert len(self._visits) == VISITORS

    def empty(self) -> None:
        """Give all places back."""
        while self._visits:
            self._visits.pop().release()

    def connect(self) -> socket.socket:
        """A client whose connection is read."""
        served, own = socket.socketpair()
        for each in (served, own):
            each.setblocking(False)
        self._server.welcome(ClientConnection(self._server.site, served, None, self._server.forget))
        self._clients.append(own)
        return own

    async def end(self) -> None:
        """Close all connections."""
        self._server.cut_off()
        await turns_until(lambda: not self._server.connections)
        for client in self._clients:
            client.close()

    async def ask(self, clients: Sequence[socket.socket], status: bytes) -> None:
        """Let all clients send an upload, and receive their responses."""
        for client in clients:
            client.send(UPLOAD)
        await turns_until(lambda: count_answered(clients) == len(clients))
        assert {client.recv(10_000)[:12] for client in clients} == {b"HTTP/1.1 " + status}


async def turns_until(holds: Callable[[], bool]) -> None:
    """Let everything else in the event loop have its turn until a condition holds, which is asked after each."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if holds():
                return
            await asyncio.sleep(0)


def count_answered(clients: Sequence[socket.socket]) -> int:
    """Count the clients with a response that they have not received."""
    count = 0
    for client in clients:
        with suppress(BlockingIOError):
            count += bool(client.recv(1, socket.MSG_PEEK))
    return count


@pytest.fixture
async def flooded() -> AsyncIterator[Flooded]:
    """A full server, all of whose connections end with the test."""
    flooded = Flooded()
    try:
        yield flooded
    finally:
        await flooded.end()


@pytest.mark.parametrize("again", [False, True])
async def test_between_a_few_refusals_everything_else_has_its_turn(flooded: Flooded, again: bool) -> None:
    """However many clients are to be refused at the same time, for the first time or again."""
    clients = [flooded.connect() for _ in range(FLOOD)]
    if again:
        await flooded.ask(clients, b"503")
    for client in clients:
        client.send(UPLOAD)
    counts = [0]

    def are_answered() -> bool:
        counts.append(count_answered(clients))
        return counts[-1] == FLOOD

    await turns_until(are_answered)
    assert max(later - earlier for earlier, later in pairwise(counts)) <= AT_ONCE


@pytest.mark.parametrize("served", [False, True])
async def test_clients_that_repeat_at_once_what_was_refused_make_no_other_wait(flooded: Flooded, served: bool) -> None:
    """Neither a new one, nor one that has been served since it was refused."""
    other = flooded.connect()
    if served:
        await flooded.ask([other], b"503")
        flooded.empty()
        await flooded.ask([other], b"200")
        flooded.fill()
    clients = [flooded.connect() for _ in range(FLOOD)]
    await flooded.ask(clients, b"503")
    for client in (*clients, other):
        client.send(UPLOAD)
    await turns_until(lambda: count_answered([other]) == 1)
    assert count_answered(clients) <= AT_ONCE


async def test_a_set_that_took_more_than_its_share_of_the_time_rests() -> None:
    """It is read again afterwards."""
    served, client = socket.socketpair()
    sockets, reads = ReadableSockets(0.5), list[int]()

    def read() -> None:
        time.sleep(LONG_SECONDS)
        reads.append(served.fileno())

    with served, client:
        sockets.add(served.fileno(), read)
        client.send(b"never read, and always ready")
        await turns_until(lambda: len(reads) == 1)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(reads) == 1
        await turns_until(lambda: len(reads) == 2)
        sockets.remove(served.fileno())


async def test_a_process_that_was_suspended_soon_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it was: the time of its suspension is not time for which it must rest."""
    served, client = socket.socketpair()
    sockets, suspensions, suspended = ReadableSockets(0.5), list[int](), asyncio.Event()

    def read() -> None:
        suspensions.append(served.fileno())
        suspended.set()

    monkeypatch.setattr(
        asyncio.get_running_loop(), "time", lambda: time.monotonic() + SUSPENDED_SECONDS * len(suspensions)
    )
    with served, client:
        sockets.add(served.fileno(), read)
        client.send(b"never read, and always ready")
        await suspended.wait()
        await turns_until(lambda: len(suspensions) == 2)
        sockets.remove(served.fileno())


async def test_where_the_system_has_no_epoll_clients_are_refused_and_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that have sent something in one turn."""
    monkeypatch.delattr(select, "epoll")
    flooded = Flooded()
    clients = [flooded.connect() for _ in range(FLOOD)]
    await flooded.ask(clients, b"503")
    flooded.empty()
    await flooded.ask(clients[:1], b"200")
    await flooded.end()
