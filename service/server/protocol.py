"""HTTP/1.1 where Hypercorn's own would not do.

It answers what it cannot make a request of with a status and nothing else: among others a head that is too long, unless
it comes in one piece. And it lets any request change to HTTP/2 in the clear, which a gateway in front may pass on
without knowing what it opens: a way past everything that the gateway checks. That change is gone from the standard too
(RFC 9113); such a request is answered as if it had not asked.

What may be a head is read in small pieces, unlike a body: one that is too long is noticed after the first of them, and
nobody looks through a quarter of a megabyte of headers at once.

The head of an answer waits here for the first piece of its body, so that both leave in one piece: each writing wakes
the client, which costs as much as the rest of a small answer.
"""

from http import HTTPStatus

import h11
import hypercorn.protocol
from hypercorn.events import Event, RawData
from hypercorn.protocol.h11 import H2ProtocolAssumedError, H11Protocol
from hypercorn.typing import H11SendableEvent

from service.http.unserved import TOO_LONG, UNREADABLE, answer

_PRIOR_KNOWLEDGE = b"PRI"
"""The method with which a client that speaks HTTP/2 from the first byte begins."""
_HEAD_BYTES = 64 * 1024


class Http1(H11Protocol):
    """One connection of HTTP/1.1."""

    _head = b""

    async def handle(self, event: Event) -> None:
        """Take what has come in over the connection, or that it has ended."""
        if isinstance(event, RawData) and self.connection.their_state is not h11.SEND_BODY:
            rest = event.data
            while rest:
                piece, rest = rest[:_HEAD_BYTES], rest[_HEAD_BYTES:]
                try:
                    await super().handle(RawData(piece))
                except H2ProtocolAssumedError as assumed:
                    assumed.data += rest  # another protocol takes over what has come
                    raise
        else:
            await super().handle(event)

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            data = self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if self.connection.their_state != h11.ERROR:
                raise
            return
        if isinstance(event, h11.Response):
            self._head = data
        else:
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        head, self._head = self._head, b""
        if head or data:
            await self.send(RawData(head + data))

    async def _maybe_recycle(self) -> None:
        await self._write(b"")
        await super()._maybe_recycle()

    async def _send_error_response(self, status_code: int) -> None:
        too_long = status_code == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        response = answer(TOO_LONG if too_long else UNREADABLE)
        headers = [*response.raw_headers, *self.config.response_headers("h11")]
        await self._send_h11_event(h11.Response(status_code=response.status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=bytes(response.body)))
        await self._send_h11_event(h11.EndOfMessage())

    async def _check_protocol(self, event: h11.Request) -> None:
        if event.method == _PRIOR_KNOWLEDGE:
            await super()._check_protocol(event)


def speak_http1() -> None:
    """Make Hypercorn serve with this; it has neither a setting nor a hook for it."""
    hypercorn.protocol.H11Protocol = Http1  # type: ignore[attr-defined]  # imported there, exported elsewhere
