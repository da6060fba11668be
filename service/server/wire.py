"""The socket of a client in the event loop: reads bytes as they arrive and writes at the client's speed.

Theory of operation. Under overload most connections are accepted only to be refused, so the cost of a connection before
its first request is taken from conversions. asyncio's own transport needs a task and five iterations of the loop to
start. This one reads as soon as the connection is accepted, so a client that has already sent its request gets its
response at once. It supports only TCP without TLS.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Protocol

from service.server.turns import ReadableSockets

_FIRST_BYTES = 16 * 1024
_LARGE_BYTES = 256 * 1024
_MOST_UNSENT_BYTES = 64 * 1024
_FEW_UNSENT_BYTES = 16 * 1024


class Owner(Protocol):
    """The receiver of a wire's events."""

    def data_received(self, data: bytes) -> None:
        """Accept received bytes."""

    def eof_received(self) -> bool:
        """Note the end of input; return whether output will follow."""

    def connection_lost(self) -> None:
        """Note that the wire is closed."""

    def pause_writing(self) -> None:
        """Note that the output buffer is full."""

    def resume_writing(self) -> None:
        """Note that the output buffer has drained."""


class Wire:
    """A connected, non-blocking socket, which this object closes, and which is read with `sockets`."""

    def __init__(self, client: socket.socket, owner: Owner, sockets: ReadableSockets) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = client
        self._number = client.fileno()  # by which the loop knows it: to a socket it did not know it would ask its name
        self._owner = owner
        self._sockets = sockets
        self._unsent = bytearray()
        self._most_bytes = _FIRST_BYTES
        self._reads = self._is_closing = self._sends_no_more = self._is_slow = False

    def start(self) -> None:
        """Read the available bytes, and all that follow."""
        self.resume_reading()
        self._read()

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._is_closing

    def local_address(self) -> object:
        """Return the address of this end, or None."""
        with suppress(OSError):
            return self._socket.getsockname()
        return None

    def pause_reading(self) -> None:
        """Stop reading from the socket; pausing twice has no effect."""
        if self._reads:
            self._reads = False
            self._sockets.remove(self._number)

    def resume_reading(self) -> None:
        """Resume reading; resuming twice has no effect."""
        if not (self._reads or self._is_closing):
            self._reads = True
            self._sockets.add(self._number, self._read)

    def move(self, sockets: ReadableSockets) -> None:
        """Read this socket with those from now on; moving twice has no effect."""
        if sockets is not self._sockets:
            if self._reads:
                self._sockets.remove(self._number)
                sockets.add(self._number, self._read)
            self._sockets = sockets

    def write(self, data: bytes) -> None:
        """Send bytes; what the socket does not accept now is sent later."""
        if self._is_closing or self._sends_no_more:
            return
        if not self._unsent:
            data = data[self._send(data) :]
            if not data or self._is_closing:
                return
            self._loop.add_writer(self._number, self._write_on)
        self._unsent += data
        if len(self._unsent) > _MOST_UNSENT_BYTES and not self._is_slow:
            self._is_slow = True
            self._owner.pause_writing()

    def write_eof(self) -> None:
        """Signal the end of output to the client."""
        self._sends_no_more = True
        if not self._unsent:
            self._shut_down()

    def close(self) -> None:
        """Stop reading, and close once everything is sent; closing twice has no effect."""
        if not self._is_closing:
            self.pause_reading()
            self._is_closing = True
            if not self._unsent:
                self._loop.call_soon(self._end)

    def drop(self) -> None:
        """Close, whatever is unsent; dropping twice has no effect."""
        self.pause_reading()
        self._is_closing = True
        self._loop.call_soon(self._end)

    def _read(self) -> None:
        if not self._reads:
            return
        try:
            data = self._socket.recv(self._most_bytes)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._end()
            return
        if not data:
            self._note_end()
            return
        if len(data) == self._most_bytes:
            self._most_bytes = _LARGE_BYTES
        try:
            self._owner.data_received(data)
        except BaseException:
            self.close()  # the loop reports the defect
            raise

    def _note_end(self) -> None:
        if self._owner.eof_received():
            self.pause_reading()
        else:
            self.close()

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.pause_reading()
            self._is_closing = True
            self._loop.call_soon(self._end)
            return 0

    def _write_on(self) -> None:
        del self._unsent[: self._send(self._unsent)]
        if self._is_slow and len(self._unsent) <= _FEW_UNSENT_BYTES:
            self._is_slow = False
            self._owner.resume_writing()
        if not self._unsent:
            self._loop.remove_writer(self._number)
            if self._is_closing:
                self._end()
            elif self._sends_no_more:
                self._shut_down()

    def _shut_down(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def _end(self) -> None:
        if self._socket.fileno() < 0:
            return
        self.pause_reading()
        self._is_closing = True
        if self._unsent:
            self._loop.remove_writer(self._number)
        self._socket.close()
        self._owner.connection_lost()
        del self._owner  # it holds this wire: both would be left to the garbage collector
