"""The description of the interface: OpenAPI for programs, a page for people. No key needed."""

from functools import cache
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.errors import NotFound
from service.http import docs as package
from service.usecases.services import Services

PAGE = "page.html"
ASSETS = {"page.js": "text/javascript", "page.css": "text/css"}

_HEADERS = {
    # The page may run only its own script on its own data; it cannot load, frame or send anything else.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


async def openapi(request: Request) -> Response:
    """Describe every endpoint in OpenAPI 3.1."""
    services: Services = request.state.services
    address = request.state.public_url or request.scope.get("root_path", "")
    document = request.app.state.describe(services.intake, address)
    return Response(msgspec.json.encode(document), media_type="application/json")


async def docs(_request: Request) -> Response:
    """Show the page."""
    return Response(_read(PAGE), headers=_HEADERS, media_type="text/html")


async def docs_asset(request: Request) -> Response:
    """Serve the page's script or style.

    Raises:
        NotFound: it has no such part.
    """
    name = request.path_params["asset"]
    if name not in ASSETS:
        raise NotFound("The documentation has no such part.")
    return Response(_read(name), headers=_HEADERS, media_type=ASSETS[name])


@cache
def _read(name: str) -> bytes:
    return (files(package) / "page" / name).read_bytes()
