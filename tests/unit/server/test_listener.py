"""Which connections are accepted up to the limit, and what the others are told."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from starlette.types import Receive, Scope, Send

from service.server.connection import LATELY_SECONDS
from service.server.listener import TURNED_AWAY_AT_ONCE, listen
from service.server.serving import Server
from service.server.site import ServerLimits
from service.siblings import Siblings, open_board
from tests.support.patience import PATIENCE_SECONDS

HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 20\r\n\r\n"
CROWD = TURNED_AWAY_AT_ONCE + 44
HOLDERS = 4
MANY = 64
LARGE_BYTES = 32 * 1024 * 1024  # more than the system keeps for a client that does not read


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to every request."""
    while (await receive()).get("more_body"):
        pass
    body = bytes(LARGE_BYTES) if scope["path"] == "/large" else b"done"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def site(most_connections: int) -> AsyncIterator[tuple[Server, int]]:
    """Serve on a port, and yield it."""
    listening = listen("127.0.0.1", 0)
    site = Server(answer, listening, ServerLimits(max_connections=most_connections))
    site.door.open()
    try:
        yield site, listening.getsockname()[1]
    finally:
        await site.stop(5)
        site.cut_off()


async def connect(port: int) -> socket.socket:
    """Connect as a client that does not read yet."""
    client = socket.socket()
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    return client


async def connect_and_begin(server: Server, port: int) -> socket.socket:
    """Connect as a client whose request is in progress."""
    client = await connect(port)
    await asyncio.get_running_loop().sock_sendall(client, HEAD)
    await until(lambda: len(server.site.tasks) == 1)
    return client


async def ask(client: socket.socket, *pieces: bytes) -> bytes:
    """Send a request in pieces, as a busy client does, and return the response; a reset is an OSError."""
    loop = asyncio.get_running_loop()
    for piece in pieces or (HEAD, b"1234567890", b"1234567890"):
        await loop.sock_sendall(client, piece)
        await asyncio.sleep(0.01)
    received = await loop.sock_recv(client, 65_536)
    client.close()
    return received


async def until(holds: Callable[[], bool]) -> None:
    """Yield to other tasks until a condition holds."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            if holds():
                return
            await asyncio.sleep(0.001)


async def test_none_of_a_crowd_of_connections_too_many_is_reset() -> None:
    """Each receives a refusal, whether accepted at once or later."""
    async with site(1) as (server, port):
        inside = await connect_and_begin(server, port)
        crowd = [await connect(port) for _ in range(CROWD)]
        async with asyncio.timeout(PATIENCE_SECONDS):
            answers = await asyncio.gather(*map(ask, crowd))
        assert {answer[:12] for answer in answers} == {b"HTTP/1.1 503"}
        assert (await ask(inside, b"1234567890", b"1234567890")).endswith(b"done")


async def test_there_is_room_again_when_others_have_gone() -> None:
    """Refused clients that stay connected take no capacity from others."""
    async with site(1) as (server, port):
        inside = await connect_and_begin(server, port)
        turned_away = await connect(port)
        assert (await asyncio.get_running_loop().sock_recv(turned_away, 65_536)).startswith(b"HTTP/1.1 503")
        inside.close()
        answer = b""
        with anyio.fail_after(PATIENCE_SECONDS):
            while not answer.endswith(b"done"):
                answer = await ask(await connect(port))
        turned_away.close()


async def begin_nothing(client: socket.socket) -> None:
    """Send nothing."""


async def begin_header(client: socket.socket) -> None:
    """Send half of a header."""
    await asyncio.get_running_loop().sock_sendall(client, HEAD[:20])


async def finish_one(client: socket.socket) -> None:
    """Finish a request, and send no other."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, HEAD + b"x" * 20)
    assert (await loop.sock_recv(client, 65_536)).endswith(b"done")


