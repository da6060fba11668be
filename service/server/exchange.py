"""One HTTP/1.1 request and its response, as seen by an ASGI application.

A body is read only when the application asks for it. A client that sent `Expect: 100-continue` receives 100 at the
first such read: a request that is refused for its key, its length, or because the service is full, never sends its
body.

If some of the body has not arrived when the response starts, the connection ends with it. A client that gives up such a
request, as a gateway does whose own client has left, may otherwise send its next one on the same connection, which
would be taken for the rest of the body. What still arrives is discarded, so that no connection is reset before the
client has its response.

The header of a response is sent together with the first part of its body: each write wakes the client, which costs as
much as the rest of a small response. A large body is sent in pieces, as the client reads them: what is copied for a
client that reads slowly is a piece or two, not the body.
"""

import asyncio
from contextlib import suppress
from urllib.parse import unquote

import h11
import structlog
from starlette.types import Message, Scope

from service.errors import MalformedRequest, Overloaded, RequestFault
from service.http.middleware.draining import ENDS_BODIES
from service.http.promised import EXTENSION
from service.http.unserved import UNREADABLE
from service.jobs.dispatch import AGAIN, RESTARTING, RETRY_AFTER_SECONDS
from service.jobs.promises import Promise
from service.server.channel import Channel
from service.server.head import DECLARED, RequestHead
from service.server.inbox import Inbox, Refused
from service.server.message import CONNECTION, CONTINUE, Header, RequestBody, Response
from service.telemetry import events

_log = structlog.get_logger()
_DISCONNECT: Message = {"type": "http.disconnect"}
_PIECE_BYTES = 64 * 1024
_DEFECT = 500
_DEFECT_HEADERS: tuple[Header, ...] = ((DECLARED, b"0"), (CONNECTION, b"close"))
BODY_CUT_SHORT = MalformedRequest("The body of the request is incomplete. Send all of it.")
BODY_TOO_LATE = Overloaded(f"{RESTARTING} {AGAIN}", RETRY_AFTER_SECONDS)


class Exchange:
    """A request whose header has been read; `run` serves it."""

    def __init__(
        self, connection: Channel, inbox: Inbox, request: RequestHead, target: bytes, promise: Promise | None
    ) -> None:
        fields = request.fields
        is_http10 = request.version < b"1.1"
        self._connection = connection
        self._inbox = inbox
        self._promise = promise
        self._scope = self._scope_of(request, target)
        self._body = RequestBody(inbox, fields)
        self._has_told_end = False
        self._waits_to_be_asked = not is_http10 and b"100-continue" in fields.get(b"expect", b"").lower()
        self._response = Response(
            to_head=request.method == b"HEAD",
            to_http10=is_http10,
            closing=is_http10 or (CONNECTION in fields and _asks_to_close(request)),
        )
        self._head = b""
        self._fault: RequestFault | None = None

    async def run(self) -> None:
        """Let the application respond; then the connection waits for its next request or ends."""
        try:
            await self._connection.site.application(self._scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 - a defect of the application ends only its request
            _log.exception(events.REQUEST_FAILED)
        finally:
            if self._promise is not None:
                self._promise.release()
        await self._finish()

    async def _receive(self) -> Message:
        if self._has_told_end:
            await self._connection.until_end()
            return _DISCONNECT
        piece = await self._read_body()
        if self._fault is not None:
            return _DISCONNECT
        self._has_told_end = self._body.is_complete
        return {"type": "http.request", "body": piece, "more_body": not self._has_told_end}

    async def _read_body(self) -> bytes:
        """Wait for the next piece of the body; empty at its end, or if there is a fault in it."""
        body, connection = self._body, self._connection
        while self._fault is None:
            try:
                piece = body.take()
            except Refused as refused:
                self._fault = refused.fault
                break
            except h11.ProtocolError:
                self._fault = BODY_CUT_SHORT if connection.has_ended else UNREADABLE
                break
            if piece or body.is_complete:
                self._waits_to_be_asked = False
                if body.has_many_chunks:
                    await asyncio.sleep(0)  # so that other clients have their turns
                return piece
            if self._waits_to_be_asked:
                self._waits_to_be_asked = False
                await connection.write(CONTINUE)
            received = await connection.read()
            if connection.gives_up_body:
                self._fault = BODY_TOO_LATE
            elif not received:
                self._fault = BODY_CUT_SHORT
            self._inbox += received
        return b""

    async def _send(self, message: Message) -> None:
        if self._fault is not None or not self._connection.is_open:
            return
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *self._connection.site.response_headers()]
            if self._leaves_body():
                self._connection.ignore_rest()
                self._response.is_closing = True
            self._waits_to_be_asked = False  # an interim response cannot follow
            self._head = self._response.start(int(message["status"]), headers)
        elif message["type"] == "http.response.body":
            body, more_body = message.get("body", b""), message.get("more_body", False)
            for start in range(0, max(1, len(body)), _PIECE_BYTES):
                data, self._head = self._head, b""
                data += self._response.data(body[start : start + _PIECE_BYTES])
                if not more_body and start + _PIECE_BYTES >= len(body):
                    data += self._response.end()
                if data:
                    await self._connection.write(data)

    def _leaves_body(self) -> bool:
        """Whether some of the body, of which what has arrived is discarded, is still to come."""
        with suppress(h11.ProtocolError):
            while not self._body.is_complete and (self._body.take() or self._has_more()):
                if self._body.has_many_chunks:
                    break
        return not self._body.is_complete

    def _has_more(self) -> bool:
        received = self._connection.take()
        self._inbox += received
        return bool(received)

    async def _finish(self) -> None:
        """Prepare the connection for its next request, or end it."""
        connection, response = self._connection, self._response
        if not response.has_started and self._fault is not None:
            connection.refuse(self._fault)
            return
        if not response.has_started:
            self._head = response.start(_DEFECT, _DEFECT_HEADERS)
        if self._head:
            await connection.write(self._head)
        if response.is_complete and not response.is_closing and self._fault is None:
            connection.go_on()
        else:
            connection.part()

    def _scope_of(self, request: RequestHead, target: bytes) -> Scope:
        path, _, query = target.partition(b"?")
        return {
            "type": "http",
            "http_version": request.version.decode("ascii"),
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": request.headers,
            "client": self._connection.client,
            "server": self._connection.server,
            "state": dict(self._connection.site.state),
            "extensions": {ENDS_BODIES: True}
            if self._promise is None
            else {ENDS_BODIES: True, EXTENSION: self._promise},
        }


def _asks_to_close(request: RequestHead) -> bool:
    return any(name == CONNECTION and b"close" in value.lower() for name, value in request.headers)
