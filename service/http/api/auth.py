"""Who sends a request: every endpoint of the interface needs to know (interface 5).

An API key tells, or the signed word of a gateway in front that has authenticated the client itself. A word that cannot
be believed is refused whatever else the request has; where there is none, or no gateway is trusted, the key is needed.
"""

from collections.abc import Awaitable, Callable

from starlette._utils import get_route_path
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.usecases.services import Services

Handler = Callable[[Request], Awaitable[Response]]
KeyedHandler = Callable[[Request, Caller], Awaitable[Response]]

HEADER = "x-api-key"
IDENTITY = "x-geomill-identity"


def needs_key(handler: KeyedHandler) -> Handler:
    """Give `handler` the caller of the request; without a valid key or identity it is not reached."""

    async def authenticated(request: Request) -> Response:
        request.state.caller = await _caller(request, request.state.services)
        return await handler(request, request.state.caller)

    return authenticated


async def _caller(request: Request, services: Services) -> Caller:
    identities = request.headers.getlist(IDENTITY) if services.gateway.exists else ()
    if not identities:
        return await services.authenticator.authenticate(request.headers.get(HEADER))
    path = get_route_path(request.scope)
    account_id = services.gateway.verify(identities, request.method, path, services.clock())
    return await services.authenticator.identify(account_id)
