"""Default response headers."""

from starlette.types import Scope

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


def missing(scope: Scope, present: set[bytes]) -> list[Header]:
    """Return the headers that a response to the request of `scope` needs besides those `present`."""
    headers = [header for header in DEFAULTS if header[0] not in present]
    state = scope["state"]
    services: Services = state["services"]
    if "caller" in state:
        remaining = state.get("remaining", NOTHING_KNOWN)
        headers += rate_limits(services.pool.queue, state["caller"], remaining, services.clock())
    if services.runner.is_shutting_down and _CLOSE[0] not in present and scope["http_version"] < "2":
        headers.append(_CLOSE)  # so that the client's next request goes to another server
    return headers
