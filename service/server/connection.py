"""One client connection: its input, its output and its end.

No task runs for a connection between requests: received bytes are processed where asyncio delivers them, and a task
lives from the end of a request's header to the end of its response. One timer of the site serves all idle connections.

Flow control: when enough received bytes are waiting for the request, nothing more is read from the socket.
"""

import asyncio
import math
import socket
from collections import deque
from collections.abc import Coroutine
from functools import cached_property
from typing import TYPE_CHECKING

from service.errors import RequestFault
from service.http.unserved import TOO_LATE, TOO_MANY, as_bytes
from service.jobs.promises import Promise
from service.server.gate import Refusal
from service.server.http1 import Http1
from service.server.inbox import Refused
from service.server.wire import Wire

if TYPE_CHECKING:
    from service.server.serving import Site

_LARGE_BYTES = 64 * 1024
_PIECE_OVERHEAD_BYTES = 128  # a piece of one byte is an object too
_ENOUGH_BYTES = 256 * 1024 + _PIECE_OVERHEAD_BYTES
PARTING_SECONDS = 30.0
PARTING_BYTES = 128 * 1024 * 1024  # the largest upload
"""How long, and how much, a client may keep sending an unread body, so that it gets to read its response."""
LATELY_SECONDS = 2.0
"""How long after it has connected a client that is busy may need to send its first request."""


