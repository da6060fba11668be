"""Limits on request headers: their total length, and a single declaration of the body's length.

The server limits the length as well, but only of headers that arrive in several pieces. If a request declares two
lengths, the server and a gateway in front of it may use different ones; RFC 9112, 6.1 requires closing the connection.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault
from service.http.problems import problem_of_fault

_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class HeaderLimits:
    """ASGI middleware that refuses two lengths, and more than `most_bytes` of path, query and headers."""

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
            return HeadersTooLarge(f"The request header exceeds {self._most_bytes} bytes. Send fewer header fields.")
        if lengths > 1:
            return MalformedRequest("The request has both Content-Length and Transfer-Encoding. Send only one of them.")
        return None
