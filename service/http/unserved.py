"""An answer to a connection that is not served: no request of it was read, but it is told why as any other would be."""

import secrets

import structlog

from service.errors import Overloaded
from service.http.answers import DEFAULTS
from service.http.problems import problem_of_fault
from service.telemetry import events

_log = structlog.get_logger()

RETRY_AFTER_SECONDS = 2


def refusal() -> bytes:
    """Return what a connection too many is told: a whole HTTP/1.1 answer, with a request id of its own (contract 1)."""
    request_id = secrets.token_hex(16)
    fault = Overloaded("The service has more connections than it can take. Try again later.", RETRY_AFTER_SECONDS)
    response = problem_of_fault(fault, request_id)
    own = ((b"x-request-id", request_id.encode("ascii")), (b"connection", b"close"))
    lines = [b"%s: %s\r\n" % header for header in (*response.raw_headers, *DEFAULTS, *own)]
    _log.warning(events.CONNECTION_REFUSED, request_id=request_id)
    return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (b"".join(lines), response.body)
