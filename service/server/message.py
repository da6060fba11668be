"""The body of a request and the response to it, as bytes on a connection.

h11's readers find the pieces of a body. h11's connection class is not used: its objects and states for both directions
cost a quarter of a small request, and what a server needs of them is here.
"""

import math
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import h11
from h11._readers import ChunkedReader, ContentLengthReader

from service.server.head import DECLARED, ENCODING
from service.server.inbox import Inbox

Header = tuple[bytes, bytes]
CONNECTION = b"connection"
MOST_CHUNKS = 256
"""How many chunks of a body are joined in a turn of the event loop: some milliseconds, however small they are."""
_WITHOUT_BODY = frozenset({204, 304})
_STATUS_LINES = {code.value: b"HTTP/1.1 %d %s\r\n" % (code, code.phrase.encode()) for code in HTTPStatus}
"""With the phrases: to clients built on llhttp, such as h2load, a response without one has no status."""
CONTINUE = _STATUS_LINES[HTTPStatus.CONTINUE] + b"\r\n"
_HEADERS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9a-z-]+: [\t\x20-\x7e\x80-\xff]*\r\n)*")


class RequestBody:
    """The body of a request whose header has been taken from `inbox`."""

    def __init__(self, inbox: Inbox, fields: Mapping[bytes, bytes]) -> None:
        """Read the framing from the header `fields`, whose names are in lower case."""
        self.declared_bytes = math.inf if ENCODING in fields else int(fields.get(DECLARED, b"0"))
        """The declared length; infinite with chunked encoding."""
        self.is_complete = not self.declared_bytes
        """Whether all of it was taken."""
        self.has_many_chunks = False
        """Whether it comes in chunks, of which more may have been received than the last piece had."""
        self._inbox = inbox
        self._left = self.declared_bytes
        self._read = ChunkedReader() if ENCODING in fields else ContentLengthReader(int(self.declared_bytes))

    def take(self) -> bytes:
        """Remove and return the next piece; empty if nothing of it has been received, or at the end.

        Chunks are joined: each on its own would cost the application ten times as much as reading it costs here.

        Raises:
            h11.ProtocolError: these bytes are no such body.
        """
        piece = self._take_one()
        if not piece or self.is_complete or self.declared_bytes < math.inf:
            return piece
        pieces = [piece]
        while len(pieces) < MOST_CHUNKS and (piece := self._take_one()):
            pieces.append(piece)
        self.has_many_chunks = bool(piece)
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]

    def _take_one(self) -> bytes:
        event = None if self.is_complete else self._read(self._inbox)  # type: ignore[arg-type]  # h11's own buffer
        if isinstance(event, h11.Data):
            self._left -= len(event.data)
            self.is_complete = not self._left
            return bytes(event.data)
        self.is_complete = self.is_complete or event is not None
        return b""


class Response:
    """The response to one request, serialized. Its header fields and its length must be right.

    Raises:
        ValueError: by every method, if they are not.
    """

    def __init__(self, *, to_head: bool, to_http10: bool, closing: bool) -> None:
        """Respond to a HEAD, an HTTP/1.0 request, or the last one of a connection."""
        self.is_closing = closing
        """Whether the connection ends with this response."""
        self.has_started = self.is_complete = False
        self._is_bodiless = to_head
        self._may_be_chunked = not to_http10
        self._is_chunked = False
        self._left: int | None = None

    def start(self, status: int, headers: Iterable[Header]) -> bytes:
        """Return the header, with the framing of the body that follows."""
        lines, fields = b"", 0
        for given, value in headers:
            name = given.lower()
            if name == DECLARED:
                self._left = int(value)
            if name == CONNECTION:
                self.is_closing = self.is_closing or b"close" in value.lower()
            elif name != ENCODING:
                lines += b"%s: %s\r\n" % (name, value)
                fields += 1
        if not _HEADERS.fullmatch(lines) or lines.count(b"\n") != fields:
            raise ValueError("a header field of the response has a line end or another control character")
        self._is_bodiless = self._is_bodiless or status in _WITHOUT_BODY
        if self._left is None and status not in _WITHOUT_BODY:
            self._is_chunked = self._may_be_chunked
            self.is_closing = self.is_closing or not self._is_chunked
            lines += b"transfer-encoding: chunked\r\n" if self._is_chunked else b""
        if self.is_closing:
            lines += b"connection: close\r\n"
        self.has_started = True
        return b"%s%s\r\n" % (_STATUS_LINES[status], lines)

    def data(self, body: bytes) -> bytes:
        """Return a piece of the body in its framing."""
        if self._is_bodiless or not body:
            return b""
        if self._is_chunked:
            return b"%x\r\n%s\r\n" % (len(body), body)
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0:
                raise ValueError("the body of the response is longer than its Content-Length")
        return body

    def end(self) -> bytes:
        """Return the end of the body."""
        if self._left and not self._is_bodiless:
            raise ValueError("the body of the response is shorter than its Content-Length")
        self.is_complete = True
        return b"0\r\n\r\n" if self._is_chunked and not self._is_bodiless else b""
