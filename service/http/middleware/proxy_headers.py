"""Applies the headers of a trusted gateway: the service's address as clients know it, and the client's address.

X-Forwarded-For, -Proto and -Host are trusted only from configured addresses and otherwise ignored. Their values replace
those of the connection, so that no other code needs to know about gateways.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from service.settings import SettingsError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SCHEMES = frozenset({"http", "https"})
_REMEMBERED = 1024


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read addresses and networks, separated by commas.

    Raises:
        SettingsError: one of them is neither.
    """
    try:
        return tuple(ipaddress.ip_network(one) for one in text.replace(",", " ").split())
    except ValueError as error:
        raise SettingsError(f"GEOMILL_TRUSTED_PROXIES needs addresses or networks (10.0.0.0/8): {error}.") from None


class ProxyHeadersMiddleware:
    """ASGI middleware that sets a request's scheme, host, client and path to their external values."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network], root_path: str) -> None:
        self._app = app
        self._trusted = tuple(trusted)
        self._root_path = root_path
        self._trusts = lru_cache(_REMEMBERED)(self._is_trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            if self._trusted and scope.get("client") and self._trusts(scope["client"][0]):
                self._believe(scope)
            if self._root_path:
                _put_below(scope, self._root_path)
        await self._app(scope, receive, send)

    def _believe(self, scope: Scope) -> None:
        client = self._client(scope)
        scheme = next(_from_last(scope, b"x-forwarded-proto"), "").lower()
        host = next(_from_last(scope, b"x-forwarded-host"), "")
        if client:
            scope["client"] = (client, 0)
        if scheme in _SCHEMES:
            scope["scheme"] = scheme
        if HOST.fullmatch(host):
            others = [header for header in scope["headers"] if header[0] != b"host"]
            scope["headers"] = [(b"host", host.encode("ascii")), *others]

    def _client(self, scope: Scope) -> str | None:
        """Return the last address that is not a trusted gateway's; the client may have forged those before it."""
        client = None
        for address in _from_last(scope, b"x-forwarded-for"):
            if _parse(address) is None:
                break
            client = address
            if not self._trusts(address):
                break
        return client

    def _is_trusted(self, address: str) -> bool:
        parsed = _parse(address)
        return parsed is not None and any(parsed in network for network in self._trusted)


def _put_below(scope: Scope, root_path: str) -> None:
    """Set `root_path`; the gateway may or may not have stripped it from the path."""
    path = scope["path"]
    if path != root_path and not path.startswith(f"{root_path}/"):
        scope["path"] = root_path + path
    scope["root_path"] = root_path + scope.get("root_path", "")


def _from_last(scope: Scope, name: bytes) -> Iterator[str]:
    """Yield the values of a list header, the last one first."""
    for header, values in reversed(scope["headers"]):
        if header == name:
            for value in reversed(values.split(b",")):
                yield value.decode("latin-1").strip()


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed
