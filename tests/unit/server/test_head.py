"""Headers are read as h11 reads them, whatever is in them; what h11 refuses is refused."""

import h11
import pytest
from h11._readers import maybe_read_from_IDLE_client as read_with_h11
from h11._receivebuffer import ReceiveBuffer
from hypothesis import example, given
from hypothesis import strategies as st

from service.server.head import RequestHead, read_head
from service.server.inbox import Inbox, Refused

MOST_HEAD_BYTES = 16_384
NAMES = [b"Host", b"host", b"Content-Length", b"Transfer-Encoding", b"X-API-Key", b"A ", b"", b"A\xe4", b"A(", b"a_b"]
VALUES = [
    b"here:80",
    b"5",
    b"chunked",
    b"Chunked",
    b"",
    b" \t",
    b"a  b",
    b"\xff\x80",
    b"5, 5",
    b"-1",
    b"[::1]:8",
    b"+5",
]
METHODS = [b"GET", b"POST", b"get", b"G T", b"G\xe4", b"", b"PRI"]
TARGETS = [b"/", b"/a?b=c", b"*", b"http://here/", b"", b"/a b", b"/\xc3\xa4", b"/%00", b"//"]
VERSIONS = [b"1.1", b"1.0", b"2.0", b"1.2", b"11", b"x.y"]
BLANKS = [b"", b" ", b"\t ", b"  "]

fields = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(BLANKS), st.sampled_from(VALUES), st.sampled_from(BLANKS)),
    max_size=4,
)


def written(method: bytes, target: bytes, version: bytes, found: list[tuple[bytes, bytes, bytes, bytes]]) -> bytes:
    """The header as a client sends it."""
    lines = b"".join(b"%b:%b%b%b\r\n" % field for field in found)
    return b"%b %b HTTP/%b\r\nHost: here\r\n%b\r\n" % (method, target, version, lines)


def ours(text: bytes) -> RequestHead | None:
    """What the server reads; None if it refuses."""
    inbox = Inbox(MOST_HEAD_BYTES)
    inbox += text
    try:
        return read_head(inbox)
    except Refused:
        return None


def theirs(text: bytes) -> h11.Request | None:
    """What h11 reads; None if it refuses."""
    buffer = ReceiveBuffer()
    buffer += text
    try:
        return read_with_h11(buffer)
    except h11.ProtocolError:
        return None


def check(text: bytes) -> None:
    """What is read is what h11 reads."""
    mine, reference = ours(text), theirs(text)
    if mine is not None:
        assert reference is not None
        assert (mine.method, mine.target, mine.version) == (
            reference.method,
            reference.target,
            reference.http_version,
        )
        assert [(name, value.lower()) for name, value in mine.headers] == [
            (name, value.lower()) for name, value in reference.headers
        ]
        assert mine.fields == dict(mine.headers)


@given(st.sampled_from(METHODS), st.sampled_from(TARGETS), st.sampled_from(VERSIONS), fields)
def test_headers_of_any_form(
    method: bytes, target: bytes, version: bytes, found: list[tuple[bytes, bytes, bytes, bytes]]
) -> None:
    """Made of usual and unusual parts."""
    check(written(method, target, version, found))


@given(position=st.integers(0, 80), byte=st.binary(max_size=2))
@example(position=3, byte=b"")
def test_headers_with_any_byte_changed(position: int, byte: bytes) -> None:
    """At any place."""
    text = written(b"POST", b"/a?b=c", b"1.1", [(b"Content-Length", b" ", b"5", b" "), (b"A", b"", b"b  c", b"")])
    check(text[:position] + byte + text[position + 1 :])


ORDINARY = [(b"Content-Length", b" ", b"5", b"\t"), (b"X-API-Key", b"", b"a  b", b""), (b"Accept", b" ", b"", b"")]


@pytest.mark.parametrize("version", [b"1.0", b"1.1", b"2.0"])
def test_ordinary_headers_are_read(version: bytes) -> None:
    """So that the comparisons compare something."""
    found = ours(written(b"POST", b"/a?b=c", version, ORDINARY))
    assert found is not None
    expected = [(b"host", b"here"), (b"content-length", b"5"), (b"x-api-key", b"a  b"), (b"accept", b"")]
    assert found == (b"POST", b"/a?b=c", version, expected, dict(expected))


def test_a_header_without_host_is_refused() -> None:
    """Unless it is of HTTP/1.0, which has no such field."""
    assert ours(b"GET / HTTP/1.1\r\nA: b\r\n\r\n") is None
    assert ours(b"GET / HTTP/1.0\r\nA: b\r\n\r\n") is not None


def test_what_cannot_begin_a_request_is_refused_at_once() -> None:
    """Without waiting for a line that may never end."""
    inbox = Inbox(MOST_HEAD_BYTES)
    inbox += b" GET /"
    with pytest.raises(Refused):
        read_head(inbox)
