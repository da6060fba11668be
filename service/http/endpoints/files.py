"""GET and HEAD /files/{key}/{name}: a result of the local store, for any client with its link; no API key."""

from http import HTTPStatus

import structlog
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from service.errors import InvalidParameter, NotFound, Overloaded, RangeNotSatisfiable, RequestFault, StorageUnavailable
from service.http.api.pace import PacedSend, TooSlowError
from service.http.problems import problem_of_fault
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.storage.local import Download, LocalStorage
from service.storage.names import content_disposition
from service.telemetry import events
from service.usecases.preview_result import UNREADABLE

_log = structlog.get_logger()
_RANGE = b"range"


class StoredFile(FileResponse):
    """Serves ranges and HEAD, in chunks so large that a 100 MB download does not need 1,600 thread calls."""

    chunk_size = 256 * 1024

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request; an invalid range is reported as a request fault before anything is sent."""
        paced = PacedSend(send)

        async def refuse_or_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._refuse(message["status"])
            await paced(message)

        try:
            await super().__call__(_without_unknown_units(scope), receive, refuse_or_send)
        except RequestFault as fault:
            await problem_of_fault(fault, scope["state"]["request_id"])(scope, receive, send)
        except TooSlowError:
            pass

    def _refuse(self, status: int) -> None:
        if status == HTTPStatus.BAD_REQUEST:
            raise InvalidParameter("Range", "The header Range is not valid. Use a range such as bytes=0-1023.")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            size = int(self.headers["content-length"])
            raise RangeNotSatisfiable(f"The result has {size} bytes. Request bytes within it.", size)


def _without_unknown_units(scope: Scope) -> Scope:
    """Ignores ranges in unknown units (RFC 9110, 14.2)."""
    headers = [
        (name, value)
        for name, value in scope["headers"]
        if name != _RANGE or value.partition(b"=")[0].strip().lower() == b"bytes"
    ]
    return {**scope, "headers": headers}


async def download_file(request: Request) -> Response:
    """Send the file that the link names, a range of it, or 304 if the client already has it.

    Raises:
        DownloadRefused: the link is unsigned, forged or altered.
        DownloadExpired: the link has expired, or the result has been deleted.
        NotFound: results are not stored on this host.
        Overloaded: the disk with the results cannot be read, or is not there.
    """
    storage = request.state.services.storage
    if not isinstance(storage, LocalStorage):
        raise NotFound("Nothing is at this address.")
    query = request.scope["query_string"].decode("latin-1")  # accepts any bytes, so that invalid ones are refused too
    try:
        download = await storage.resolve(request.path_params["key"], request.path_params["name"], query)
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, fault=unavailable.fault, detail=unavailable.detail)
        raise Overloaded(UNREADABLE, RETRY_AFTER_SECONDS) from unavailable
    headers = _headers(download)
    if _is_current(request.headers.get("if-none-match", ""), download.etag):
        return Response(status_code=304, headers=headers)
    return StoredFile(download.path, headers=headers, media_type=download.media_type, stat_result=download.stat)


def _headers(download: Download) -> dict[str, str]:
    return {
        "etag": download.etag,
        "content-disposition": content_disposition(download.download_name),
        # Cached only by the client and revalidated each time: an expired link must not keep working from a cache.
        "cache-control": "private, no-cache",
        # The content is untrusted: it must not be sniffed as a page, and as a page it may do nothing.
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


def _is_current(if_none_match: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]
