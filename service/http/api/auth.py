"""Identifies the caller of a request, which every endpoint of the interface requires (interface 5).

The caller is identified by an API key, or by the signed header of a trusted gateway that has authenticated the client.
An invalid gateway header is refused whatever else the request contains. Without such a header, or without a trusted
gateway, the key is required.
"""

from collections.abc import Awaitable, Callable

from starlette._utils import get_route_path
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.errors import InvalidApiKey
from service.usecases.services import Services

Handler = Callable[[Request], Awaitable[Response]]
KeyedHandler = Callable[[Request, Caller], Awaitable[Response]]

HEADER = "x-api-key"
IDENTITY = "x-geomill-identity"


async def authenticated(handler: KeyedHandler, request: Request) -> Response:
    """Call `handler` with the caller of the request; without a valid key or identity the request is refused."""
    request.state.caller = await _caller(request, request.state.services)
    return await handler(request, request.state.caller)


async def _caller(request: Request, services: Services) -> Caller:
    identities = request.headers.getlist(IDENTITY) if services.gateway.exists else ()
    if not identities:
        keys = request.headers.getlist(HEADER)
        if len(keys) > 1:
            raise InvalidApiKey(f"The header X-API-Key occurs {len(keys)} times; send it once.")
        return await services.authenticator.authenticate(keys[0] if keys else None)
    path = get_route_path(request.scope)
    account_id = services.gateway.verify(identities, request.method, path, services.clock())
    return await services.authenticator.identify(account_id)
