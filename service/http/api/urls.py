"""The URLs of the interface, and those in responses: as clients reach the service, through any gateway before it."""

from urllib.parse import quote

from starlette.requests import Request

from service.http.middleware.proxy_headers import HOST

API = "/api/geo"
JOBS = f"{API}/convert/jobs"


def address_of(request: Request, path: str) -> str:
    """Return the full URL of `path`, which starts with a slash and excludes the root path."""
    return (request.state.public_url or _address_of_service(request)) + path


def status_path(job_id: object) -> str:
    """Return the path of a job's status."""
    return f"{JOBS}/{job_id}/status"


def _address_of_service(request: Request) -> str:
    scope = request.scope
    host = request.headers.get("host", "")
    if not HOST.fullmatch(host):
        name, port = scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{scope['scheme']}://{host}{quote(scope.get('root_path', ''))}".rstrip("/")
