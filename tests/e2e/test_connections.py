"""Idle and nearly idle connections cost other clients nothing."""

import http.client
import json
import resource
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from service.accounts.administration import Terms
from service.jobs.promises import BURST_EACH, PROMPT_SECONDS
from service.server.site import KEEP_ALIVE_SECONDS
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import EXECUTED, Client, Server, create_account, running_server

IDLE = 1000
DRIPPING = 100
TEAM = Terms(plan="team", plan_owner="organization")
FILE = "/api/geo/convert/file"
SHARES_SERVER = pytest.mark.xdist_group("connections")


@pytest.fixture(scope="module")
def server(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with default settings, for tests that do not change its state."""
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("connections"), dsn, program=EXECUTED) as running:
        yield running


@pytest.fixture(autouse=True)
def _room_for_sockets() -> Iterator[None]:
    """Let this process open as many sockets as the test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def connected(server: Server, number: int) -> Iterator[list[socket.socket]]:
    """This many open connections."""
    address = urlsplit(server.url)
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection((str(address.hostname), address.port or 80), timeout=PATIENCE_SECONDS)
            )
            for _ in range(number)
        ]


@contextmanager
def dripping(connections: list[socket.socket], byte: bytes, every: float = 0.2) -> Iterator[None]:
    """Send one byte on each connection at intervals; connections that the server closes are closed here too."""
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(every):
            for connection in connections:
                try:
                    connection.send(byte)
                except OSError:
                    continue

    thread = threading.Thread(target=drip)
    thread.start()
    yield
    stop.set()
    thread.join()


def assert_converts(client: Client, times: int) -> None:
    """Conversions succeed as usual."""
    answers = [client.convert("a.geojson", lakes(), outputFormat="Csv") for _ in range(times)]
    assert [answer["success"] for answer in answers] == [True] * times


@contextmanager
def besieged(server: Server, key: str) -> Iterator[None]:
    """A thousand idle connections, and two hundred that trickle a head or a body."""
    head = (
        f"POST {FILE} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nExpect: 100-continue\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000000\r\n\r\n"
    )
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.geojson"\r\n\r\n'
    with ExitStack() as stack:
        _silent, asked, heads, bodies = (
            stack.enter_context(connected(server, number)) for number in (IDLE // 2, IDLE // 2, DRIPPING, DRIPPING)
        )
        for connection in asked:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        for connection in heads:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        for first in range(0, DRIPPING, BURST_EACH):  # more at once would be a flood
            burst = bodies[first : first + BURST_EACH]
            for connection in burst:
                connection.sendall(head.encode())
            assert {connection.recv(12) for connection in burst} == {b"HTTP/1.1 100"}
            for connection in burst:
                connection.sendall(body)
                connection.recv(1024)  # the rest of this answer
            time.sleep(PROMPT_SECONDS)
        answered = select.poll()
        for connection in bodies:
            answered.register(connection, select.POLLIN)
        assert answered.poll(0) == [], "every body is waited for"
        stack.enter_context(dripping(heads + bodies, b" ", every=1.0))
        assert all(connection.recv(16).startswith(b"HTTP/1.1 200") for connection in asked)
        assert len(connections_to(server)) > IDLE + DRIPPING
        yield


def test_files_are_converted_beside_a_thousand_idle_connections_and_slow_ones(
    tmp_path: Path, database_url: str
) -> None:
    """Idle connections, endless headers and slow bodies leave nothing behind."""
    executed = running_server(tmp_path, database_url, program=EXECUTED)  # to inherit the limit of open files
    with executed as server, create_account(server, TEAM) as client:
        with besieged(server, client.key.api_key):
            assert_converts(client, 20)
        assert server.wait_until_idle() == []
        assert client.usage()[0] == 20


def test_a_body_that_arrives_too_slowly_is_given_up(tmp_path: Path, database_url: str) -> None:
    """With 408; an occasional byte does not keep it open."""
    settings = {"GEOMILL_UPLOAD_IDLE_SECONDS": "1", "GEOMILL_UPLOAD_MIN_BYTES_PER_SECOND": "1000"}
    with (
        running_server(tmp_path, database_url, settings) as server,
        create_account(server, TEAM) as client,
        connected(server, 1) as [connection],
    ):
        head = (
            f"POST {FILE} HTTP/1.1\r\nHost: x\r\nX-API-Key: {client.key.api_key}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000000\r\n\r\n--x\r\n"
        )
        connection.sendall(head.encode())
        with dripping([connection], b" "):
            assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert server.wait_until_idle() == []


def test_a_connection_too_many_is_told_so(tmp_path: Path, database_url: str) -> None:
    """With 503, even for a client that sends first and reads later; once others have closed, there is room again."""
    with (
        running_server(tmp_path, database_url, {"GEOMILL_MAX_CONNECTIONS": "5"}) as server,
        create_account(server, TEAM) as client,
    ):
        with connected(server, 5):
            for content in (b"", b" " * 300_000):
                with httpx.Client(base_url=server.url, headers=client.headers) as another:
                    response = another.post(FILE, files={"file": ("a.geojson", content)})
                assert (response.status_code, response.json()["code"]) == (503, "overloaded")
                assert response.headers["content-type"] == "application/problem+json"
                assert response.json()["requestId"] == response.headers["x-request-id"]
                assert response.headers["cache-control"] == "no-store"
                assert int(response.headers["retry-after"]) > 0
                [told] = server.events("connection.refused")[-1:]
                assert told["request_id"] == response.headers["x-request-id"]
        assert_no_connections(server)
        assert_converts(client, 1)


LENGTHS = b"POST /api/geo/convert/file HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
UPGRADE = b"""GET /healthz HTTP/1.1\r
Host: x\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
Sec-WebSocket-Version: 13\r
\r
"""
UNREADABLE = {
    "no HTTP": (b"GARBAGE\r\n\r\n", 400, "malformed_request"),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400, "malformed_request"),
    "lengths that differ": (LENGTHS, 400, "malformed_request"),
    "a head without end": (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000, 431, "headers_too_large"),
    "a WebSocket": (UPGRADE, 400, "malformed_request"),
}


