"""The key of a request: every endpoint of the interface needs one (specification 5)."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.usecases.services import Services

Handler = Callable[[Request], Awaitable[Response]]
KeyedHandler = Callable[[Request, Caller], Awaitable[Response]]

HEADER = "x-api-key"


def needs_key(handler: KeyedHandler) -> Handler:
    """Give `handler` the caller behind the header X-API-Key; without a valid one it is not reached."""

    async def authenticated(request: Request) -> Response:
        services: Services = request.state.services
        caller = await services.authenticator.authenticate(request.headers.get(HEADER))
        return await handler(request, caller)

    return authenticated
