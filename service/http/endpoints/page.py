"""The page at `/`, the documentation, for people and for programs, and their files. No key needed (interface 10)."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from service.errors import NotFound
from service.http.page.assets import PAGE, Asset, find_asset, page_without_docs
from service.usecases.services import Services

DOCS = "docs.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{images}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page may run only our scripts, on our data, and can neither load, frame nor send anything else."""
PAGE_POLICY = POLICY.format(images="")
DOCS_POLICY = POLICY.format(images=" data:")
"""The style of Swagger UI has its symbols in itself."""


async def page(request: Request) -> Response:
    """Show the page, with a link to the documentation unless only the private port has that."""
    return _respond(request, find_asset(PAGE) if request.app.state.has_docs else page_without_docs(), PAGE_POLICY)


async def docs(request: Request) -> Response:
    """Show the documentation."""
    return _respond(request, find_asset(DOCS), DOCS_POLICY)


async def openapi(request: Request) -> Response:
    """Describe every endpoint in OpenAPI 3.1."""
    services: Services = request.state.services
    address = request.state.public_url or request.scope.get("root_path", "")
    return Response(request.app.state.describe(services.intake, address), media_type="application/json")


async def asset(request: Request) -> Response:
    """Serve a file of the page or of the documentation.

    Raises:
        NotFound: there is no such file, or it was not installed.
    """
    return _respond(request, find_asset(request.path_params["asset"]), PAGE_POLICY)


def _respond(request: Request, found: Asset | None, policy: str) -> Response:
    if found is None:
        raise NotFound("There is no such file. If it belongs to the page, the operator can add it with `./just page`.")
    headers = {
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",  # no site that opens the page can lead it elsewhere
        "cache-control": "no-cache",
        "etag": found.etag,
        "vary": "accept-encoding",
    }
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    content = _content(request, found)
    if content is found.packed:
        headers["content-encoding"] = "gzip"
    return Response(content, headers=headers, media_type=found.media_type)


def _content(request: Request, found: Asset) -> bytes:
    reads_packed = "gzip" in request.headers.get("accept-encoding", "")
    return found.packed if found.packed is not None and reads_packed else found.content
