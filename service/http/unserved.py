"""Answers to what never becomes a request here, each told why as a request would be (interface 7.1).

A connection too many, a head that cannot be read, a WebSocket: no middleware sees them, so everything that an answer
carries is put on here, its request id included.
"""

import secrets
from functools import lru_cache
from http import HTTPStatus

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import MalformedRequest, Overloaded, RequestFault, UploadTimeout
from service.http.middleware.response_headers import DEFAULTS
from service.http.problems import MEDIA_TYPE, body_of, kind_of, problem_of_fault
from service.telemetry import events
from service.telemetry.metrics import PROBLEMS

_log = structlog.get_logger()

RETRY_AFTER_SECONDS = 2

TOO_MANY = Overloaded("The service has more connections than it can take. Try again later.", RETRY_AFTER_SECONDS)
UNREADABLE = MalformedRequest("This is no request of HTTP/1.1 that can be read. Send it with an HTTP client.")
TOO_LATE = UploadTimeout("No request has come for too long. Send it over a new connection.")
WEBSOCKET = MalformedRequest("The service does not speak WebSocket. Send the request without the header Upgrade.")


def answer(fault: RequestFault) -> Response:
    """Return what is told, with every header that answers have; after it the connection is closed."""
    request_id = secrets.token_hex(16)
    _log.warning(events.CONNECTION_REFUSED, code=kind_of(type(fault)).code, request_id=request_id)
    response = problem_of_fault(fault, request_id)
    own = ((b"x-request-id", request_id.encode("ascii")), (b"connection", b"close"))
    response.raw_headers.extend((*DEFAULTS, *own))
    return response


def as_bytes(fault: RequestFault) -> bytes:
    """Return what is told as the bytes of HTTP/1.1."""
    response = answer(fault)
    head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
    status = HTTPStatus(response.status_code)
    return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, status.phrase.encode("ascii"), head, response.body)


def overloaded(message: str, retry_after_seconds: int, request_id: str, *, closing: bool) -> bytes:
    """Return what a request is told for which the service is too full, as cheaply as it goes."""
    _OVERLOADED.inc()
    name = request_id.encode("ascii")
    return _overloaded_form(message, retry_after_seconds, len(name), closing) % (name, name)


_OVERLOADED = PROBLEMS.labels(kind_of(Overloaded).code)


@lru_cache(maxsize=128)
def _overloaded_form(message: str, retry_after_seconds: int, name_length: int, closing: bool) -> bytes:  # noqa: FBT001 -- a key of the cache
    """The answer with two gaps for the request id."""
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
    """Answer the request that asks for a WebSocket."""
    if "websocket.http.response" in scope.get("extensions", {}):
        await answer(WEBSOCKET)(scope, receive, send)
    else:
        await send({"type": "websocket.close"})
