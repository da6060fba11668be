"""What operators ask for: liveness, readiness, metrics, and the usage of all accounts (interface 10). No key needed."""

from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.http.api.params import read_days
from service.http.api.schemas import json_response
from service.metering.usage import as_csv
from service.telemetry.exposition import CONTENT_TYPE, Exposition
from service.usecases.check_readiness import check_readiness
from service.usecases.services import Services

_EXPOSITION = Exposition()


class Alive(msgspec.Struct, frozen=True):
    """The response of a living process."""

    status: str = "alive"


async def healthz(_request: Request) -> Response:
    """Report that the process is alive."""
    return json_response(Alive())


async def readyz(request: Request) -> Response:
    """Report whether the process can accept work, and what prevents it."""
    readiness = await check_readiness(request.state.services)
    return json_response(readiness, HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def metrics(request: Request) -> Response:
    """Show the metrics, for Prometheus, of this process, or of all processes that share a metrics directory."""
    text = await _EXPOSITION.text(may_be_old=request.state.services.promises.is_refusing)
    return Response(text, headers={"content-type": CONTENT_TYPE})


async def usage_by_day(request: Request) -> Response:
    """Send what each account was charged on each day, as CSV."""
    services: Services = request.state.services
    first, last = read_days(request.query_params, services.clock().date())
    usage = await services.usage.by_day(first, last)
    return Response(as_csv(usage), media_type="text/csv")
