"""The URLs in responses: as clients reach the service, through any gateway in front of it."""

from urllib.parse import quote

from starlette.requests import Request

from service.http.middleware.proxy_headers import HOST


def address_of(request: Request, path: str) -> str:
    """Return the full URL of `path`, which starts with a slash and excludes the root path."""
    return (request.state.public_url or _address_of_service(request)) + path


def address_of_route(request: Request, name: str, **parameters: str) -> str:
    """Return the full URL of the route `name`."""
    return address_of(request, str(request.app.url_path_for(name, **parameters)))


def _address_of_service(request: Request) -> str:
    scope = request.scope
    host = request.headers.get("host", "")
    if not HOST.fullmatch(host):
        name, port = scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{scope['scheme']}://{host}{quote(scope.get('root_path', ''))}".rstrip("/")
