"""Excess requests are refused before they are received: 429 for an account's share, 503 for the whole service."""

import http.client
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest

from service.accounts.administration import Terms
from tests.database import TestServer
from tests.support.converters import at_a_standstill
from tests.support.data import collection, feature, lakes, point
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.server import Client, Server, create_account, running_server

FILE = "/api/geo/convert/file"
BATCH = "/api/geo/convert/batch"
ASYNC = {"Prefer": "respond-async"}
UNSENT = (
    b"Expect: 100-continue\r\nContent-Length: 10\r\n",
    b"Content-Length: 9000000\r\n",
    b"Transfer-Encoding: chunked\r\n",
)
BUSY_SECONDS = 3.0
TEAM = Terms(plan="team", plan_owner="organization")
Start = Callable[..., Server]

pytestmark = pytest.mark.xdist_group("saturation")  # four servers for all


@pytest.fixture(scope="module")
def start(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts servers with settings, each on its own database, until the module's tests have ended."""
    with ExitStack() as stack:

        def started(**settings: str) -> Server:
            dsn, directory = postgres.create_database(postgres.migrated_template()), tmp_path_factory.mktemp("server")
            stack.callback(postgres.drop_database, dsn)
            return stack.enter_context(running_server(directory, dsn, settings))

        yield started


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    """One converter, one waiting place, one file at a time for each account."""
    return start(GEOMILL_CONVERTERS="1", GEOMILL_WAITING_ROOM="1", GEOMILL_MAX_PER_ACCOUNT="1")


@pytest.fixture(scope="module")
def sharing(start: Start) -> Server:
    """One converter, two files at a time for each account."""
    return start(GEOMILL_CONVERTERS="1", GEOMILL_MAX_PER_ACCOUNT="2")


def occupy(client: Client) -> str:
    """Start a conversion; return its job id."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())}, headers=ASYNC)
    assert response.status_code == 202, response.text
    job_id: str = response.json()["jobId"]
    return job_id


def announce_upload(client: Client) -> tuple[http.client.HTTPResponse, dict[str, object]]:
    """Announce fifty megabytes, send none of them, and return the response."""
    address = urlsplit(client.server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_SECONDS)
    connection.putrequest("POST", FILE)
    connection.putheader("X-API-Key", client.key.api_key)
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader("Content-Length", str(50 * 2**20))
    connection.endheaders()
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    return response, problem


def end(connection: http.client.HTTPConnection) -> int:
    """Read the whole response, close the connection, and return the status."""
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def send_megabytes(client: Client) -> httpx.Response:
    """Send eight megabytes with a client that reads only after it has sent everything."""
    return client.post(FILE, files={"file": ("a.geojson", b" " * 8_000_000)})


def test_an_account_with_its_share_under_way_is_refused_before_its_upload(server: Server) -> None:
    """With 429, the time to retry and what is left; afterwards it can convert as before."""
    with create_account(server, TEAM) as client:
        with at_a_standstill(server):
            job_id = occupy(client)
            response, problem = announce_upload(client)
            assert (response.status, problem["code"]) == (429, "too_many_requests")
            assert int(response.headers["Retry-After"]) > 0
            assert response.headers["RateLimit"] == f'"concurrency";r=0;t={response.headers["Retry-After"]}'
            assert response.headers["RateLimit-Policy"].startswith('"concurrency";q=1;qu="concurrent-requests", ')
            assert send_megabytes(client).status_code == 429
            status = client.get(f"/api/geo/convert/jobs/{job_id}/status")
            assert status.headers["ratelimit"].startswith('"concurrency";r=0')
        assert client.wait_for(job_id)["status"] == "Completed"
        assert client.convert("a.geojson", lakes())["success"]
        assert len(client.get("/api/geo/convert/jobs").json()["jobs"]) == 2
        assert server.wait_until_idle() == []


def test_a_full_waiting_room_refuses_before_the_upload(server: Server) -> None:
    """Two accounts fill it, and a third is refused with 503; once there is room it can convert."""
    clients = [create_account(server, TEAM, name) for name in ("one", "two", "three")]
    late = clients[2]
    with at_a_standstill(server):
        jobs = [occupy(client) for client in clients[:2]]
        response, problem = announce_upload(late)
        assert (response.status, problem["code"]) == (503, "overloaded")
        assert int(response.headers["Retry-After"]) > 0
        assert send_megabytes(late).status_code == 503
        ready = httpx.get(f"{server.url}/readyz")
        assert (ready.status_code, ready.json()["checks"]["intake"]) == (503, "full")
    for client, job_id in zip(clients, jobs, strict=False):  # they take turns on the one converter
        assert client.wait_for(job_id)["status"] == "Completed"
    assert late.convert("a.geojson", lakes())["success"]
    assert httpx.get(f"{server.url}/readyz").is_success
    assert server.wait_until_idle() == []
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def full(start: Start) -> Iterator[tuple[Server, Client]]:
    """A service in which two accounts hold every place, and the client of a third account."""
    server = start(GEOMILL_CONVERTERS="1", GEOMILL_WAITING_ROOM="1", GEOMILL_DRAIN_SECONDS="0")
    clients = [create_account(server, TEAM, name) for name in ("one", "two", "three")]
    with at_a_standstill(server):
        for client in clients[:2]:
            occupy(client)
        assert clients[2].get("/api/geo/pricing/tiers").is_success  # the service knows its key
        yield server, clients[2]
    for client in clients:
        client.close()


def test_who_is_refused_unread_is_told_as_anybody_else(full: tuple[Server, Client]) -> None:
    """With the request's own id; nothing in its body becomes a request."""
    server, client = full
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_SECONDS)
    inner = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    for name in ("first", "second"):
        headers = {"X-API-Key": client.key.api_key, "X-Request-Id": name}
        connection.request("POST", FILE, body=inner, headers=headers)
        response = connection.getresponse()
        problem = json.loads(response.read())
        assert (response.status, problem["code"], problem["requestId"]) == (503, "overloaded", name)
        assert response.headers["X-Request-Id"] == name
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.headers["Cache-Control"] == "no-store"
        assert int(response.headers["Retry-After"]) > 0
        assert response.headers["Connection"] is None
    connection.request("GET", "/healthz")
    assert json.loads(connection.getresponse().read()) == {"status": "alive"}
    connection.close()
    shed = server.events("requests.shed")[0]
    assert (shed["refused"], shed["depth"]) == (1, 2)
    assert [entry for entry in server.events("request.finished") if entry["status"] == 503] == []


