"""Responses are framed as HTTP/1.1 requires, and invalid ones are not sent."""

from http import HTTPStatus

import pytest

from service.server.message import Header, Response

LENGTH: Header = (b"content-length", b"4")


def response(*, to_head: bool = False, to_http10: bool = False) -> Response:
    """A response to a request on a persistent connection."""
    return Response(to_head=to_head, to_http10=to_http10, closing=False)


def test_a_declared_length_frames_the_body() -> None:
    """The body follows unchanged, and the connection stays open."""
    answer = response()
    sent = answer.start(200, [(b"Content-Length", b"4"), (b"x-a", "é".encode("latin-1"))])
    sent += answer.data(b"do") + answer.data(b"ne") + answer.end()
    assert sent == b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-a: \xe9\r\n\r\ndone"
    assert answer.is_complete
    assert not answer.is_closing


def test_a_body_without_a_declared_length_goes_in_chunks() -> None:
    """An empty piece does not end the body."""
    answer = response()
    sent = answer.start(200, []) + answer.data(b"do") + answer.data(b"") + answer.data(b"ne") + answer.end()
    assert sent == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\ndo\r\n2\r\nne\r\n0\r\n\r\n"
    assert not answer.is_closing


def test_the_end_of_the_connection_frames_a_body_to_http10() -> None:
    """HTTP/1.0 has no chunks."""
    answer = response(to_http10=True)
    sent = answer.start(200, []) + answer.data(b"done") + answer.end()
    assert sent == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndone"
    assert answer.is_closing


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_statuses_have_no_body(status: bytes) -> None:
    """Nor framing for one."""
    answer = response()
    sent = answer.start(int(status[:3]), []) + answer.data(b"done") + answer.end()
    assert sent == b"HTTP/1.1 %s\r\n\r\n" % status


@pytest.mark.parametrize("status", HTTPStatus)
def test_every_status_line_has_its_phrase(status: HTTPStatus) -> None:
    """Load generators that use Node.js's parser see no status without one."""
    assert response().start(status, []).startswith(b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()))


def test_a_response_to_head_has_the_header_alone() -> None:
    """Its length is that of the body for GET."""
    answer = response(to_head=True)
    assert answer.start(200, [LENGTH]) + answer.data(b"done") + answer.end() == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    )
    assert answer.is_complete


def test_the_application_can_close_the_connection() -> None:
    """One header says so."""
    answer = response()
    assert answer.start(200, [LENGTH, (b"connection", b"Close")]).count(b"connection: close\r\n") == 1
    assert answer.is_closing


@pytest.mark.parametrize(
    "header",
    [
        (b"a", b"b\r\nc: d"),
        (b"a", b"b\nc"),
        (b"a", b"b\0"),
        (b"a b", b"c"),
        (b"a\r\nb", b"c"),
        (b"", b"c"),
        (b"a:", b"b"),
    ],
)
def test_a_header_field_cannot_become_two(header: Header) -> None:
    """No line break is sent, whatever the field contains."""
    with pytest.raises(ValueError, match="header field"):
        response().start(200, [LENGTH, header])


def test_a_body_has_its_declared_length() -> None:
    """A longer body would be read as the next response, a shorter one would take its beginning."""
    longer, shorter = response(), response()
    longer.start(200, [LENGTH])
    with pytest.raises(ValueError, match="longer"):
        longer.data(b"too long")
    shorter.start(200, [LENGTH])
    shorter.data(b"n")
    with pytest.raises(ValueError, match="shorter"):
        shorter.end()
