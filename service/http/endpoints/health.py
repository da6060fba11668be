"""Health checks for operators: liveness and readiness (interface 10). No key needed."""

from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.http.api.schemas import json_response
from service.usecases.check_readiness import check_readiness


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