@SHARES_SERVER
def test_what_cannot_be_read_is_told_so_like_everything_else(server: Server) -> None:
    """As a problem with a request id that the log has too, and with the usual headers."""
    for name, (head, status, code) in UNREADABLE.items():
        with connected(server, 1) as [connection]:
            connection.sendall(head)
            response = http.client.HTTPResponse(connection)
            response.begin()
            problem = json.loads(response.read())
        assert (response.status, problem["status"], problem["code"]) == (status, status, code), name
        assert response.headers["Content-Type"] == "application/problem+json", name
        assert response.headers["Cache-Control"] == "no-store", name
        assert response.headers["Connection"] == "close", name
        told = server.events("connection.refused")[-1]
        assert told["request_id"] == problem["requestId"] == response.headers["X-Request-Id"], name
    assert httpx.get(f"{server.url}/healthz").is_success


@SHARES_SERVER
def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(server: Server) -> None:
    """Otherwise one server would take for the body what another takes for the next request."""
    head = b"POST /api/geo/convert/file HTTP/1.1\r\nHost: x\r\nContent-Length: 48\r\nTransfer-Encoding: chunked\r\n\r\n"
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: smuggled\r\n\r\n"
    with connected(server, 1) as [connection]:
        connection.sendall(head + smuggled)
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answers.startswith(b"HTTP/1.1 400")
        assert b"malformed_request" in answers
        assert answers.count(b"HTTP/1.1") == 1


@SHARES_SERVER
def test_connections_end_with_their_clients(server: Server) -> None:
    """Used and unused ones; none stays open until its idle limit."""
    with connected(server, 50):
        for _ in range(50):
            assert httpx.get(f"{server.url}/healthz").is_success
    assert_no_connections(server)


def assert_no_connections(server: Server) -> None:
    """The server closes what its clients have closed, well before the idle limit."""
    give_up_at = time.monotonic() + KEEP_ALIVE_SECONDS / 2
    while (left := connections_to(server)) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    assert left == []


def connections_to(server: Server) -> list[str]:
    """The states of the server's ends, as the host tells them: the process itself hides its descriptors from users."""
    port = httpx.URL(server.url).port
    ends = (each for each in psutil.net_connections("tcp") if each.laddr and each.laddr.port == port)
    return [end.status for end in ends if end.status not in {psutil.CONN_LISTEN, psutil.CONN_TIME_WAIT}]
