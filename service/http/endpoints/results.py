"""The result of one job: what its conversion responded, and a preview for a map."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from isal import isal_zlib
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api.render import conversion_result
from service.http.api.result import StreamedResponse
from service.http.api.schemas import json_response
from service.usecases.jobs import read_job
from service.usecases.preview_result import MEDIA_TYPE, preview_result
from service.usecases.services import Services

LEVEL = 1
GZIP = 31
"""The bits of a window of 32 KiB, and 16 for the frame of gzip."""


async def job_result(request: Request, caller: Caller) -> Response:
    """Show what the conversion of a job responded, with a new link (interface 4.9)."""
    services: Services = request.state.services
    linked = await read_job(services, caller.account_id, request.path_params["jobId"])
    return json_response(conversion_result(request, linked, (), None))


async def job_preview(request: Request, caller: Caller) -> Response:
    """Show the result of a job as GeoJSON for a map (interface 4.10)."""
    services: Services = request.state.services
    pieces = preview_result(services, caller.account_id, request.path_params["jobId"])
    headers = {"content-type": MEDIA_TYPE, "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        pieces = _packed(pieces)
        headers["content-encoding"] = "gzip"
    return StreamedResponse(await anext(pieces), pieces, headers)


async def _packed(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Compress a document while it is sent."""
    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, GZIP)
    async with aclosing(pieces):
        async for piece in pieces:
            yield packer.compress(piece)
        yield packer.flush()
