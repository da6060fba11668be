"""One job, or the newest jobs."""

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api.params import read_limit
from service.http.api.render import job_record
from service.http.api.schemas import RecentJobs, json_response
from service.usecases.jobs import read_job, read_recent_jobs
from service.usecases.services import Services


async def job_status(request: Request, caller: Caller) -> Response:
    """Show one job of the caller (interface 4.6)."""
    services: Services = request.state.services
    linked = await read_job(services, caller.account_id, request.path_params["jobId"])
    return json_response(job_record(request, linked))


async def recent_jobs(request: Request, caller: Caller) -> Response:
    """List the caller's newest jobs (interface 4.7)."""
    services: Services = request.state.services
    jobs = await read_recent_jobs(services, caller.account_id, read_limit(request.query_params))
    return json_response(RecentJobs(success=True, jobs=tuple(job_record(request, linked) for linked in jobs)))
