"""How long a connection lives, how responses are divided into writes, and how requests reach an application."""

import asyncio
import gc
import re
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.accounts.keys import Authenticator
from service.jobs.promises import VISITORS, Promises
from service.server.connection import ClientConnection
from service.server.gate import AWAITED_BYTES, Gate
from service.server.message import MOST_CHUNKS
from service.server.serving import Server
from service.server.site import ServerLimits

REQUEST = b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n"
UPLOAD = b"POST %s HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n"
KEEP_ALIVE_SECONDS = 0.5
SILENCE_SECONDS = KEEP_ALIVE_SECONDS / 10
WORK_SECONDS = 3 * KEEP_ALIVE_SECONDS
BUSY_SECONDS = 3.0
"""How long a client among hundreds may be busy with others between the pieces that it sends."""
LARGE = bytes(range(256)) * 1024
LARGEST_READ = 64 * 1024


@dataclass
class Application:
    """Responds at once, after a delay, at length, with a head alone, or after reading the body as instructed."""

    read: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    received: list[Message] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["path"] == "/slow":
            await asyncio.sleep(WORK_SECONDS)
        if scope["path"] == "/upload":
            await self.read.wait()
            while not self.received or self.received[-1].get("more_body"):
                self.received.append(await receive())
            if self.received[-1]["type"] == "http.disconnect":
                self.left.set()
        body = 100 * LARGE if scope["path"] == "/large" else b"done"
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        if scope["path"] == "/broken":
            raise RuntimeError
        if scope["path"] == "/late":
            await send({"type": "http.response.body", "body": body[:1], "more_body": True})
            await receive()
            body = body[1:]
        await send({"type": "http.response.body", "body": body})


class Watched(ClientConnection):
    """Records what is written."""

    def __init__(self, server: Server, served: socket.socket, pieces: list[bytes]) -> None:
        super().__init__(server.site, served, None, server.forget)
        self._written = pieces

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        self._written.append(data)
        await super().write(data)


@dataclass
class Client:
    """One end of a connection whose other end is served; `pieces` are the server's writes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    socket: socket.socket
    server: Server
    application: Application
    pieces: list[bytes]

    async def ask(self, path: bytes = b"/") -> bytes:
        """Send a request and return the response."""
        self.writer.write(REQUEST % path)
        return await self.reader.readuntil(b"done")

    async def send(self, data: bytes) -> None:
        """Send bytes; raise OSError as soon as the connection is reset."""
        own = self.socket.dup()
        own.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(own, data)
        own.close()

    async def ended(self, seconds: float) -> bool:
        """Whether the server closes the connection within this time."""
        try:
            return await asyncio.wait_for(self.reader.read(), seconds) == b""
        except TimeoutError:
            return False


async def until(holds: Callable[[], bool]) -> None:
    """Yield to other tasks until a condition holds."""
    async with asyncio.timeout(10):
        while True:
            if holds():
                return
            await asyncio.sleep(0)


@asynccontextmanager
async def connection(
    *,
    gate: Gate | None = None,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> AsyncIterator[Client]:
    """Serve one connection."""
    application, pieces = Application(), list[bytes]()
    limits = ServerLimits(keep_alive_seconds=keep_alive_seconds)
    server = Server(application, socket.socket(), limits, gate=gate)
    served, own = socket.socketpair()
    served.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=own)
    server.welcome(Watched(server, served, pieces))
    try:
        yield Client(reader, writer, own, server, application, pieces)
    finally:
        writer.close()
        async with asyncio.timeout(5):
            await server.stop(5)
        server.cut_off()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server with the usual limits."""
    async with connection() as opened:
        yield opened


async def test_an_answer_leaves_in_one_piece(client: Client) -> None:
    answer = await client.ask()
    assert client.pieces == [answer]


