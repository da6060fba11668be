"""A client connection as its requests use it: they read their bodies, write their responses, and say what follows.

Flow control: when enough received bytes are waiting for the request, nothing more is read from the socket.
"""

import asyncio
import math
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine
from functools import cached_property

from service.errors import RequestFault
from service.http.unserved import as_bytes
from service.server.site import ListenerState
from service.server.wire import Wire

_LARGE_BYTES = 64 * 1024
_PIECE_OVERHEAD_BYTES = 128  # a piece of one byte is an object too
_ENOUGH_BYTES = 256 * 1024 + _PIECE_OVERHEAD_BYTES
PARTING_SECONDS = 30.0
PARTING_BYTES = 128 * 1024 * 1024  # the largest upload
"""How long, and how much, a client may keep sending an unread body, so that it gets to read its response."""


class Channel(ABC):
    """The input and the output of a client connection, of which one request at a time has both."""

    def __init__(self, site: ListenerState, client: socket.socket, address: object) -> None:
        self.site = site
        self.client = _address(address)
        """The client's address."""
        self.has_ended = False
        """Whether the client sends no more."""
        self.gives_up_body = False
        """Whether it is too late for the rest of a request's body."""
        self._loop = site.loop
        self._wire = Wire(client, self, site.sockets)
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._arrival: asyncio.Future[None] | None = None
        self._end: asyncio.Event | None = None  # made when waited for, because it costs a tenth of a refusal
        self._writable: asyncio.Future[None] | None = None
        self._unread_since = math.inf
        self._is_served = self._was_served = False
        self._is_deaf = False
        self._ignored_bytes = 0
        self.rest(resting=True)

    @abstractmethod
    def look(self, data: bytes) -> None:
        """Accept bytes while no request is in progress."""

    @cached_property
    def server(self) -> tuple[str, int] | None:
        """The server's address."""
        return _address(self._wire.local_address())

    @property
    def is_open(self) -> bool:
        """Whether data can be written."""
        return not self._wire.is_closing

    @property
    def waits_since(self) -> float:
        """Since when its client is expected to send a request, to read on or to close; infinite while it does its part.

        In seconds of the event loop's clock.
        """
        return min(self._rests_since, self._unread_since)

    def data_received(self, data: bytes) -> None:
        """Accept received bytes: the start of a request, or more of the body of the current one."""
        if self._is_deaf:
            self._ignore(data)
        elif self._is_served:
            self._keep(data)
        else:
            self.look(data)

    def eof_received(self) -> bool:
        """Note that the client has finished sending; it can still receive a response."""
        self._note_end()
        return self._is_served

    def connection_lost(self) -> None:
        """Note that the connection is closed in both directions."""
        self._note_end()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._writable = self._loop.create_future()
        self._unread_since = self._loop.time()

    def resume_writing(self) -> None:
        """Let writers continue."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        self._unread_since = math.inf

    async def read(self) -> bytes:
        """Wait for unread bytes and return them; empty once the client has finished sending or its body is given up."""
        while not (self._pieces or self.has_ended or self.gives_up_body):
            self._arrival = self._loop.create_future()
            await self._arrival
        return self.take()

    def take(self) -> bytes:
        """Return bytes that have been received and not read; empty if there are none.

        Small pieces are joined; a large piece is returned unchanged.
        """
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

    def give_up_body(self) -> None:
        """Wait no longer for the body of a request that has not arrived as a whole."""
        self.gives_up_body = True
        self._wake()

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
        self._wire.move(self.site.sockets)
        self.rest(resting=False)
        self.site.run(work)

    def rest(self, *, resting: bool) -> None:
        """Note whether the connection is idle; a connection that is idle for too long is closed."""
        self._rests_since = self._loop.time() if resting else math.inf
        self.due = self._rests_since + self.site.limits.keep_alive_seconds
        """When the connection has been idle for too long, in seconds of the event loop's clock."""

    def go_on(self) -> None:
        """Wait for the next request, which may have arrived already."""
        self._is_served = False
        self.rest(resting=True)
        if self.site.is_stopping or self.has_ended:
            self.close()
        else:
            self.look(b"")  # a request that arrived with an earlier one: before it, nothing more is taken
            while self._pieces and not (self._is_served or self._is_deaf):
                self.look(self.take())

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
        self._rests_since = self._loop.time()
        self.due = self._rests_since + PARTING_SECONDS

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._wire.close()

    @property
    def is_parting(self) -> bool:
        """Whether everything is sent, and only the client's end of the connection is still open."""
        return self._is_deaf and not self._is_served and self.is_open

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
