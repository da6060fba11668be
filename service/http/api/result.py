"""Content of the store as the body of a response, piece by piece."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.storage.names import content_disposition
from service.usecases.read_result import Result


class StreamedResponse(Response):
    """Sends a body piece by piece, at the speed of the client, and closes it.

    The generator has given its first piece already: what went wrong before that had a response of its own.
    """

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes], headers: dict[str, str]) -> None:
        self.status_code = HTTPStatus.OK
        self.background = None
        self.init_headers(headers)
        self._first = first
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the ASGI interface
        """Send the response."""
        async with aclosing(self._rest) as rest:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            async for piece in rest:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def result_response(result: Result, headers: dict[str, str]) -> StreamedResponse:
    """Return the response that is the result itself."""
    own = {
        "content-disposition": content_disposition(result.download_name),
        "content-length": str(result.size_bytes),
        "content-type": result.media_type,
        # The content is untrusted: as a page it may do nothing.
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return StreamedResponse(result.first, result.rest, {**headers, **own})
