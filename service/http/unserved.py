"""Responses to input that never becomes a request, with the same error format (interface 7.1).

No middleware sees surplus connections, unreadable headers and WebSockets, so this module adds all default headers,
including the request id.
"""

from functools import lru_cache
from http import HTTPStatus

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import MalformedRequest, Overloaded, RequestFault, UploadTimeout
from service.http.middleware.response_headers import DEFAULTS
from service.http.problems import MEDIA_TYPE, body_of, kind_of, problem_of_fault
from service.ids import tracking_id
from service.telemetry import events
from service.telemetry.metrics import PROBLEMS

_log = structlog.get_logger()

RETRY_AFTER_SECONDS = 2

TOO_MANY = Overloaded("The service has too many open connections. Try again later.", RETRY_AFTER_SECONDS)
UNREADABLE = MalformedRequest("This is not a valid HTTP/1.1 request. Send it with an HTTP client.")
TOO_LATE = UploadTimeout("The connection was idle for too long. Send the request over a new connection.")
WEBSOCKET = MalformedRequest("The service does not support WebSocket. Send the request without the header Upgrade.")


def answer(fault: RequestFault) -> Response:
    """Return the response with all default headers; the connection is closed after it."""
    request_id = tracking_id()
    _log.warning(events.CONNECTION_REFUSED, code=kind_of(type(fault)).code, request_id=request_id)
    response = problem_of_fault(fault, request_id)
    own = ((b"x-request-id", request_id.encode("ascii")), (b"connection", b"close"))
    response.raw_headers.extend((*DEFAULTS, *own))
    return response


def as_bytes(fault: RequestFault) -> bytes:
    """Return the response in HTTP/1.1 format."""
    response = answer(fault)
    head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
    status = HTTPStatus(response.status_code)
    return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, status.phrase.encode("ascii"), head, response.body)


def overloaded(message: str, retry_after_seconds: int, request_id: str, *, closing: bool) -> bytes:
    """Return the response to an upload while the service is full, as cheaply as possible."""
    _OVERLOADED.inc()
    name = request_id.encode("ascii")
    return _overloaded_form(message, retry_after_seconds, len(name), closing) % (name, name)


_OVERLOADED = PROBLEMS.labels(kind_of(Overloaded).code)


@lru_cache(maxsize=128)
def _overloaded_form(message: str, retry_after_seconds: int, name_length: int, closing: bool) -> bytes:  # noqa: FBT001 -- a key of the cache
    """The response with two gaps for the request id."""
    kind, mark = kind_of(Overloaded), "%s"
    body = body_of(kind.status, kind.code, message.replace("%", "%%"), mark)
    length = len(body) - len(mark) + name_length
    fields = (
        (b"content-type", MEDIA_TYPE.encode("ascii")),
        *DEFAULTS,
        (b"content-length", b"%d" % length),
        (b"retry-after", b"%d" % retry_after_seconds),
        (b"x-request-id", mark.encode("ascii")),
        *(((b"connection", b"close"),) if closing else ()),
    )
    head = b"".join(b"%s: %s\r\n" % field for field in fields)
    return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (head, body)


async def refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to a request for a WebSocket."""
    if "websocket.http.response" in scope.get("extensions", {}):
        await answer(WEBSOCKET)(scope, receive, send)
    else:
        await send({"type": "websocket.close"})
