"""What the head of a request may be: not too long, and with one length of what follows.

The server has a bound on its length as well, but for heads that come in several pieces only. Of two lengths it takes
the one, and whoever is in front of it may have taken the other; the standard says to close (RFC 9112, 6.1).
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault
from service.http.problems import problem_of_fault

_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class HeaderLimits:
    """ASGI middleware that refuses heads of two lengths, or whose path, query and headers are above `most_bytes`."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        fault = self._fault(scope) if scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, receive, send)
            return
        response = problem_of_fault(fault, scope["state"]["request_id"])
        response.headers["connection"] = "close"
        await response(scope, receive, send)

    def _fault(self, scope: Scope) -> RequestFault | None:
        size = len(scope["path"]) + len(scope["query_string"])
        lengths = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            lengths += name in _LENGTHS
        if size > self._most_bytes:
            return HeadersTooLarge(f"The head of the request is above {self._most_bytes} bytes. Send fewer headers.")
        if lengths > 1:
            return MalformedRequest("The request has two lengths. Send Content-Length or Transfer-Encoding, not both.")
        return None
