"""Requests are parsed in order, however they are divided, and bodies are not copied; unusual syntax is refused."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.server.head import read_head
from service.server.inbox import Inbox, Refused
from service.server.message import RequestBody

HEAD = b"POST /%d HTTP/1.1\r\nHost: here\r\n%b\r\n"
LENGTH, CHUNKED = b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"
LARGE = bytes(range(256)) * 1024
MOST_HEAD_BYTES = 1024

bodies = st.lists(st.binary(max_size=300), max_size=4)
requests = st.lists(st.tuples(bodies, st.booleans()), min_size=1, max_size=3)
sizes = st.lists(st.integers(min_value=1, max_value=400), min_size=1, max_size=8)


def sent(many: Sequence[tuple[list[bytes], bool]]) -> bytes:
    """Requests in sequence, with the length of their bodies in the head or before each chunk."""
    text = b""
    for number, (chunks, chunked) in enumerate(many):
        if chunked:
            parts = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
            text += HEAD % (number, CHUNKED) + b"".join(parts) + b"0\r\n\r\n"
        else:
            text += HEAD % (number, LENGTH % len(b"".join(chunks))) + b"".join(chunks)
    return text


def understood(pieces: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The target and body of each parsed request."""
    found: list[tuple[bytes, bytes]] = []
    inbox, body = Inbox(MOST_HEAD_BYTES), None
    for piece in pieces:
        inbox += piece
        while inbox:
            if body is None:
                request = read_head(inbox)
                if request is None:
                    break
                body = RequestBody(inbox, request.fields)
                found.append((request.target, b""))
            taken = body.take()
            found[-1] = (found[-1][0], found[-1][1] + taken)
            if body.is_complete:
                body = None
            elif not taken:
                break
    return found


def cut(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Divide into pieces of these sizes, repeatedly."""
    pieces: list[bytes] = []
    while text:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(text[:size])
        text = text[size:]
    return pieces


@given(many=requests, cuts=sizes)
def test_requests_are_understood_wherever_they_are_cut(many: list[tuple[list[bytes], bool]], cuts: list[int]) -> None:
    """Bodies arrive unchanged, and none loses a byte to the next."""
    expected = [(b"/%d" % number, b"".join(chunks)) for number, (chunks, _) in enumerate(many)]
    assert understood(cut(sent(many), cuts)) == expected


def test_a_piece_of_a_body_is_handed_on_as_it_came() -> None:
    """It is the same object."""
    inbox = Inbox(MOST_HEAD_BYTES)
    body = RequestBody(inbox, {b"content-length": b"%d" % (2 * len(LARGE))})
    for _ in range(2):
        inbox += LARGE
        assert body.take() is LARGE
    assert body.is_complete


UNUSUAL = {
    "bare line feeds": b"GET / HTTP/1.1\nHost: here\n\n",
    "one bare line feed": b"GET / HTTP/1.1\r\nHost: here\nA: b\r\n\r\n",
    "a bare carriage return": b"GET / HTTP/1.1\r\nHost: here\rA: b\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: here\r\nA: b\r\n c\r\n\r\n",
    "a null byte": b"GET / HTTP/1.1\r\nHost: here\r\nA: b\0c\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "a chunk with an extension": HEAD % (0, CHUNKED) + b"1;a=b\r\n",
    "a chunk with a long size": HEAD % (0, CHUNKED) + b"00000000000000001\r\n",
    "a chunk after a line feed": HEAD % (0, CHUNKED) + b"1\nx",
    "a folded line after the last chunk": HEAD % (0, CHUNKED) + b"0\r\nA: b\r\n c\r\n\r\n",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", UNUSUAL)
@given(cuts=sizes)
def test_what_is_unusual_is_refused_wherever_it_is_cut(name: str, cuts: list[int]) -> None:
    """Even if the unusual byte and the one before it come in two pieces."""
    with pytest.raises(Refused):
        understood(cut(UNUSUAL[name], cuts))


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["in pieces", "whole"])
def test_a_head_that_is_too_long_is_refused(end: bytes) -> None:
    """Whether or not its end has arrived."""
    with pytest.raises(Refused, match="request header is too long"):
        understood([b"GET / HTTP/1.1\r\nHost: here\r\nA: " + b"a" * MOST_HEAD_BYTES + end])
