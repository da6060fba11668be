"""How long a connection lives, and in how many pieces an answer leaves, with Hypercorn serving an application."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Event, RawData
from hypercorn.protocol.h11 import H2ProtocolAssumedError
from hypercorn.typing import ConnectionState, LifespanState
from hypercorn.utils import wrap_app
from starlette.types import Receive, Scope, Send

from service.server.connections import PromptServer
from service.server.protocol import Http1, speak_http1

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

REQUEST = b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n"
KEEP_ALIVE_SECONDS = 0.5
WORK_SECONDS = 3 * KEEP_ALIVE_SECONDS


async def application(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer at once, after a while, or with a head alone."""
    if scope["path"] == "/slow":
        await asyncio.sleep(WORK_SECONDS)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    if scope["path"] == "/broken":
        raise RuntimeError
    await send({"type": "http.response.body", "body": b"done"})


@dataclass
class Client:
    """One end of a connection whose other end is served; `pieces` are what the server wrote, one by one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    context: WorkerContext
    pieces: list[bytes] = field(default_factory=list)

    async def ask(self, path: bytes = b"/") -> bytes:
        """Send a request and return its answer."""
        self.writer.write(REQUEST % path)
        return await self.reader.readuntil(b"done")

    async def ended(self, seconds: float) -> bool:
        """Whether the server closes the connection within this time."""
        try:
            return await asyncio.wait_for(self.reader.read(), seconds) == b""
        except TimeoutError:
            return False


class Watched(PromptServer):
    """Notes what is written."""

    pieces: list[bytes]

    async def protocol_send(self, event: Event) -> None:
        """Take what the protocol says."""
        if isinstance(event, RawData):
            self.pieces.append(event.data)
        await super().protocol_send(event)


@asynccontextmanager
async def connection() -> AsyncIterator[Client]:
    """Serve one connection."""
    speak_http1()
    loop, context = asyncio.get_running_loop(), WorkerContext(None)
    config = Config()
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.errorlog = None
    served, own = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=own)
    client = Client(reader, writer, context)
    app = wrap_app(cast("ASGIFramework", application), 0, "asgi")
    server = Watched(app, loop, config, context, {}, *await asyncio.open_connection(sock=served))
    server.pieces = client.pieces
    task = loop.create_task(_serve(server))
    try:
        yield client
    finally:
        writer.close()
        async with asyncio.timeout(5):
            await task


async def _serve(server: TCPServer) -> None:
    await server


async def test_an_answer_leaves_in_one_piece() -> None:
    async with connection() as client:
        answer = await client.ask()
        assert client.pieces == [answer]


async def test_a_head_without_its_body_leaves_all_the_same() -> None:
    async with connection() as client:
        client.writer.write(REQUEST % b"/broken")
        assert (await client.reader.read()).startswith(b"HTTP/1.1 200")


async def test_a_connection_that_is_not_used_is_closed() -> None:
    async with connection() as client:
        assert await client.ended(10 * KEEP_ALIVE_SECONDS)


async def test_the_time_counts_from_the_last_answer() -> None:
    async with connection() as client:
        for _ in range(4):
            assert not await client.ended(KEEP_ALIVE_SECONDS / 2)
            assert await client.ask()
        assert await client.ended(10 * KEEP_ALIVE_SECONDS)


async def test_work_that_takes_longer_is_not_cut_off() -> None:
    async with connection() as client:
        assert await client.ask(b"/slow")


async def test_a_server_that_stops_closes_idle_connections_at_once() -> None:
    async with connection() as client:
        assert await client.ask()
        await client.context.terminated.set()
        assert await client.ended(KEEP_ALIVE_SECONDS / 2)


async def test_a_server_that_stops_lets_work_end() -> None:
    async with connection() as client:
        answer = asyncio.get_running_loop().create_task(client.ask(b"/slow"))
        await asyncio.sleep(KEEP_ALIVE_SECONDS / 2)
        await client.context.terminated.set()
        assert await answer
        assert await client.ended(KEEP_ALIVE_SECONDS / 2)


@asynccontextmanager
async def protocol() -> AsyncIterator[tuple[Http1, list[Event]]]:
    """What reads requests, without a connection, and what it says."""
    sent: list[Event] = []

    async def send(event: Event) -> None:
        sent.append(event)

    app, config, context = wrap_app(cast("ASGIFramework", application), 0, "asgi"), Config(), WorkerContext(None)
    async with TaskGroup(asyncio.get_running_loop()) as tasks:
        state = ConnectionState(LifespanState({}))
        yield Http1(app, config, context, tasks, state, ssl=False, client=None, server=None, send=send), sent


async def test_a_head_that_is_too_long_is_refused_also_in_one_piece() -> None:
    """Of which the beginning alone is looked at, however much the socket gives at once."""
    async with protocol() as (http1, sent):
        await http1.handle(RawData(b"GET / HTTP/1.1\r\nHost: here\r\n" + b"a: b\r\n" * 40_000 + b"\r\n"))
    assert isinstance(sent[0], RawData)
    assert sent[0].data.startswith(b"HTTP/1.1 431")


async def test_a_client_that_begins_with_http_2_is_served_all_that_it_sent() -> None:
    """Also of a large piece, of which the beginning tells the protocol."""
    came = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(200_000)
    async with protocol() as (http1, _):
        with pytest.raises(H2ProtocolAssumedError) as assumed:
            await http1.handle(RawData(came))
    assert assumed.value.data == came
