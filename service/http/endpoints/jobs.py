"""One job: shown, awaited or deleted, with what its conversion responded and a preview of its result; or the newest."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus

import msgspec
from isal import isal_zlib
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api import inputs
from service.http.api.params import read_bounded, read_only_open
from service.http.api.render import conversion_result, job_record
from service.http.api.result import StreamedResponse
from service.http.api.schemas import RecentJobs, json_response
from service.usecases.delete_job import cancel_job, delete_job
from service.usecases.jobs import await_job, listing, read_job, read_recent_jobs, with_link
from service.usecases.preview_result import MEDIA_TYPE, preview_result
from service.usecases.services import Services

LEVEL = 1
GZIP = 31
"""The bits of a window of 32 KiB, and 16 for the frame of gzip."""


async def job_status(request: Request, caller: Caller) -> Response:
    """Show one job of the caller, at its end if the caller wants to wait for it (interface 4.6)."""
    services: Services = request.state.services
    seconds = min(read_bounded(inputs.WAIT, request.query_params), services.most_wait_seconds)
    job_id = request.path_params["jobId"]
    linked = (
        await await_job(services, caller.account_id, job_id, seconds)
        if seconds
        else await read_job(services, caller.account_id, job_id)
    )
    return json_response(job_record(request, linked))


async def delete_one(request: Request, caller: Caller) -> Response:
    """Cancel a job of the caller, or erase its result unless the caller only wants to cancel (interface 4.8)."""
    services: Services = request.state.services
    job_id = request.path_params["jobId"]
    if not read_only_open(request.query_params):
        await delete_job(services, caller.account_id, job_id)
    elif completed := await cancel_job(services, caller.account_id, job_id):
        return json_response(job_record(request, await with_link(services, completed)), HTTPStatus.CONFLICT)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def recent_jobs(request: Request, caller: Caller) -> Response:
    """List the caller's newest jobs (interface 4.7)."""
    pieces = _listed(request, caller, read_bounded(inputs.LIMIT, request.query_params))
    whole = await anext(pieces)
    headers = {"content-type": "application/json", "content-length": str(len(whole))}
    return StreamedResponse(whole, pieces, headers)


async def _listed(request: Request, caller: Caller, limit: int) -> AsyncGenerator[bytes]:
    """The list in one piece, which has a place of the account until it is sent."""
    async with listing(caller.account_id):
        jobs = await read_recent_jobs(request.state.services, caller.account_id, limit)
        yield msgspec.json.encode(RecentJobs(success=True, jobs=tuple(job_record(request, linked) for linked in jobs)))


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
