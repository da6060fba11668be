"""A bound on the head of a request. The server has one as well, but for heads that come in several pieces only."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import HeadersTooLarge
from service.http.problems import problem_of_fault


class HeadLimit:
    """ASGI middleware that refuses requests whose path, query and headers are together above `most_bytes`."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http" or _size(scope) <= self._most_bytes:
            await self._app(scope, receive, send)
            return
        fault = HeadersTooLarge(f"The head of the request is above {self._most_bytes} bytes. Send fewer headers.")
        await problem_of_fault(fault, scope["state"]["request_id"])(scope, receive, send)


def _size(scope: Scope) -> int:
    size = len(scope["path"]) + len(scope["query_string"])
    for name, value in scope["headers"]:
        size += len(name) + len(value)
    return size