async def test_little_of_an_answer_is_copied_for_a_client_that_does_not_read(client: Client) -> None:
    """Thousands of clients could otherwise fill the memory with copies of a file that all of them share."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.writer.write(REQUEST % b"/large")
    (served,) = client.server.connections
    await until(lambda: served._writable is not None)
    assert len(served._wire._unsent) < len(LARGE)
    assert max(map(len, client.pieces)) < len(LARGE)
    answer = await client.reader.readuntil(b"\r\n\r\n")
    assert await client.reader.readexactly(100 * len(LARGE)) == 100 * LARGE
    assert answer.startswith(b"HTTP/1.1 200")


async def test_a_head_without_its_body_leaves_all_the_same(client: Client) -> None:
    client.writer.write(REQUEST % b"/broken")
    assert (await client.reader.read()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\n"])
async def test_a_connection_whose_request_does_not_come_is_told_so(client: Client, head: bytes) -> None:
    """It is not reset if the request comes after all."""
    client.writer.write(head)
    answer = await asyncio.wait_for(client.reader.read(), 10 * KEEP_ALIVE_SECONDS)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in answer
    for piece in REQUEST.split(b" "):
        await client.send(piece)


async def test_the_time_counts_from_the_last_answer() -> None:
    seconds = 6 * KEEP_ALIVE_SECONDS  # half of it is longer than a busy host keeps a process waiting
    async with connection(keep_alive_seconds=seconds) as client:
        for _ in range(3):
            assert not await client.ended(seconds / 2)
            assert await client.ask()
        assert await client.ended(10 * seconds)
        for piece in REQUEST.split(b" "):  # a request that crosses the end of its connection is not reset
            await client.send(piece)


async def test_work_that_takes_longer_is_not_cut_off(client: Client) -> None:
    assert await client.ask(b"/slow")


async def test_requests_that_come_together_are_answered_in_turn(client: Client) -> None:
    client.writer.write(REQUEST % b"/slow" + REQUEST % b"/")
    for _ in range(2):
        assert (await client.reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")


async def test_what_came_behind_requests_that_the_gate_refuses_is_served() -> None:
    """Even if it arrived in another piece while an earlier request was served, and nothing follows it."""
    promises = Promises(converters=1, most=1, taken=lambda: 0, taken_by={}, now=time.monotonic)
    gate = Gate(cast("Authenticator", None), promises)  # asked for callers with keys only
    refused = UPLOAD % (b"/", 40_000) + bytes(40_000)
    async with connection(gate=gate) as client:
        client.application.read.set()
        client.writer.write(UPLOAD % (b"/upload", 40_000) + bytes(40_000))  # from now on, large pieces are read at once
        assert await client.reader.readuntil(b"done")
        client.application.read.clear()
        _visits = [promises.seek_visit() for _ in range(VISITORS)]
        client.writer.write(REQUEST % b"/upload")
        [served] = client.server.connections
        await until(lambda: served._is_served)
        client.writer.write(2 * refused)
        await until(lambda: served._waiting_bytes >= len(2 * refused))
        client.writer.write(REQUEST % b"/")
        await until(lambda: served._pieces[-1] == REQUEST % b"/")
        client.application.read.set()
        async with asyncio.timeout(10):
            answers = await client.reader.readuntil(b"done") + await client.reader.readuntil(b"done")
        assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"503", b"503", b"200"]


async def test_a_server_that_stops_closes_idle_connections_at_once(client: Client) -> None:
    assert await client.ask()
    await client.server.stop(WORK_SECONDS)
    assert await client.ended(KEEP_ALIVE_SECONDS / 2)


@pytest.mark.parametrize(
    ("asked", "sent"),
    [(0, 0), (0, 10), (1, 10), (1, len(REQUEST % b"/"))],
    ids=["connected", "first begun", "further begun", "further sent"],
)
async def test_a_server_that_stops_answers_requests_that_are_on_their_way(
    client: Client, asked: int, sent: int
) -> None:
    """Those that have arrived, as a whole or in part, and those of clients that have just connected."""
    request = REQUEST % b"/"
    for _ in range(asked):
        await client.ask()
    await client.send(request[:sent])
    stopping = asyncio.get_running_loop().create_task(client.server.stop(10))
    await until(lambda: client.server.site.is_stopping)
    if sent < len(request):
        await asyncio.sleep(KEEP_ALIVE_SECONDS / 5)
        await client.send(request[sent:])
    assert (await client.reader.read()).endswith(b"done")
    await asyncio.wait_for(stopping, 10)


async def test_a_server_that_stops_does_not_wait_for_a_client_that_sends_nothing() -> None:
    """For longer than a client that has just connected needs."""
    async with connection(keep_alive_seconds=600) as client:
        await asyncio.wait_for(client.server.stop(60), 30)
        assert await client.reader.read() == b""


async def test_a_server_that_stops_lets_work_end(client: Client) -> None:
    answer = asyncio.get_running_loop().create_task(client.ask(b"/slow"))
    await asyncio.sleep(KEEP_ALIVE_SECONDS / 2)
    await client.server.stop(2 * WORK_SECONDS)
    assert await answer
    assert await client.ended(KEEP_ALIVE_SECONDS / 2)


async def test_a_body_arrives_whole_and_as_it_came(client: Client) -> None:
    """Whatever the sizes of the pieces."""
    body = b"first" + 8 * LARGE + b"last"
    client.application.read.set()
    client.writer.write(UPLOAD % (b"/upload", len(body)) + body)
    assert await client.reader.readuntil(b"done")
    assert b"".join(message["body"] for message in client.application.received) == body


@pytest.mark.parametrize(("piece", "most"), [(LARGE, 10 * len(LARGE)), (b"x", 10_000)], ids=["large", "tiny"])
async def test_a_client_that_sends_more_than_is_read_has_to_wait(client: Client, piece: bytes, most: int) -> None:
    """Memory stays bounded; for tiny pieces the limit is lower, since each is an object."""
    body = 20 * len(LARGE)
    client.writer.write(UPLOAD % (b"/upload", body))
    await client.writer.drain()
    own = client.socket.dup()
    own.setblocking(False)
    taken, refused = 0, 0
    while refused < 20:
        try:
            taken += own.send(piece)
            refused = 0
        except BlockingIOError:
            refused += 1
        await asyncio.sleep(0)
        assert taken < most
    client.application.read.set()
    await asyncio.get_running_loop().sock_sendall(own, bytes(body - taken))
    assert await client.reader.readuntil(b"done")
    assert sum(len(message["body"]) for message in client.application.received) == body
    own.close()


async def test_a_client_that_sends_more_requests_than_are_answered_has_to_wait(client: Client) -> None:
    """Memory stays bounded, however many of them are answered meanwhile: no answer makes room for more than it took."""
    own = client.socket.dup()
    own.setblocking(False)
    requests, taken = len(LARGE) * (REQUEST % b"/"), 0
    while len(client.pieces) < 500:
        with suppress(BlockingIOError):
            taken += own.send(requests[taken : taken + len(LARGE)])
        await asyncio.sleep(0)
        assert taken < 10 * len(LARGE)
    for _ in range(500):
        assert (await client.reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")
    own.close()


CHUNKED = b"POST %s HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY = 10 * MOST_CHUNKS


async def test_tiny_chunks_are_read_together_and_leave_turns_to_others(client: Client) -> None:
    """Each on its own took 60 microseconds, and those that had arrived, seconds in which nobody else was served."""
    client.writer.write(CHUNKED % b"/upload" + b"1\r\nx\r\n" * TINY + b"0\r\n\r\n")
    [served] = client.server.connections
    await until(lambda: served._is_served)
    turns = asyncio.create_task(turns_until(lambda: bool(client.pieces)))
    client.application.read.set()
    assert await client.reader.readuntil(b"done")
    received = [message["body"] for message in client.application.received]
    assert b"".join(received) == b"x" * TINY
    assert len(received) <= TINY // MOST_CHUNKS + 2
    assert await turns >= TINY // MOST_CHUNKS


async def test_tiny_chunks_that_nobody_reads_are_not_read_through(client: Client) -> None:
    """Anybody may send them, without a key; the connection ends with the response, as after any unread body."""
    client.writer.write(CHUNKED % b"/slow" + b"1\r\nx\r\n" * TINY + b"0\r\n\r\n" + REQUEST % b"/")
    answer = await client.reader.readuntil(b"done")
    assert b"connection: close" in answer
    assert await client.reader.read(1) == b""


async def turns_until(holds: Callable[[], bool]) -> int:
    """How many turns of the event loop pass until a condition holds."""
    turns = 0
    while not holds():
        await asyncio.sleep(0)
        turns += 1
    return turns


@pytest.mark.parametrize("size", [10, len(LARGE)])
async def test_a_request_that_came_with_a_body_that_nobody_reads_is_not_the_last(client: Client, size: int) -> None:
    """What follows the body is the next request."""
    client.writer.write(UPLOAD % (b"/slow", size) + LARGE[:size] + REQUEST % b"/")
    for _ in range(2):
        answer = await client.reader.readuntil(b"done")
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" not in answer.lower()


async def test_what_follows_the_beginning_of_a_body_that_nobody_reads_is_not_a_request(client: Client) -> None:
    """HAProxy gives such a request up once it is answered, and may send another client's on the same connection."""
    client.writer.write(UPLOAD % (b"/unread", 10) + b"12345")
    answer = await client.reader.readuntil(b"done")
    assert b"connection: close" in answer.lower()
    client.writer.write(2 * REQUEST % (b"/", b"/"))
    assert await client.reader.read() == b""


