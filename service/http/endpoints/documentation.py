"""The description of the interface for programs: OpenAPI. No key needed."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.usecases.services import Services


async def openapi(request: Request) -> Response:
    """Describe every endpoint in OpenAPI 3.1."""
    services: Services = request.state.services
    address = request.state.public_url or request.scope.get("root_path", "")
    document = request.app.state.describe(services.intake, address)
    return Response(msgspec.json.encode(document), media_type="application/json")
