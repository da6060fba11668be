"""A minimal HTTP/1.1 client: requests are prepared bytes, and responses are parsed only as far as necessary.

Theory of operation. The generator shares two cores with the server, so what it spends per request falsifies the
figures. A connection is one `asyncio.Protocol` that has one request under way: it writes ready bytes and looks for the
end of the answer. Large bodies go out in pieces, as the socket takes them, all from one buffer that every request
shares. An answer that comes before its body was sent ends the sending.
"""

import asyncio
import re
import select
from collections.abc import Mapping
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
        self._writable = asyncio.Event()
        self._answer: asyncio.Future[LoadResponse] | None = None

    async def request(self, request: LoadRequest, bytes_per_second: float = 0.0) -> LoadResponse:
        """Send a request and return its answer; `bytes_per_second` makes this a slow client.

        Raises:
            ConnectionError: the connection ended before the whole answer was there.
        """
        answer: asyncio.Future[LoadResponse] = asyncio.get_running_loop().create_future()
        self._answer = answer
        if bytes_per_second:
            await self._drip(request, bytes_per_second, answer)
        elif len(request.parts) == 1:
            self._transport.write(request.parts[0])
        else:
            await self._send(request, answer)
        return await answer

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent: nothing, such as its end, has arrived since the last answer."""
        if not self.is_open:
            return False
        arrived = select.poll()
        arrived.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not arrived.poll(0)

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False
        self._transport.abort()

    async def _send(self, request: LoadRequest, answer: "asyncio.Future[LoadResponse]") -> None:
        for part in request.parts:
            view = memoryview(part)
            for start in range(0, len(part), PIECE_BYTES):
                await self._writable.wait()
                if answer.done():
                    self.is_open = False  # the body was not sent, so nothing can follow it
                    return
                self._transport.write(view[start : start + PIECE_BYTES])

    async def _drip(
        self, request: LoadRequest, bytes_per_second: float, answer: "asyncio.Future[LoadResponse]"
    ) -> None:
        content = b"".join(request.parts)
        step = max(1, int(bytes_per_second / DRIPS_PER_SECOND))
        for start in range(0, len(content), step):
            if answer.done():
                self.is_open = False
                return
            self._transport.write(content[start : start + step])
            await asyncio.sleep(1 / DRIPS_PER_SECOND)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin (asyncio's interface)."""
        self._transport = cast("asyncio.Transport", transport)
        self._writable.set()
        self.is_open = True

    def pause_writing(self) -> None:
        """Wait with sending (asyncio's interface)."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on sending (asyncio's interface)."""
        self._writable.set()

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
                self._finish(LoadResponse(status, body), closing=_CLOSE.search(head) is not None)

    def connection_lost(self, error: Exception | None) -> None:
        """End (asyncio's interface)."""
        self.is_open = False
        self._writable.set()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("closed without an answer"))

    def _body_bytes(self, head: bytes, start: int) -> int | None:
        """The length of the body that follows `head`, or None while it is not all there."""
        if _CHUNKED.search(head):
            size = self._received.find(b"0\r\n\r\n", start) + 5 - start
            return size if size >= len(b"0\r\n\r\n") else None
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        return size if len(self._received) >= start + size else None

    def _finish(self, answer: LoadResponse, *, closing: bool) -> None:
        if closing:
            self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)


async def connect(address: Address) -> LoadConnection:
    """Open a connection; raises OSError where there is no server."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(LoadConnection, address.host, address.port, ssl=address.tls or None)
    return connection