@asynccontextmanager
async def full() -> AsyncIterator[Client]:
    """A client of a service that is full."""
    promises = Promises(converters=1, most=1, taken=lambda: 0, taken_by={}, now=time.monotonic)
    _visits = [promises.seek_visit() for _ in range(VISITORS)]
    async with connection(gate=Gate(cast("Authenticator", None), promises)) as client:
        yield client


async def test_the_gate_refuses_a_small_body_once_it_has_arrived() -> None:
    """Clients that send header and body apart keep their connections, and half a request has no response."""
    async with full() as client:
        for _ in range(2):
            for piece in (UPLOAD % (b"/upload", 10), b"12345"):
                await client.send(piece)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.reader.read(1), SILENCE_SECONDS)
            await client.send(b"67890")
            answer = await client.reader.readuntil(b"}")
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"connection: close" not in answer.lower()
        client.writer.write(REQUEST % b"/")
        assert (await client.reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")


async def test_a_small_body_that_the_gate_refuses_is_not_awaited_for_long() -> None:
    """However slowly it arrives, what it lacks is told, and nothing that follows is a request."""
    async with full() as client:
        client.writer.write(UPLOAD % (b"/upload", 1000))
        for _ in range(4):
            await asyncio.sleep(KEEP_ALIVE_SECONDS / 3)
            client.writer.write(b"1")
        answer = await client.reader.read()
        assert answer.startswith(b"HTTP/1.1 408")


async def test_the_gate_refuses_a_large_body_before_it_arrives() -> None:
    """The connection ends with the response."""
    async with full() as client:
        client.writer.write(UPLOAD % (b"/upload", AWAITED_BYTES + 1))
        answer = await client.reader.readuntil(b"}")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"connection: close" in answer.lower()
        client.writer.write(2 * REQUEST % (b"/", b"/"))
        assert await client.reader.read() == b""


async def test_a_large_body_that_nobody_reads_may_come_after_the_answer(client: Client) -> None:
    """The response announces that the connection will close, and however late the rest arrives, there is no reset."""
    client.writer.write(UPLOAD % (b"/unread", len(LARGE)) + b"first")
    await asyncio.sleep(BUSY_SECONDS)
    for _ in range(4):
        await client.send(LARGE[: len(LARGE) // 8])
    answer = await client.reader.read()
    assert b"connection: close" in answer.lower()
    assert answer.endswith(b"done")


async def test_a_server_that_stops_lets_a_client_come_to_its_answer(client: Client) -> None:
    """What it still sends is discarded, and its connection is not reset."""
    client.writer.write(UPLOAD % (b"/unread", len(LARGE)) + b"first")
    await client.reader.readuntil(b"\r\n")
    stopping = asyncio.get_running_loop().create_task(client.server.stop(WORK_SECONDS))
    await asyncio.sleep(KEEP_ALIVE_SECONDS)
    assert not stopping.done()
    await client.send(LARGE[: len(LARGE) // 2])
    assert (await client.reader.read()).endswith(b"done")
    client.writer.close()
    await asyncio.wait_for(stopping, WORK_SECONDS)


async def test_a_server_that_stops_refuses_an_upload_that_does_not_end(client: Client) -> None:
    """Once it is too late for a conversion: its client learns that it may send the file elsewhere."""
    client.application.read.set()
    client.writer.write(UPLOAD % (b"/upload", len(LARGE)) + b"first")
    ending = anyio.Event()
    stopping = asyncio.get_running_loop().create_task(client.server.stop(20, ending))
    await until(lambda: bool(client.application.received))
    assert not client.application.left.is_set()
    ending.set()
    answer = await client.reader.read()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after" in answer.lower()
    assert b"restarting" in answer
    client.writer.close()
    await asyncio.wait_for(stopping, 10)


async def test_a_client_that_sends_first_and_reads_later_gets_a_large_answer(client: Client) -> None:
    """Neither side waits for the other to read."""
    client.writer.write(UPLOAD % (b"/large", 100 * len(LARGE)) + 100 * LARGE)
    async with asyncio.timeout(20):
        await client.writer.drain()
        answer = await client.reader.read()
    assert len(answer) > 100 * len(LARGE)


async def test_no_interim_response_is_sent_within_a_response(client: Client) -> None:
    """If the application has begun its response before it reads, the body is not requested any more."""
    client.writer.write(UPLOAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n") % (b"/late", 10))
    async with asyncio.timeout(20):
        begun = await client.reader.readuntil(b"\r\n\r\nd")
        client.writer.write_eof()
        rest = await client.reader.read()
    assert begun.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1" not in rest


async def test_an_application_that_reads_is_told_that_its_client_has_gone(client: Client) -> None:
    client.application.read.set()
    client.writer.write(UPLOAD % (b"/upload", 10) + b"12345")
    await client.writer.drain()
    client.writer.close()
    async with asyncio.timeout(5):
        await client.application.left.wait()


async def test_a_closed_connection_needs_no_garbage_collector() -> None:
    """Under overload there are thousands a second."""
    gc.collect()
    gc.disable()
    try:
        async with connection() as client:
            await client.ask()
            served = weakref.ref(next(iter(client.server.connections)))
            client.writer.close()
            await until(lambda: not client.server.connections)
            await until(lambda: served() is None)
    finally:
        gc.enable()
