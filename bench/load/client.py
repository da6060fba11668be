"""A minimal HTTP/1.1 client: requests are prepared bytes, and responses are parsed only as far as necessary.

Theory of operation. The generator shares two cores with the server, so what it spends per request falsifies the
figures. A connection is one `asyncio.Protocol` that has one request under way: it writes ready bytes, looks for the end
of the answer, and calls who sent the request, without tasks and futures, which take most of the time. Large bodies go
out in pieces, as the socket takes them, all from one buffer that every request shares. An answer that comes before its
body was sent ends the sending.
"""

import asyncio
import re
import select
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

PIECE_BYTES = 256 * 1024
DRIPS_PER_SECOND = 10

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)
_FIRST_FINAL_STATUS = 200
_BOUNDARY = "geomill-bench-0c5c2c3f6a"


class Address(NamedTuple):
    """Where the server is."""

    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        """Its URL."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"


class LoadRequest(NamedTuple):
    """A request, ready to be sent; its parts may be shared with others."""

    parts: tuple[bytes, ...]


class LoadResponse(NamedTuple):
    """What came back."""

    status: int
    body: bytes


Ended = Callable[[LoadResponse | OSError], None]
"""Takes a request's answer, or what ended its connection before the whole answer was there."""


def get(address: Address, path: str, headers: Mapping[str, str]) -> LoadRequest:
    """Make a request without a body."""
    return LoadRequest((_head("GET", address, path, headers),))


def upload(
    address: Address,
    path: str,
    headers: Mapping[str, str],
    *,
    name: str,
    content: bytes,
    fields: Mapping[str, str] | None = None,
    copy: bool = True,
) -> LoadRequest:
    """Make a request with one file as a form; without `copy` large content is shared.

    The form has the other `fields`, too.
    """
    texts = "".join(f"{_part(other)}{text}\r\n" for other, text in (fields or {}).items())
    before = f"{texts}{_part('file', name)}".encode()
    after = f"\r\n--{_BOUNDARY}--\r\n".encode()
    form = {
        "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
        "Content-Length": str(len(before) + len(content) + len(after)),
    }
    parts = (_head("POST", address, path, {**headers, **form}) + before, content, after)
    return LoadRequest((b"".join(parts),) if copy else parts)


def _part(field: str, name: str = "") -> str:
    """Begin a part of a form: a file if there is a name."""
    return f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"' + (
        f'; filename="{name}"\r\n\r\n' if name else "\r\n\r\n"
    )


def _head(method: str, address: Address, path: str, headers: Mapping[str, str]) -> bytes:
    fields = {"Host": f"{address.host}:{address.port}", "Accept": "*/*", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


class LoadConnection(asyncio.Protocol):
    """One connection that is kept, with one request at a time."""

    def __init__(self) -> None:
        self.is_open = False
        self._received = bytearray()
        self._is_writable = True
        self._unsent: Iterator[memoryview] | None = None
        self._drip_seconds = 0.0
        self._ended: Ended | None = None

    async def request(self, request: LoadRequest) -> LoadResponse:
        """Send a request and return its answer.

        Raises:
            ConnectionError: the connection ended before the whole answer was there.
        """
        outcome: asyncio.Future[LoadResponse | OSError] = asyncio.get_running_loop().create_future()
        self.send(request, outcome.set_result)
        if isinstance(answer := await outcome, OSError):
            raise answer
        return answer

    def send(self, request: LoadRequest, ended: Ended, bytes_per_second: float = 0.0) -> None:
        """Send a request, and call `ended` with its answer or with what ended the connection before it.

        `bytes_per_second` makes this a slow client.
        """
        self._ended = ended
        if bytes_per_second:
            self._drip_seconds = 1 / DRIPS_PER_SECOND
            step = max(1, int(bytes_per_second * self._drip_seconds))
            self._unsent = _pieces((b"".join(request.parts),), step)
        elif len(request.parts) == 1:
            self._transport.write(request.parts[0])
        else:
            self._unsent = _pieces(request.parts, PIECE_BYTES)
        self._go_on()

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent: nothing, such as its end, has arrived since the last answer."""
        return self.is_open and not self._arrived.poll(0)

    def close(self, why: OSError | None = None) -> None:
        """Close the connection; a request under way ends as `why`."""
        self._transport.abort()
        self.connection_lost(why)

    def _go_on(self) -> None:
        """Send what is left, as far as the socket takes it, or the next drop of it."""
        while self._unsent is not None and self._is_writable:
            if (piece := next(self._unsent, None)) is None:
                self._unsent = None
                return
            self._transport.write(piece)
            if self._drip_seconds:
                asyncio.get_running_loop().call_later(self._drip_seconds, self._go_on)
                return

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin (asyncio's interface)."""
        self._transport = cast("asyncio.Transport", transport)
        self._arrived = select.poll()
        self._arrived.register(transport.get_extra_info("socket"), select.POLLIN)
        self.is_open = True

    def pause_writing(self) -> None:
        """Wait with sending (asyncio's interface)."""
        self._is_writable = False

    def resume_writing(self) -> None:
        """Go on sending (asyncio's interface)."""
        self._is_writable = True
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Take a piece of the answer (asyncio's interface)."""
        self._received += data
        while (end := self._received.find(_END_OF_HEAD)) >= 0:
            head = bytes(self._received[: end + 2])
            size = self._body_bytes(head, end + 4)
            if size is None:
                return
            body = bytes(self._received[end + 4 : end + 4 + size])
            del self._received[: end + 4 + size]
            status = int(head[9:12])
            if status >= _FIRST_FINAL_STATUS:
                # Nothing can follow a request whose body was not sent.
                self.is_open &= self._unsent is None and _CLOSE.search(head) is None
                self._end(LoadResponse(status, body))

    def connection_lost(self, error: Exception | None) -> None:
        """End (asyncio's interface)."""
        self.is_open = False
        self._end(error if isinstance(error, OSError) else ConnectionResetError("closed without an answer"))

    def _body_bytes(self, head: bytes, start: int) -> int | None:
        """The length of the body that follows `head`, or None while it is not all there."""
        if _CHUNKED.search(head):
            size = self._received.find(b"0\r\n\r\n", start) + 5 - start
            return size if size >= len(b"0\r\n\r\n") else None
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        return size if len(self._received) >= start + size else None

    def _end(self, outcome: LoadResponse | OSError) -> None:
        self._unsent = None
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(outcome)


def _pieces(parts: Iterable[bytes], size: int) -> Iterator[memoryview]:
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), size):
            yield view[start : start + size]


async def connect(address: Address) -> LoadConnection:
    """Open a connection; raises OSError where there is no server."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(LoadConnection, address.host, address.port, ssl=address.tls or None)
    return connection