async def finish_unreadably(client: socket.socket) -> None:
    """Send what is no request, and do not close."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, b"\r\n\r\n")
    assert (await loop.sock_recv(client, 65_536)).startswith(b"HTTP/1.1 400")


async def read_nothing(client: socket.socket) -> None:
    """Ask for much, and read none of it."""
    await asyncio.get_running_loop().sock_sendall(client, HEAD.replace(b"/", b"/large", 1) + b"x" * 20)


@pytest.mark.parametrize("hold", [begin_nothing, begin_header, finish_one, finish_unreadably, read_nothing])
async def test_who_holds_a_connection_without_using_it_makes_way(
    hold: Callable[[socket.socket], Awaitable[None]],
) -> None:
    """For a client that connects when there is room for no other; requests in progress are not ended."""
    async with site(HOLDERS + 1) as (server, port):
        inside = await connect_and_begin(server, port)
        held = [await connect(port) for _ in range(HOLDERS)]
        for each in held:
            await hold(each)
        await until(lambda: len(server.connections) == HOLDERS + 1)
        answer = b""
        with anyio.fail_after(PATIENCE_SECONDS):
            while not answer.endswith(b"done"):
                answer = await ask(await connect(port))
        assert len(server.connections) >= HOLDERS  # the others have not been given up
        assert (await ask(inside, b"1234567890", b"1234567890")).endswith(b"done")
        for each in held:
            each.close()


async def test_who_has_begun_a_request_is_told_that_it_makes_way() -> None:
    """Whoever has been waited for longest does so first, and nobody before it had the time to send a request."""
    async with site(2) as (server, port):
        first, second = await connect(port), await connect(port)
        for each in (first, second):
            await begin_header(each)
        await until(lambda: len(server.connections) == 2)
        assert (await ask(await connect(port))).startswith(b"HTTP/1.1 503")
        ages = {each.waits_since for each in server.connections if not each.is_one_too_many}
        await until(lambda: server.site.loop.time() - max(ages) > LATELY_SECONDS)
        third = await connect(port)
        told = await asyncio.get_running_loop().sock_recv(first, 65_536)
        assert told.startswith(b"HTTP/1.1 503")
        assert await asyncio.get_running_loop().sock_recv(first, 1) == b""
        assert (await ask(second, HEAD[20:], b"x" * 20)).endswith(b"done")
        assert (await ask(third)).endswith(b"done")
        first.close()


async def test_a_crowd_that_stays_turned_away_keeps_nobody_out() -> None:
    """Whoever holds all connections may also wait beyond the limit, in the way of the refusals of others."""
    async with site(MANY) as (server, port):
        crowd = [await connect(port) for _ in range(MANY + CROWD)]
        await until(lambda: len(server.connections) == MANY + TURNED_AWAY_AT_ONCE)
        answer = b""
        with anyio.fail_after(PATIENCE_SECONDS):
            while not answer.endswith(b"done"):
                answer = await ask(await connect(port))
        assert sum(each.is_one_too_many for each in server.connections) == TURNED_AWAY_AT_ONCE
        for each in crowd:
            each.close()


async def test_who_is_in_the_queue_when_the_door_closes_is_served() -> None:
    """Closing the socket would reset connections that have not been accepted yet."""
    async with site(10) as (server, port):
        waiting = socket.socket()
        waiting.connect(("127.0.0.1", port))  # without a turn for the loop
        waiting.sendall(HEAD + b"x" * 20)
        waiting.setblocking(False)
        await server.stop(5)
        assert (await asyncio.get_running_loop().sock_recv(waiting, 65_536)).endswith(b"done")
        waiting.close()


async def test_who_has_more_connections_leaves_the_next_to_another(tmp_path: Path) -> None:
    """Of two processes that accept from one socket, even if one always looks first; a single process takes all."""
    listening = listen("127.0.0.1", 0)
    board = open_board(tmp_path / "board", 2)
    siblings = [Siblings(board, number) for number in (1, 2)]
    sites = [
        Server(answer, own, ServerLimits(), siblings=each)
        for own, each in zip((listening, listening.dup()), siblings, strict=True)
    ]
    for each, server in zip(siblings, sites, strict=True):
        each.beat(accepts=True)
        server.door.open()
    port = listening.getsockname()[1]
    clients = [await connect(port) for _ in range(8)]
    await until(lambda: sum(len(server.connections) for server in sites) == 8)
    assert [len(server.connections) for server in sites] == [4, 4]
    await sites[0].stop(5)
    clients += [await connect(port) for _ in range(4)]
    await until(lambda: len(sites[1].connections) == 8)
    await sites[1].stop(5)
    for client in clients:
        client.close()
