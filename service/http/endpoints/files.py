"""GET and HEAD /files/{key}/{name}: a result of the local store, for whoever holds its link; no API key."""

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from service.errors import NotFound
from service.storage.local import Download, LocalStorage
from service.storage.names import content_disposition


class StoredFile(FileResponse):
    """Answers ranges and HEAD, in chunks large enough that a 100 MB download is not 1,600 trips to a thread."""

    chunk_size = 256 * 1024


async def download_file(request: Request) -> Response:
    """Send the file that the link names, a range of it, or 304 where the client has it already.

    Raises:
        DownloadRefused: the link is unsigned, forged or altered.
        DownloadExpired: its time has passed.
        NotFound: results are not kept on this host, or this one is gone.
    """
    storage = request.state.services.storage
    if not isinstance(storage, LocalStorage):
        raise NotFound("Nothing is at this address.")
    query = request.scope["query_string"].decode("latin-1")  # whatever bytes came, so that odd ones are refused too
    download = await storage.resolve(request.path_params["key"], request.path_params["name"], query)
    headers = _headers(download)
    if _is_current(request.headers.get("if-none-match", ""), download.etag):
        return Response(status_code=304, headers=headers)
    return StoredFile(download.path, headers=headers, media_type=download.media_type, stat_result=download.stat)


def _headers(download: Download) -> dict[str, str]:
    return {
        "etag": download.etag,
        "content-disposition": content_disposition(download.download_name),
        # Kept by the client alone, and asked for again each time: an expired link must not go on working from a cache.
        "cache-control": "private, no-cache",
        # What is in the file came from a stranger: never guessed to be a page, and as a page allowed to do nothing.
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


def _is_current(if_none_match: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]
