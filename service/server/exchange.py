"""One HTTP/1.1 request and its response, as seen by an ASGI application.

A body is read only when the application asks for it. A client that sent `Expect: 100-continue` receives 100 at the
first such read: a request that is refused for its key, its length, or because the service is full, never sends its
body.

If the body has not been read when the response starts, a small body is read afterwards and the connection stays open.
Otherwise the connection ends and the rest of the body is discarded: no connection is reset before the client has its
response.

The header of a response is sent together with the first part of its body: each write wakes the client, which costs as
much as the rest of a small response.
"""

import math
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

import h11
import structlog
from starlette.types import Message, Scope

from service.errors import MalformedRequest, RequestFault
from service.http.middleware.draining import ENDS_BODIES
from service.http.promised import EXTENSION
from service.http.unserved import UNREADABLE
from service.jobs.promises import Promise
from service.server.inbox import Refused
from service.telemetry import events

if TYPE_CHECKING:
    from service.server.connection import Connection

_log = structlog.get_logger()
_DISCONNECT: Message = {"type": "http.disconnect"}
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_CLOSE = (b"connection", b"close")
DEFECT_HEADERS = [(b"content-length", b"0"), _CLOSE]
SMALL_BODY_BYTES = 64 * 1024
BODY_CUT_SHORT = MalformedRequest("The body of the request ends before its length. Send it whole.")


class Exchange:
    """A request whose header has been read; `run` serves it."""

    def __init__(
        self,
        connection: "Connection",
        http: h11.Connection,
        request: h11.Request,
        target: bytes,
        promise: Promise | None,
    ) -> None:
        self._connection = connection
        self._http = http
        self._request = request
        self._promise = promise
        self._scope = self._scope_of(request, target)
        self._head = b""
        self._bodiless = request.method == b"HEAD"
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
        while True:
            event = self._next_event()
            if event is None:
                return _DISCONNECT
            if isinstance(event, h11.Data):
                return {"type": "http.request", "body": bytes(event.data), "more_body": True}
            if isinstance(event, h11.EndOfMessage):
                return {"type": "http.request", "body": b"", "more_body": False}
            if event is not h11.NEED_DATA:  # the request was read completely
                await self._connection.has_ended.wait()
                return _DISCONNECT
            await self._ask_for_body()
            self._http.receive_data(await self._connection.read())

    async def _ask_for_body(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            proceed = h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[])
            await self._connection.write(self._http.send(proceed))

    def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED] | None:
        """Return the next event of the request; None if there is none."""
        if self._http.their_state is h11.ERROR:
            return None
        if self._http.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}:
            return h11.PAUSED
        try:
            return self._http.next_event()
        except Refused as refused:
            self._fault = refused.fault
        except h11.RemoteProtocolError:
            self._fault = BODY_CUT_SHORT if self._connection.has_ended.is_set() else UNREADABLE
        return None

    async def _send(self, message: Message) -> None:
        if self._fault is not None or not self._connection.is_open:
            return
        if message["type"] == "http.response.start":
            status = int(message["status"])
            self._bodiless = self._bodiless or status in _WITHOUT_BODY
            headers = [*message.get("headers", ()), *self._connection.site.response_headers()]
            if self._leaves_body():
                self._connection.ignore_rest()
                headers = [*(header for header in headers if header[0].lower() != _CLOSE[0]), _CLOSE]
            self._head = self._http.send(h11.Response(status_code=status, headers=headers))
        elif message["type"] == "http.response.body":
            data, self._head = self._head, b""
            body = message.get("body", b"")
            if body and not self._bodiless:
                data += self._http.send(h11.Data(data=body)) or b""
            if not message.get("more_body", False):
                data += self._http.send(h11.EndOfMessage()) or b""
            if data:
                await self._connection.write(data)

    def _leaves_body(self) -> bool:
        """Whether the rest of the body is too long to read, or the client waits for 100 Continue."""
        if self._http.their_state is not h11.SEND_BODY:
            return False
        return _body_bytes(self._request) > SMALL_BODY_BYTES or self._http.they_are_waiting_for_100_continue

    async def _skip_rest(self) -> None:
        """Read the rest of the body, after the response was sent."""
        self._connection.rest(resting=True)
        while self._http.their_state is h11.SEND_BODY:
            if self._next_event() is h11.NEED_DATA:
                self._http.receive_data(await self._connection.read())

    async def _finish(self) -> None:
        """Prepare the connection for its next request, or end it."""
        connection, http = self._connection, self._http
        if http.our_state is h11.SEND_RESPONSE and self._fault is not None:
            connection.refuse(self._fault)
            return
        if http.our_state is h11.SEND_RESPONSE:
            self._head = http.send(h11.Response(status_code=HTTPStatus.INTERNAL_SERVER_ERROR, headers=DEFECT_HEADERS))
            self._head += http.send(h11.EndOfMessage()) or b""
        if self._head:
            await connection.write(self._head)
        if http.our_state is h11.DONE:
            await self._skip_rest()
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
            connection.go_on()
        else:
            connection.part()

    def _scope_of(self, request: h11.Request, target: bytes) -> Scope:
        path, _, query = target.partition(b"?")
        return {
            "type": "http",
            "http_version": request.http_version.decode("ascii"),
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": request.method.decode("ascii").upper(),
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._connection.client,
            "server": self._connection.server,
            "state": dict(self._connection.site.state),
            "extensions": {ENDS_BODIES: True}
            if self._promise is None
            else {ENDS_BODIES: True, EXTENSION: self._promise},
        }


def _body_bytes(request: h11.Request) -> float:
    """Return the declared length of the body: infinite with chunked encoding."""
    headers = dict(request.headers)
    return math.inf if b"transfer-encoding" in headers else int(headers.get(b"content-length", b"0"))
