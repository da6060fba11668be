"""The key of a request: every endpoint of the interface needs one (specification 5)."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.usecases.services import Services

Endpoint = Callable[[Request], Awaitable[Response]]
KeyedEndpoint = Callable[[Request, Caller], Awaitable[Response]]

HEADER = "x-api-key"


def needs_key(endpoint: KeyedEndpoint) -> Endpoint:
    """Give `endpoint` the caller behind the header X-API-Key; without a valid one it is not reached."""

    async def authenticated(request: Request) -> Response:
        services: Services = request.state.services
        caller = await services.authenticator.authenticate(request.headers.get(HEADER))
        return await endpoint(request, caller)

    return authenticated
