"""The addresses that answers carry: as clients reach the service, through whatever is in front of it."""

from urllib.parse import quote

from starlette.requests import Request

from service.http.middleware.proxy_headers import HOST


def address_of(request: Request, path: str) -> str:
    """Return the full address of `path`, which begins with a slash and is the service's own."""
    return (request.state.public_url or _address_of_service(request)) + path


def address_of_route(request: Request, name: str, **parameters: str) -> str:
    """Return the full address of the route called `name`."""
    return address_of(request, str(request.app.url_path_for(name, **parameters)))


def _address_of_service(request: Request) -> str:
    scope = request.scope
    host = request.headers.get("host", "")
    if not HOST.fullmatch(host):
        name, port = scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{scope['scheme']}://{host}{quote(scope.get('root_path', ''))}".rstrip("/")
