"""The id, trace, log line and metrics of every request, its default response headers, and the response to a defect.

One middleware does all of it, because each further one is another call for each message of a request.
"""

import re
import time
from http import HTTPStatus

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault
from service.http.middleware.response_headers import missing
from service.http.problems import problem_of_defect, problem_of_fault
from service.ids import tracking_id
from service.telemetry import events, metrics, traceparent
from service.telemetry.log import bind
from service.telemetry.spans import RequestSpan
from service.telemetry.tracing import request_span

_log = structlog.get_logger()
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = traceparent.HEADER.encode("ascii")
CLIENT_LEFT = 499
"""The logged status of a request whose client disconnected before the response; never sent."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class RequestContext:
    """ASGI middleware that gives each request an id (interface 7.1), binds it to the log, and completes the response.

    It refuses a header that is ambiguous or has more than `most_header_bytes`, and responds to unexpected errors.
    """

    def __init__(self, app: ASGIApp, most_header_bytes: int) -> None:
        self._app = app
        self._most_header_bytes = most_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope["state"]["request_id"] = request_id
        fault = _fault_of_header(scope, self._most_header_bytes)
        app = self._app if fault is None else _closing(problem_of_fault(fault, request_id))
        metrics.REQUESTS_RUNNING.inc()
        try:
            with request_span(headers) as span:
                bind(request_id=request_id, trace_id=span.traceparent.trace_id)
                await _LoggedExchange(app, scope, receive, send, span).run()
        finally:
            metrics.REQUESTS_RUNNING.dec()


class _LoggedExchange:
    """One request and its response."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, span: RequestSpan) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send
        self._span = span
        self._request_id: str = scope["state"]["request_id"]
        self._status = 0

    async def run(self) -> None:
        since = time.perf_counter()
        try:
            await self._app(self._scope, self._watch_receiving, self._watch_sending)
        except ClientDisconnect:
            self._status = CLIENT_LEFT
        except Exception:  # noqa: BLE001 - all defects are recorded here, with a response
            _log.exception(events.REQUEST_FAILED)
            await self._answer_defect()
        finally:
            self._record(time.perf_counter() - since)

    async def _watch_receiving(self) -> Message:
        message = await self._receive()
        if body := message.get("body"):
            metrics.RECEIVED_BYTES.inc(len(body))
        return message

    async def _watch_sending(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [
                *message.get("headers", ()),
                (b"x-request-id", self._request_id.encode("ascii")),
                (_TRACEPARENT, str(self._span.traceparent).encode("ascii")),
            ]
            headers += missing(self._scope, {name for name, _ in headers})
            message = {**message, "headers": headers}
        else:
            metrics.SENT_BYTES.inc(len(message.get("body", b"")))
        await self._send(message)

    async def _answer_defect(self) -> None:
        if not self._status:
            await problem_of_defect(self._request_id)(self._scope, self._receive, self._watch_sending)

    def _record(self, seconds: float) -> None:
        method, status = self._scope["method"], self._status
        route = getattr(self._scope.get("route"), "path", None)
        _log.info(
            events.REQUEST_FINISHED, method=method, route=route, status=status, milliseconds=round(seconds * 1000, 1)
        )
        known = method if method in _METHODS else "other"
        metrics.observe_request(known, route or "none", status, seconds)
        self._span.finish(
            f"{known} {route}" if route else known,
            {"http.request.method": known, "http.route": route or "", "http.response.status_code": status},
            failed=status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        )


def _fault_of_header(scope: Scope, most_bytes: int) -> RequestFault | None:
    """Return what is wrong with a header that has two lengths, or more than `most_bytes` of path, query and fields.

    The server limits the length as well, but only of headers that arrive in several pieces. Of two lengths, the server
    and a gateway in front of it may use different ones; RFC 9112, 6.1 requires closing the connection.
    """
    size = len(scope["path"]) + len(scope["query_string"])
    lengths = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        lengths += name in _LENGTHS
    if size > most_bytes:
        return HeadersTooLarge(f"The request header exceeds {most_bytes} bytes. Send fewer header fields.")
    if lengths > 1:
        return MalformedRequest("The request has both Content-Length and Transfer-Encoding. Send only one of them.")
    return None


def _closing(response: Response) -> Response:
    response.headers["connection"] = "close"
    return response


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _WELL_FORMED.fullmatch(given) else tracking_id()
