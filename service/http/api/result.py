"""Content of the store as the body of a response, piece by piece."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from http import HTTPStatus

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import StorageUnavailable
from service.http.api.pace import PacedSend, TooSlowError
from service.jobs.records import Job
from service.storage.names import content_disposition
from service.telemetry import events, metrics

_log = structlog.get_logger()


class StreamedResponse(Response):
    """Sends a body piece by piece, at the speed of the client or the minimum pace, and closes it.

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
        paced = PacedSend(send)
        with suppress(TooSlowError), _interrupted_if_unavailable():
            async with aclosing(self._rest) as rest:
                await paced({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await paced({"type": "http.response.body", "body": self._first, "more_body": True})
                async for piece in rest:
                    await paced({"type": "http.response.body", "body": piece, "more_body": True})
                await paced({"type": "http.response.body", "body": b""})


@contextmanager
def _interrupted_if_unavailable() -> Iterator[None]:
    """End the block, which leaves its response incomplete, if the store fails: by that the client notices."""
    try:
        yield
    except StorageUnavailable as unavailable:
        metrics.STORAGE_FAILURES.labels(unavailable.fault).inc()
        _log.warning(events.STORAGE_FAILED, fault=unavailable.fault, detail=unavailable.detail)


def result_headers(job: Job) -> dict[str, str]:
    """Return the headers of a response that is the result itself."""
    return {
        "content-disposition": content_disposition(job.download_name or ""),
        "content-length": str(job.output_size_bytes or 0),
        "content-type": job.media_type or "",
        # The content is untrusted: as a page it may do nothing.
        "content-security-policy": "default-src 'none'; sandbox",
    }
