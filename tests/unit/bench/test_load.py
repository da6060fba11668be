"""The load generator reads responses however they arrive, and a slow server never delays its arrivals."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import MSG_MORE, SHUT_WR
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from bench.load.client import Address, LoadRequest, LoadResponse, connect, get, upload
from bench.load.load import OK, Load, put_load
from bench.measure.figures import latency_of

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
FINE = b"HTTP/1.1 200 \r\ncontent-length: 4\r\n\r\nfine"


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[Address]:
    """A server on a free port that passes its connections to `serve`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield Address("127.0.0.1", listening.sockets[0].getsockname()[1], tls=False)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request, which has no body."""
    return await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize(
    "pieces",
    [
        [FINE],
        [FINE[:20], FINE[20:40], FINE[40:]],
        [FINE[number : number + 1] for number in range(len(FINE))],
        [b"HTTP/1.1 100 Continue\r\n\r\n", FINE],
    ],
    ids=["whole", "in three", "byte by byte", "after an interim answer"],
)
async def test_an_answer_is_read_in_whatever_pieces_it_comes(pieces: list[bytes]) -> None:
    """The generator finds the end of a response, and the connection serves the next request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await read_request(reader)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)

    async with server(serve) as address:
        connection = await connect(address)
        for _ in range(2):
            assert await connection.request(get(address, "/", {})) == LoadResponse(200, b"fine")
        connection.close()


async def test_a_refusal_ends_the_sending_of_a_large_body() -> None:
    """A client that gets a response while sending stops, and does not reuse the connection."""
    received = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = len(await read_request(reader))
        writer.write(b"HTTP/1.1 401 \r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        while (part := await reader.read(1 << 20)) and received < 10_000_000:
            received += len(part)

    async with server(serve) as address:
        connection = await connect(address)
        body = upload(address, "/", {}, name="a.geojson", content=b"x" * 200_000_000, copy=False)
        assert (await connection.request(body)).status == 401
        assert not connection.is_open
        connection.close()


async def test_arrivals_do_not_wait_for_answers() -> None:
    """An open loop keeps its rate with a server that does not respond until the last request has arrived."""
    arrived = 0
    all_there = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        await read_request(reader)
        arrived += 1
        if arrived == 20:
            all_there.set()
        await all_there.wait()
        writer.write(FINE)
        await writer.drain()

    async with server(serve) as address:
        load = Load(requests=[get(address, "/", {})], judge=lambda _answer: OK, rate=200.0, count=20)
        tally = await put_load(address, load)
    assert len(tally.seconds_by_kind[OK]) == 20


async def test_what_is_done_while_the_queues_fill_does_not_count() -> None:
    """Requests are sent during the lead as afterwards, but their answers are not among those of the window."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            writer.write(FINE)
            await writer.drain()

    async with server(serve) as address:
        requests = [get(address, "/", {})]
        load = Load(requests=requests, judge=lambda _answer: OK, rate=50.0, lead_seconds=0.21, seconds=0.0)
        tally = await put_load(address, load)
    assert len(tally.seconds_by_kind[OK]) == 11
    assert tally.done_in_window == 0


async def test_what_is_not_served_is_an_error_and_no_latency() -> None:
    """A connection that ends without a response is counted under its error's name."""

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    async with server(serve) as address:
        load = Load(requests=[LoadRequest((b"GET / HTTP/1.1\r\n\r\n",))], judge=lambda _answer: OK, clients=2, count=4)
        tally = await put_load(address, load)
    assert tally.errors == {"ConnectionResetError": 4}
    assert not tally.seconds_by_kind[OK]


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    """Idle connections that the server closes cause no errors, though a load that is late has not read of it yet."""

    class Once(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.send(FINE, MSG_MORE)  # in one segment with the end, so that both arrive together
            self.request.shutdown(SHUT_WR)

    def judge(_answer: LoadResponse) -> str:
        time.sleep(0.06)  # more requests are due, and answered connections closed, before the loop goes on
        return OK

    with ThreadingTCPServer(("127.0.0.1", 0), Once) as listening:
        Thread(target=listening.serve_forever).start()
        address = Address("127.0.0.1", listening.server_address[1], tls=False)
        load = Load(requests=[get(address, "/", {})], judge=judge, rate=50.0, count=20)
        tally = asyncio.run(put_load(address, load))
        listening.shutdown()
    assert not tally.errors


def test_percentiles_are_those_of_the_requests() -> None:
    """The nearest rank of a thousand requests that took one to a thousand milliseconds."""
    latency = latency_of(number / 1000 for number in range(1, 1001))
    assert latency is not None
    assert (latency.p50, latency.p99, latency.p999) == (501.0, 991.0, 1000.0)
