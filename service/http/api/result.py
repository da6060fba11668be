"""The result of a conversion as the body of its response, streamed from the store."""

from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.storage.names import content_disposition
from service.usecases.read_result import Result


class ResultResponse(Response):
    """Sends a result piece by piece, at the speed of the client."""

    def __init__(self, result: Result, headers: dict[str, str]) -> None:
        own = {
            "content-disposition": content_disposition(result.download_name),
            "content-length": str(result.size_bytes),
            "content-type": result.media_type,
            # The content is untrusted: as a page it may do nothing.
            "content-security-policy": "default-src 'none'; sandbox",
        }
        super().__init__(headers={**headers, **own})
        self._pieces = result.pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the ASGI interface
        """Send the response."""
        async with aclosing(self._pieces) as pieces:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
