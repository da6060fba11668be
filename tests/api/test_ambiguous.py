"""Requests that the server and a gateway in front of it could read differently are refused, with all that follows."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesHeaderParser
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from service.accounts.administration import Terms
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Client, Server

POST = b"POST /api/geo/convert/file HTTP/1.1\r\nHost: here\r\n"
GET = b"GET /healthz HTTP/1.1\r\n"
HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: smuggled\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
TEAM = Terms(plan="team", plan_owner="organization")

AMBIGUOUS = {
    "a request line that ends in a line feed": b"GET /healthz HTTP/1.1\nHost: here\r\n\r\n",
    "a header that ends in a line feed": GET + b"Host: here\nA: b\r\n\r\n",
    "nothing but line feeds": b"GET /healthz HTTP/1.1\nHost: here\n\n",
    "a blank line that is a line feed": GET + b"Host: here\r\n\n",
    "a bare carriage return": GET + b"Host: here\r\nA: b\rContent-Length: 3\r\n\r\n",
    "a folded header": GET + b"Host: here\r\nA: b\r\n c\r\n\r\n",
    "a folded length": POST + b"Content-Length:\r\n 5\r\n\r\nabcde",
    "a header that is folded before the first": GET + b" Host: here\r\n\r\n",
    "whitespace before the colon": POST + b"Content-Length : 5\r\n\r\nabcde",
    "a tab before the colon": POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "a header without a name": GET + b"Host: here\r\n: b\r\n\r\n",
    "a header without a colon": GET + b"Host: here\r\nA\r\n\r\n",
    "a null byte": GET + b"Host: here\r\nA: b\0c\r\n\r\n",
    "a control character": GET + b"Host: here\r\nA: b\x0bc\r\n\r\n",
    "a delete character": GET + b"Host: here\r\nA: b\x7fc\r\n\r\n",
    "equal lengths twice": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
    "a list of equal lengths": POST + b"Content-Length: 5, 5\r\n\r\nabcde",
    "lengths that differ": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "a length with a plus": POST + b"Content-Length: +5\r\n\r\nabcde",
    "a length with a minus": POST + b"Content-Length: -5\r\n\r\nabcde",
    "a length in hexadecimal": POST + b"Content-Length: 0x5\r\n\r\nabcde",
    "a length with an underscore": POST + b"Content-Length: 1_0\r\n\r\nabcde",
    "an empty length": POST + b"Content-Length:\r\n\r\n",
    "a length beyond all": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a length and chunks": POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and a length": POST + CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "a list of chunked": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "another encoding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "identity": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "chunked and something": POST + b"Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n",
    "chunks of HTTP/1.0": POST.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n0\r\n\r\n",
    "a method in small letters": b"get /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "a method with a small letter": b"HEAd /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "another version": b"GET /healthz HTTP/1.2\r\nHost: here\r\n\r\n",
    "a version of three numbers": b"GET /healthz HTTP/1.1.1\r\nHost: here\r\n\r\n",
    "a version in small letters": b"GET /healthz http/1.1\r\nHost: here\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "two spaces": b"GET  /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "a tab in the request line": b"GET\t/healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "an empty line before the request": b"\r\nGET /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "no host": GET + b"\r\n",
    "two hosts": GET + b"Host: here\r\nHost: there\r\n\r\n",
    "the same host twice": GET + b"Host: here\r\nHost: here\r\n\r\n",
    "a list of hosts": GET + b"Host: here, there\r\n\r\n",
    "a host with a path": GET + b"Host: here/there\r\n\r\n",
    "a host with a user": GET + b"Host: me@here\r\n\r\n",
    "another host in the target": b"GET http://there/healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "a target that is no path": b"GET healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "a target with a fragment": b"GET /healthz#there HTTP/1.1\r\nHost: here\r\n\r\n",
    "a star that is no OPTIONS": b"GET * HTTP/1.1\r\nHost: here\r\n\r\n",
    "a tunnel": b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n",
    "a WebSocket": GET + b"Host: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/2 from the first byte": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}

CHUNKS = {
    "an extension": b"5;a=b\r\nabcde\r\n0\r\n\r\n",
    "an extension of the last chunk": b"5\r\nabcde\r\n0;a\r\n\r\n",
    "a size that ends in a line feed": b"5\nabcde\r\n0\r\n\r\n",
    "a chunk that ends in a line feed": b"5\r\nabcde\n0\r\n\r\n",
    "a chunk that is longer than its size": b"5\r\nabcdef\r\n0\r\n\r\n",
    "a size with a prefix": b"0x5\r\nabcde\r\n0\r\n\r\n",
    "a size with a plus": b"+5\r\nabcde\r\n0\r\n\r\n",
    "a size with whitespace": b"5 \r\nabcde\r\n0\r\n\r\n",
    "a size beyond all": b"fffffffffffffffff\r\nabcde",
    "no size": b"\r\nabcde\r\n0\r\n\r\n",
    "a size that never ends": b"0" * 100,
    "fields after the last chunk in lines that end in line feeds": b"5\r\nabcde\r\n0\r\nA: b\n\n",
}

UNDERSTOOD = {
    "a target with the host": b"GET http://here:80/healthz HTTP/1.1\r\nHost: HERE:80\r\n\r\n",
    "an empty host": GET + b"Host:\r\n\r\n",
    "an address for a host": GET + b"Host: [::1]:8080\r\n\r\n",
    "HTTP/1.0 without a host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "letters beyond ASCII in a header": GET + "Host: here\r\nA: Zürich\r\n\r\n".encode(),
    "a change to HTTP/2": GET + b"Host: here\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
}


class Answer(NamedTuple):
    """A response that was read from a socket."""

    status: int
    headers: dict[str, str]
    body: bytes


def read_answers(text: bytes) -> list[Answer]:
    """All responses of a connection; each has a length."""
    answers = []
    while text:
        head, _, rest = text.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        headers = {name.lower(): value for name, value in BytesHeaderParser().parsebytes(fields).items()}
        length = int(headers.get("content-length", "0"))
        answers.append(Answer(int(line.split()[1]), headers, rest[:length]))
        text = rest[length:]
    return answers


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    """An open connection."""
    address = urlsplit(server.url)
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=PATIENCE_SECONDS) as connection:
        yield connection


def answers_to(server: Server, *pieces: bytes) -> list[Answer]:
    """Send the pieces one by one, then read until the server closes the connection."""
    with connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        return read_answers(b"".join(iter(lambda: connection.recv(65_536), b"")))


def assert_refused(answer: Answer) -> None:
    """With status 400 and a problem that has a request id; the connection ends."""
    problem = json.loads(answer.body)
    assert (answer.status, problem["status"], problem["code"]) == (400, 400, "malformed_request")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == problem["requestId"]
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_ambiguous_head_is_refused_and_nothing_after_it_is_read(server: Server, name: str) -> None:
    """However the bytes are divided among packets."""
    text = AMBIGUOUS[name]
    for pieces in ([text + HIDDEN], [text[:-3], text[-3:] + HIDDEN]):
        [refused] = answers_to(server, *pieces)
        assert_refused(refused)


@pytest.mark.parametrize("name", CHUNKS)
def test_an_ambiguous_chunk_is_refused_and_nothing_after_it_is_read(server: Server, client: Client, name: str) -> None:
    """Even with a valid key, so that the server reads the body."""
    key = f"X-API-Key: {client.key.api_key}\r\n".encode()
    form = b"Content-Type: multipart/form-data; boundary=x\r\n"
    [refused] = answers_to(server, POST + key + form + CHUNKED + b"\r\n" + CHUNKS[name] + HIDDEN)
    assert_refused(refused)


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_has_one_meaning_is_understood(server: Server, name: str) -> None:
    with connected(server) as connection:
        connection.sendall(UNDERSTOOD[name])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_what_follows_a_body_and_is_no_request_is_refused(server: Server, client: Client) -> None:
    """The response to the preceding request comes first."""
    content = httpx.Request("POST", "http://x", files={"file": ("a.geojson", lakes())})
    fields = {"X-API-Key": client.key.api_key, **content.headers, "host": "here"}
    head = b"POST /api/geo/convert/file HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode()
    converted, refused = answers_to(server, head + b"\r\n" + content.read() + b"garbage\r\n\r\n" + HIDDEN)
    assert (converted.status, json.loads(converted.body)["success"]) == (200, True)
    assert_refused(refused)


EXPECT = b"Expect: 100-continue\r\nContent-Type: multipart/form-data; boundary=x\r\n"
TOO_LARGE = b"Content-Length: 1000000000\r\n"


@pytest.mark.parametrize("key", [b"", b"X-API-Key: gm_wrong\r\n", b"X-API-Key: gm_" + b"0" * 38 + b"\r\n"])
def test_nobody_without_a_key_is_told_to_go_on(server: Server, key: bytes) -> None:
    """The first response is 401, without 100 Continue."""
    for length in (b"Content-Length: 5\r\n", TOO_LARGE, CHUNKED):
        with connected(server) as connection:
            connection.sendall(POST + key + EXPECT + length + b"\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 401")


def test_nobody_is_told_to_send_a_body_that_is_too_large(server: Server, client: Client) -> None:
    """The first response is 413, without 100 Continue."""
    with connected(server) as connection:
        connection.sendall(POST + f"X-API-Key: {client.key.api_key}\r\n".encode() + EXPECT + TOO_LARGE + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413")


def test_who_may_send_is_told_to_go_on(server: Server, client: Client) -> None:
    """One 100 Continue, then the response."""
    content = httpx.Request("POST", "http://x", files={"file": ("a.geojson", lakes())})
    body = content.read()
    fields = f"X-API-Key: {client.key.api_key}\r\nContent-Type: {content.headers['content-type']}\r\n"
    with connected(server) as connection:
        connection.sendall(POST + fields.encode() + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        answer = b""
        while b'"success":true' not in answer:
            piece = connection.recv(65_536)
            assert piece, answer
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")
