"""Bodies come from the socket to the application whole, in order, and without being copied."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import h11
import pytest
from h11._receivebuffer import ReceiveBuffer
from hypothesis import given
from hypothesis import strategies as st

from service.server.bodies import Inflow, pass_pieces_on

HEAD = b"POST /%d HTTP/1.1\r\nHost: here\r\n%b\r\n"
LENGTH, CHUNKED = b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"
LARGE = bytes(range(256)) * 1024

bodies = st.lists(st.binary(max_size=300), max_size=4)
requests = st.lists(st.tuples(bodies, st.booleans()), min_size=1, max_size=3)
sizes = st.lists(st.integers(min_value=1, max_value=400), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def _pieces_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h11._connection.ReceiveBuffer", ReceiveBuffer)  # put back at the end, whatever it was
    pass_pieces_on()


def sent(many: Sequence[tuple[list[bytes], bool]]) -> bytes:
    """Requests one behind the other, with the length of their bodies in the head or before each chunk."""
    text = b""
    for number, (chunks, chunked) in enumerate(many):
        if chunked:
            parts = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
            text += HEAD % (number, CHUNKED) + b"".join(parts) + b"0\r\n\r\n"
        else:
            text += HEAD % (number, LENGTH % len(b"".join(chunks))) + b"".join(chunks)
    return text


def understood(pieces: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The target and the body of each request that h11 reads."""
    found: list[tuple[bytes, bytes]] = []
    connection = h11.Connection(h11.SERVER)
    for piece in pieces:
        connection.receive_data(piece)
        while not isinstance(event := connection.next_event(), type):  # that nothing more can be read
            if isinstance(event, h11.Request):
                found.append((event.target, b""))
            elif isinstance(event, h11.Data):
                found[-1] = (found[-1][0], found[-1][1] + event.data)
            else:
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
    return found


@given(many=requests, cuts=sizes)
def test_requests_are_understood_wherever_they_are_cut(many: list[tuple[list[bytes], bool]], cuts: list[int]) -> None:
    """Bodies come out as they went in, and none loses a byte to the next."""
    text, pieces = sent(many), list[bytes]()
    while text:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(text[:size])
        text = text[size:]
    expected = [(b"/%d" % number, b"".join(chunks)) for number, (chunks, _) in enumerate(many)]
    assert understood(pieces) == expected


def test_a_piece_of_a_body_is_handed_on_as_it_came() -> None:
    """It is the same object: nobody has copied it."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(HEAD % (0, LENGTH % (2 * len(LARGE))))
    assert isinstance(connection.next_event(), h11.Request)
    for _ in range(2):
        connection.receive_data(LARGE)
        event = connection.next_event()
        assert isinstance(event, h11.Data)
        assert event.data is LARGE


@asynccontextmanager
async def inflow() -> AsyncIterator[tuple[Inflow, socket.socket]]:
    """What comes in from a socket, and the socket that it comes from."""
    served, client = socket.socketpair()
    client.setblocking(False)
    _, writer = await asyncio.open_connection(sock=served)
    try:
        yield Inflow(writer.transport, asyncio.get_running_loop()), client
    finally:
        client.close()
        writer.close()


async def test_everything_arrives_and_then_the_end() -> None:
    """Whatever the sizes of what is sent, and also what came before the client left."""
    text = b"head" + 8 * LARGE + b"tail"
    async with inflow() as (arriving, client):
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(client, text))
        received = b""
        while len(received) < len(text):
            received += await arriving.read()
        await sending
        client.close()
        assert (received, await arriving.read(), await arriving.read()) == (text, b"", b"")


async def test_small_pieces_that_wait_are_read_together() -> None:
    """As many turns of everything are saved."""
    async with inflow() as (arriving, client):
        for number in range(5):
            client.send(b"%d" % number)
            await asyncio.sleep(0.01)
        assert await arriving.read() == b"01234"


@pytest.mark.parametrize(("piece", "most"), [(LARGE, 10 * len(LARGE)), (b"x", 10_000)], ids=["large", "tiny"])
async def test_a_client_that_sends_more_than_is_read_has_to_wait(piece: bytes, most: int) -> None:
    """Memory does not grow with what it sends; of tiny pieces fewer bytes are enough, for each is an object."""
    async with inflow() as (arriving, client):
        taken, refused = 0, 0
        while refused < 20:
            try:
                taken += client.send(piece)
                refused = 0
            except BlockingIOError:
                refused += 1
            await asyncio.sleep(0)
            assert taken < most
        received = 0
        while received < taken:
            received += len(await arriving.read())
        assert received == taken


async def test_a_connection_that_breaks_ends_what_comes_in() -> None:
    """Whoever waits is told, as of any other end."""
    async with inflow() as (arriving, client):
        waiting = asyncio.create_task(arriving.read())
        await asyncio.sleep(0)
        client.close()
        assert await waiting == b""