class Connection:
    """A client connection, which requests use through `read` and `write`.

    With `too_many` the client receives a refusal, because there are too many connections.
    """

    def __init__(self, site: "Site", client: socket.socket, address: object, *, too_many: bool = False) -> None:
        self.site = site
        self.client = _address(address)
        """The client's address."""
        self.has_ended = False
        """Whether the client sends no more."""
        self.speaks_http2 = False
        """Whether requests are streams of this connection, which begin and end without it."""
        self._loop = site.loop
        self._wire = Wire(client, self)
        self._http: Http1 | None = None
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._arrival: asyncio.Future[None] | None = None
        self._end: asyncio.Event | None = None  # made when waited for, because it costs a tenth of a refusal
        self._writable: asyncio.Future[None] | None = None
        self._too_many = too_many
        self._is_served = self._was_served = False
        self._is_deaf = False
        self._skipped_bytes = 0
        self._ignored_bytes = 0
        self.rest(resting=True)
        site.connections.add(self)

    def start(self) -> None:
        """Process the bytes received so far, and those that follow."""
        if self._too_many:
            self.refuse(TOO_MANY)
        else:
            self._wire.start()

    @cached_property
    def server(self) -> tuple[str, int] | None:
        """The server's address."""
        return _address(self._wire.local_address())

    @property
    def is_open(self) -> bool:
        """Whether data can be written."""
        return not self._wire.is_closing

    def data_received(self, data: bytes) -> None:
        """Accept received bytes: the start of a request, or more of the body of the current one."""
        if self._is_deaf:
            self._ignore(data)
        elif self._is_served:
            self._keep(data)
        else:
            self._look(data)

    def eof_received(self) -> bool:
        """Note that the client has finished sending; it can still receive a response."""
        self._note_end()
        return self._is_served

    def connection_lost(self) -> None:
        """Note that the connection is closed in both directions."""
        self._http = None  # it holds this connection: both would be left to the garbage collector
        self.site.forget(self, too_many=self._too_many)
        self._note_end()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let writers continue."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def read(self) -> bytes:
        """Wait for unread bytes and return them; empty once the client has finished sending.

        Small waiting pieces are joined; a large piece is returned unchanged.
        """
        while not self._pieces and not self.has_ended:
            self._arrival = self._loop.create_future()
            await self._arrival
        return self._take()

    async def until_end(self) -> None:
        """Wait until the client sends no more."""
        if not self.has_ended:
            self._end = self._end or asyncio.Event()
            await self._end.wait()

    async def write(self, data: bytes) -> None:
        """Send bytes at the speed of the client; no effect if it has disconnected."""
        if self.is_open:
            self._wire.write(data)
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Run the task that serves a request and reads its body."""
        self._is_served = self._was_served = True
        self.rest(resting=False)
        self.site.run(work)

    def rest(self, *, resting: bool) -> None:
        """Note whether the connection is idle; a connection that is idle for too long is closed."""
        self.due = self._loop.time() + self.site.limits.keep_alive_seconds if resting else math.inf
        """When the connection has been idle for too long, in seconds of the event loop's clock."""

    def go_on(self) -> None:
        """Wait for the next request, which may have arrived already."""
        self._is_served = False
        self.rest(resting=True)
        if self.site.is_stopping or self.has_ended:
            self.close()
        else:
            self._look(self._take())
            while self._pieces and not (self._is_served or self._is_deaf):
                self._look(self._take())

    def refuse(self, fault: RequestFault) -> None:
        """Respond with an error to what cannot be served, and end the connection."""
        if self.is_open:
            self._wire.write(as_bytes(fault))
        self.part()

    def ignore_rest(self) -> None:
        """Discard further input, so that a client that sends first and reads later gets to read its response.

        Leaving the input unread would block such a client. Closing with unread bytes, or before the last ones arrive,
        would reset the connection, which can destroy the response before the client reads it.
        """
        self._is_deaf = True
        self._pieces.clear()
        self._wire.resume_reading()

    def part(self) -> None:
        """Signal the end of output, and close the connection when the client does."""
        self._is_served = False
        if self.has_ended or not self.is_open:
            self.close()
            return
        self.ignore_rest()
        self._wire.write_eof()
        self.due = self._loop.time() + PARTING_SECONDS

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._wire.close()

    @property
    def is_parting(self) -> bool:
        """Whether everything is sent, and only the client's end of the connection is still open."""
        return self._is_deaf and not self._is_served and self.is_open

    @property
    def expects_request(self) -> bool:
        """Whether its client is likely to be sending a request: it has connected lately, or sent a part of one."""
        if self.due == math.inf or not self.is_open or self._is_deaf:
            return False
        began = self.due - self.site.limits.keep_alive_seconds
        return not self._is_idle() and (self._was_served or self._loop.time() - began < LATELY_SECONDS)

    def close_if_resting(self) -> None:
        """End a connection whose client no longer waits."""
        if self.due < math.inf and not self.is_parting:
            self.close()

    def end_idleness(self) -> None:
        """End a connection that has been idle for too long, or whose client has not closed it after its last response.

        The client of an idle one may just be sending a request, because it was busy or read its last response late.
        Where that request would be its first it therefore receives the reason, and the connection is not reset.
        """
        if self.is_parting:
            self.close()
        elif self._is_idle():
            self.part()
        else:
            self.refuse(TOO_LATE)

    def _look(self, data: bytes) -> None:
        data, promise = self._pass_gate(data)
        if not data and self._is_between_requests():
            return
        if self._http is None:
            self._http = Http1(self)  # created late because it costs more than a refusal
        try:
            self._http.look(data, promise)
        except Refused as refused:
            if promise is not None:
                promise.release()
            self.refuse(refused.fault)

    def _is_between_requests(self) -> bool:
        """Whether the next byte is the first of a request."""
        return self._http is None or self._http.is_blank

    def _is_idle(self) -> bool:
        """Whether a connection at rest has had a request, and the next one has not begun."""
        return self._was_served and (self.speaks_http2 or self._is_between_requests())

    def _pass_gate(self, data: bytes) -> tuple[bytes, Promise | None]:
        """Respond to requests that the gate refuses; return the remaining bytes and the first one's promise."""
        gate = self.site.gate
        while data and gate is not None and self._is_between_requests():
            if self._skipped_bytes:
                skipped = min(self._skipped_bytes, len(data))
                self._skipped_bytes -= skipped
                data = data[skipped:]
                continue
            found = gate.look(data)
            if not isinstance(found, Refusal):
                return data, found
            self._wire.write(found.answer)
            self._was_served = True
            self.rest(resting=True)
            if found.body_bytes is None or self._writable is not None:
                self.part()
                return b"", None
            self._skipped_bytes = found.body_bytes
            data = data[found.head_bytes :]
        return data, None

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._waiting_bytes += len(data) + _PIECE_OVERHEAD_BYTES
        if self._waiting_bytes > _ENOUGH_BYTES:
            self._wire.pause_reading()
        self._wake()

    def _ignore(self, data: bytes) -> None:
        self._ignored_bytes += len(data)
        if self._ignored_bytes > PARTING_BYTES:
            self.close()

    def _take(self) -> bytes:
        if self._pieces and len(self._pieces[0]) >= _LARGE_BYTES:
            data = self._pieces.popleft()
            self._waiting_bytes -= len(data) + _PIECE_OVERHEAD_BYTES
        else:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._waiting_bytes = 0
        if self._waiting_bytes < _LARGE_BYTES and not self.has_ended:
            self._wire.resume_reading()
        return data

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _note_end(self) -> None:
        self.has_ended = True
        if self._end is not None:
            self._end.set()
        self._wake()


def _address(name: object) -> tuple[str, int] | None:
    """Convert a socket address; a Unix socket has none."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None
