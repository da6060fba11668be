"""The ASGI application: routes, middleware, and how faults are answered."""

from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Lifespan

from service.errors import RequestFault
from service.http.draining import DrainingMiddleware
from service.http.middleware import RequestContext
from service.http.openapi import describe
from service.http.problems import problem_of_fault, problem_of_routing
from service.http.routes import ENDPOINTS, ROUTES


def build_application(lifespan: Lifespan[Starlette]) -> Starlette:
    """Build the application; `lifespan` yields the state `services` and `public_url`."""
    application = Starlette(
        routes=list(ROUTES),
        middleware=[Middleware(RequestContext), Middleware(DrainingMiddleware)],
        exception_handlers={RequestFault: _answer_fault, HTTPException: _answer_routing},
        lifespan=lifespan,
    )
    application.state.describe = partial(describe, ENDPOINTS)
    return application


async def _answer_fault(request: Request, fault: Exception) -> Response:
    if not isinstance(fault, RequestFault):
        raise fault
    return problem_of_fault(fault, request.state.request_id)


async def _answer_routing(request: Request, refused: Exception) -> Response:
    if not isinstance(refused, HTTPException):
        raise refused
    return problem_of_routing(refused, request, request.state.request_id)
