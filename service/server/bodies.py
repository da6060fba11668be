"""Bodies on their way from the socket to the application, in the pieces in which the socket gave them.

Asyncio's reader puts what it gets behind what it has, and copies 64 KiB at a time from that. h11 does it once more, and
copies the copy. A body of a gigabyte so is six copied, in four turns of everything where one would do.
"""

import asyncio
from collections import deque
from typing import Self, cast

import h11._connection
from h11._receivebuffer import ReceiveBuffer

PIECES_WAITING = 2
"""How many may wait for the application, of up to 256 KiB, as much as asyncio takes from a socket at once.

Hypercorn's own ten are of a quarter of the size.
"""
_LARGE_BYTES = 64 * 1024
_PIECE_OVERHEAD_BYTES = 128  # a piece of one byte is an object too
_ENOUGH_BYTES = 256 * 1024 + _PIECE_OVERHEAD_BYTES


class Inflow(asyncio.Protocol):
    """What comes in over a connection, piece by piece; all else is still told to the protocol that it was made with."""

    def __init__(self, transport: asyncio.WriteTransport, loop: asyncio.AbstractEventLoop) -> None:
        """Take over what `transport`, of which nothing has been read yet, will read."""
        self._transport = cast("asyncio.Transport", transport)
        self._loop = loop
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._ended = False
        self._arrival: asyncio.Future[None] | None = None
        self._other = cast("asyncio.Protocol", transport.get_protocol())
        transport.set_protocol(self)

    async def read(self) -> bytes:
        """Return what has come and was not read, as soon as there is any; nothing once the connection has ended.

        Small pieces that wait are joined, a large one is returned as it is.
        """
        if not self._pieces and not self._ended:
            self._arrival = self._loop.create_future()
            await self._arrival
        if self._pieces and len(self._pieces[0]) >= _LARGE_BYTES:
            data = self._pieces.popleft()
            self._waiting_bytes -= len(data) + _PIECE_OVERHEAD_BYTES
        else:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._waiting_bytes = 0
        if self._paused and self._waiting_bytes < _LARGE_BYTES:
            self._paused = False
            self._transport.resume_reading()
        return data

    def data_received(self, data: bytes) -> None:
        """Keep a piece; with enough of them the client has to wait (asyncio's interface, like the following)."""
        self._pieces.append(data)
        self._waiting_bytes += len(data) + _PIECE_OVERHEAD_BYTES
        if self._waiting_bytes > _ENOUGH_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool | None:
        """Note that the client sends no more; it may still be answered."""
        self._ended = True
        self._wake()
        return self._other.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of both directions."""
        self._ended = True
        self._wake()
        self._other.connection_lost(exc)

    def pause_writing(self) -> None:
        """Let whoever writes wait."""
        self._other.pause_writing()

    def resume_writing(self) -> None:
        """Let whoever writes go on."""
        self._other.resume_writing()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class BodyBuffer(ReceiveBuffer):
    """h11's buffer, which gives a piece of a body away as the object that it came in.

    A piece that comes while nothing else is there is kept as it is. It joins the rest as soon as anything but a body is
    looked for, or it has to be divided.
    """

    def __init__(self) -> None:
        super().__init__()
        self._piece = b""

    def __iadd__(self, data: bytes | bytearray) -> Self:
        if self or type(data) is not bytes:
            self._join()
            self._data += data
        else:
            self._piece = data
        return self

    def __len__(self) -> int:
        return len(self._data) + len(self._piece)

    def __bytes__(self) -> bytes:
        return bytes(self._data) + self._piece

    def maybe_extract_at_most(self, count: int) -> bytearray | None:
        """Take up to `count` bytes off the beginning, None where there are none."""
        piece = self._piece
        if piece and len(piece) <= count:
            self._piece = b""
            return piece  # type: ignore[return-value]  # it goes into an event, which holds bytes as well
        self._join()
        return self._extract(count) if self._data else None

    def maybe_extract_next_line(self) -> bytearray | None:
        """Take the first line off, None where its end is not there yet."""
        self._join()
        return super().maybe_extract_next_line()

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Take the lines up to the first blank one off, None where that is not there yet."""
        self._join()
        return super().maybe_extract_lines()

    def is_next_line_obviously_invalid_request_line(self) -> bool:
        """Whether nobody needs to wait for the end of the first line."""
        self._join()
        return super().is_next_line_obviously_invalid_request_line()

    def _join(self) -> None:
        self._data += self._piece
        self._piece = b""


def pass_pieces_on() -> None:
    """Make h11 keep what it reads in this; it has neither a setting nor a hook for it."""
    h11._connection.ReceiveBuffer = BodyBuffer  # type: ignore[attr-defined]  # noqa: SLF001 -- see above
