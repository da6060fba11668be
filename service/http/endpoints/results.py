"""The result of one job: what its conversion responded, and a preview for a map."""

from functools import partial

import anyio.to_thread
from isal import igzip
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api.render import conversion_result
from service.http.api.schemas import json_response
from service.usecases.jobs import read_job
from service.usecases.preview_result import MEDIA_TYPE, preview_result
from service.usecases.services import Services

SMALL_BYTES = 16 * 1024
"""Up to here a preview is not compressed."""
LEVEL = 1


async def job_result(request: Request, caller: Caller) -> Response:
    """Show what the conversion of a job responded, with a new link (interface 4.9)."""
    services: Services = request.state.services
    linked = await read_job(services, caller.account_id, request.path_params["jobId"])
    return json_response(conversion_result(request, linked, (), None))


async def job_preview(request: Request, caller: Caller) -> Response:
    """Show the result of a job as GeoJSON for a map (interface 4.10)."""
    services: Services = request.state.services
    document = await preview_result(services, caller.account_id, request.path_params["jobId"])
    headers = {"vary": "accept-encoding"}
    if len(document) > SMALL_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        document = await anyio.to_thread.run_sync(partial(igzip.compress, document, LEVEL))
        headers["content-encoding"] = "gzip"
    return Response(document, headers=headers, media_type=MEDIA_TYPE)
