"""The ASGI application: routes, middleware and error handlers.

It can be served directly or mounted in another ASGI application. It does not depend on the state, the router or the
lifespan of a surrounding application.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache, partial
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.api.endpoint import Keyed, Open
from service.http.api.urls import API
from service.http.docs.openapi import describe
from service.http.middleware.draining import DrainingMiddleware
from service.http.middleware.proxy_headers import Network, ProxyHeadersMiddleware
from service.http.middleware.request_context import RequestContext
from service.http.problems import problem_of_path, problem_of_routing
from service.http.routes import ENDPOINTS, PRIVATE, ROUTES
from service.http.unserved import refuse_websocket
from service.intake.form import IntakeLimits
from service.usecases.services import Services

PAGE: frozenset[str] = frozenset({"page", "pageAsset"})
"""The names of the routes of the page, which an operator may switch off."""
FOR_CLIENTS: tuple[Route, ...] = tuple(
    route for route in ROUTES if route.path.startswith((f"{API}/", "/files/")) or route.name in PAGE
)
FOR_OPERATORS: tuple[Route, ...] = tuple(route for route in ROUTES if route not in FOR_CLIENTS)
"""The endpoints that may have a separate port (interface 10)."""
ON_ONE_PORT: tuple[Route, ...] = tuple(route for route in ROUTES if route.path not in PRIVATE)
"""The endpoints without a separate port: all but those that only operators may reach."""


class DeploymentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the application needs to know about the gateways between it and its clients."""

    public_url: str = ""
    root_path: str = ""
    trusted_proxies: tuple[Network, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_header_bytes: int = 16_384


class Application(Starlette):
    """Geomill as an ASGI application."""

    def __init__(
        self,
        open_services: Callable[[], AbstractAsyncContextManager[Services]],
        surroundings: DeploymentConfig,
        routes: Sequence[Route] = ROUTES,
    ) -> None:
        super().__init__(
            routes=list(routes), middleware=_middleware(surroundings), lifespan=lambda _application: self.lifespan()
        )
        # The description covers both ports, but not what is private where there is only one.
        served = {route.path for route in routes}
        described = tuple(endpoint for endpoint in ENDPOINTS if endpoint.path in served or endpoint.path not in PRIVATE)
        self.router.redirect_slashes = False  # it would name the scheme and host, which a gateway may have changed
        self.state.describe = lru_cache(maxsize=8)(partial(_description, described))
        self.state.has_docs = "/docs" in served
        self._open_services = open_services
        self._public_url = surroundings.public_url.rstrip("/")
        self._services: Services | None = None

    def build_middleware_stack(self) -> ASGIApp:
        """Return the router within our middleware; Starlette would add its own, which handle errors as well."""
        app: ASGIApp = self._route
        for middleware in reversed(self.user_middleware):
            app = middleware.cls(app, *middleware.args, **middleware.kwargs)
        return app

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException as refused:  # raised before there is a response
            await _answer_routing(scope, refused)(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open and close the services; for the lifespan of an application that mounts this one."""
        async with self._open_services() as services:
            self._services = services
            try:
                yield
            finally:
                self._services = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection; each request has `services` and `public_url` in its state."""
        if scope["type"] == "websocket":
            await refuse_websocket(scope, receive, send)
            return
        if scope["type"] == "http":
            if self._services is None:
                raise RuntimeError("Geomill is not open: enter its lifespan() in that of the surrounding application")
            scope = {**scope, "state": {"services": self._services, "public_url": self._public_url}}
        await super().__call__(scope, receive, send)


def _description(endpoints: Sequence[Open | Keyed], limits: IntakeLimits, address: str) -> bytes:
    """The description of `endpoints` as JSON: one for all clients, of which thousands may read it slowly."""
    return msgspec.json.encode(describe(endpoints, limits, address))


def _middleware(surroundings: DeploymentConfig) -> list[Middleware]:
    middleware = [
        Middleware(DrainingMiddleware),
        Middleware(RequestContext, most_header_bytes=surroundings.max_header_bytes),
    ]
    if surroundings.trusted_proxies or surroundings.root_path:
        trusted, root_path = surroundings.trusted_proxies, surroundings.root_path
        middleware.append(Middleware(ProxyHeadersMiddleware, trusted=trusted, root_path=root_path))
    if surroundings.cors_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=surroundings.cors_origins,
                allow_methods=("GET", "HEAD", "POST", "DELETE"),
                allow_headers=_FROM_SCRIPTS,
                expose_headers=_TO_SCRIPTS,
            )
        )
    return middleware


_FROM_SCRIPTS = (
    "X-API-Key",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Prefer",
    "Range",
    "X-Request-Id",
    "traceparent",
)
_TO_SCRIPTS = (
    "Content-Disposition",
    "Content-Range",
    "ETag",
    "Geomill-Job-Id",
    "Geomill-Warnings",
    "Link",
    "Location",
    "Preference-Applied",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "traceparent",
    "X-Request-Id",
)


def _answer_routing(scope: Scope, refused: HTTPException) -> Response:
    allowed = (refused.headers or {}).get("Allow")
    if scope["method"] == "OPTIONS" and allowed:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": f"{allowed}, OPTIONS"})
    request_id = scope["state"]["request_id"]
    if refused.status_code == HTTPStatus.NOT_FOUND and (path := _path_but_for_slash(scope)):
        return problem_of_path(path, scope["query_string"].decode("latin-1"), request_id)
    docs = f"{scope.get('root_path', '')}/docs" if scope["app"].state.has_docs else ""
    return problem_of_routing(refused, scope["method"], docs, request_id)


def _path_but_for_slash(scope: Scope) -> str | None:
    """Return the path of the endpoint that the request means if it has a slash at its end too many, or one too few."""
    path = scope["path"]
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    found = any(route.matches({**scope, "path": other})[0] is not Match.NONE for route in scope["app"].routes)
    return quote(other) if found else None
