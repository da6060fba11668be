"""Default response headers."""

from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.api.ratelimit import NOTHING_KNOWN, Header, rate_limits
from service.usecases.services import Services

DEFAULTS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),  # responses contain links and belong to one account
)
"""The defaults, which an endpoint can override."""

_CLOSE: Header = (b"connection", b"close")


class ResponseHeaders:
    """ASGI middleware that adds the default headers to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                message = {**message, "headers": [*headers, *_missing(scope, {name.lower() for name, _ in headers})]}
            await send(message)

        await self._app(scope, receive, complete if scope["type"] == "http" else send)


def _missing(scope: Scope, present: set[bytes]) -> Iterator[Header]:
    yield from (header for header in DEFAULTS if header[0] not in present)
    state = scope["state"]
    services: Services = state["services"]
    runner = services.runner
    if "caller" in state:
        remaining = state.get("remaining", NOTHING_KNOWN)
        yield from rate_limits(services.pool.queue, state["caller"], remaining, services.clock())
    if runner.is_shutting_down and _CLOSE[0] not in present and scope["http_version"] < "2":
        yield _CLOSE  # so that the client's next request goes to another server