@pytest.mark.parametrize("lines", UNSENT)
def test_nobody_is_asked_for_a_body_that_would_be_refused(full: tuple[Server, Client], lines: bytes) -> None:
    """A full service responds 503 at once and closes the connection, also for a large body or one without a length."""
    server, client = full
    address = urlsplit(server.url)
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=PATIENCE_SECONDS) as connection:
        key = f"X-API-Key: {client.key.api_key}\r\n".encode()
        connection.sendall(b"POST /api/geo/convert/file HTTP/1.1\r\nHost: x\r\n" + key + lines + b"\r\n")
        answer = b"".join(iter(partial(connection.recv, 65_536), b""))
        assert answer.startswith(b"HTTP/1.1 503")
        assert answer.count(b"HTTP/1.1") == 1
        assert b"connection: close" in answer.lower()


def test_whoever_is_refused_unread_may_send_the_rest_late(full: tuple[Server, Client]) -> None:
    """A client among hundreds may send its body, and read the response, only when it is scheduled."""
    server, client = full
    address = urlsplit(server.url)
    head = f"POST {FILE} HTTP/1.1\r\nHost: x\r\nX-API-Key: {client.key.api_key}\r\nContent-Length: 9000000\r\n\r\n"
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(head.encode())
        time.sleep(BUSY_SECONDS)
        for _ in range(4):
            connection.sendall(bytes(100_000))
        answer = b"".join(iter(partial(connection.recv, 65_536), b""))
    assert answer.startswith(b"HTTP/1.1 503")
    assert answer.endswith(b"}")


def test_an_account_within_its_share_is_served_while_another_floods(start: Start) -> None:
    """However many requests of the other are waiting."""
    content = collection(*(feature(point(n % 90, 1), n=n) for n in range(3000)))
    server = start(GEOMILL_CONVERTERS="1", GEOMILL_DRAIN_SECONDS="0")
    with (
        create_account(server, TEAM, "flooding") as flooding,
        create_account(server, TEAM, "other") as other,
    ):
        assert other.convert("a.geojson", lakes())["success"]
        statuses = {202}
        while statuses == {202}:
            statuses.add(flooding.post(FILE, files={"file": ("a.geojson", content)}, headers=ASYNC).status_code)
        assert statuses == {202, 503}
        assert other.convert("a.geojson", lakes())["success"]


def test_requests_that_arrive_together_do_not_slip_past_the_share(sharing: Server) -> None:
    """Two requests at a time proceed, however many pass the first check while uploading."""
    content = lakes() + b" " * 3_000_000  # more than is on its way at a time: who has sent nearly all has been let in
    with create_account(sharing, TEAM) as client:
        body = httpx.Request("POST", "http://x", files={"file": ("a.geojson", content)})
        head = {"X-API-Key": client.key.api_key, "Content-Type": body.headers["Content-Type"]}
        address = urlsplit(sharing.url)
        connections = [
            http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_SECONDS) for _ in range(6)
        ]
        for connection in connections:
            connection.putrequest("POST", FILE)
            for name, value in {**head, "Content-Length": str(len(body.read()))}.items():
                connection.putheader(name, value)
            connection.endheaders(body.read()[:-10])
        with at_a_standstill(sharing):  # none of the two ends before the others are refused
            for connection in connections:
                connection.send(body.read()[-10:])
            sockets = [connection.sock for connection in connections]
            assert any(len(select.select(sockets, [], [], 0)[0]) == 4 for _ in polls())
        assert sorted(map(end, connections)) == [200, 200, 429, 429, 429, 429]
        assert client.usage()[0] == 2


def test_a_batch_above_the_share_is_taken_when_nothing_else_is_under_way(sharing: Server) -> None:
    """Otherwise it could never be accepted; beside another request, it is refused as a whole."""
    files = [(f"{name}.geojson", lakes()) for name in "abc"]
    with create_account(sharing, TEAM) as client:
        with at_a_standstill(sharing):
            job_id = occupy(client)
            assert client.post(BATCH, files=[("files", file) for file in files]).status_code == 429
        assert client.wait_for(job_id)["status"] == "Completed"
        assert [entry["success"] for entry in client.batch(*files)["results"]] == [True, True, True]
