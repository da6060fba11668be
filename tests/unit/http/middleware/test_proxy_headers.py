"""A gateway's headers about a request are accepted only from trusted addresses."""

from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.middleware.proxy_headers import ProxyHeadersMiddleware, parse_networks
from service.settings import SettingsError

TRUSTED = "10.0.0.0/8, 192.0.2.7, fd00::/8"


def seen(client: str | None, *headers: tuple[str, str], below: str = "", **scope: Any) -> Scope:
    """The scope that the application behind a gateway gets."""
    found: list[Scope] = []

    async def application(scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(scope)

    async def receive() -> Message:
        raise AssertionError

    async def send(_message: Message) -> None:
        raise AssertionError

    asked: Scope = {
        "type": "http",
        "scheme": "http",
        "path": "/healthz",
        "client": (client, 1234) if client else None,
        "headers": [(b"host", b"inside:8080"), *((name.encode(), value.encode("latin-1")) for name, value in headers)],
        **scope,
    }
    anyio.run(ProxyHeadersMiddleware(application, parse_networks(TRUSTED), below), asked, receive, send)
    return found[0]


def host(scope: Scope) -> str:
    """The header Host, which must be there once."""
    [found] = [value for name, value in scope["headers"] if name == b"host"]
    return str(found.decode())


FORWARDED = (
    ("x-forwarded-for", "203.0.113.9"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "maps.example.org:8443"),
)


@pytest.mark.parametrize("address", ["10.1.2.3", "192.0.2.7", "fd00::1", "::ffff:10.1.2.3"])
def test_a_trusted_proxy_is_believed(address: str) -> None:
    """Scheme, host and client are those of the original request."""
    scope = seen(address, *FORWARDED)
    assert (scope["scheme"], host(scope), scope["client"][0]) == ("https", "maps.example.org:8443", "203.0.113.9")


@pytest.mark.parametrize("address", ["203.0.113.1", "192.0.2.8", "::1", "unix", None])
def test_nobody_else_is_believed(address: str | None) -> None:
    """Their headers change nothing."""
    scope = seen(address, *FORWARDED)
    assert (scope["scheme"], host(scope)) == ("http", "inside:8080")
    assert scope["client"] == ((address, 1234) if address else None)


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("10.8.8.8, 10.9.9.9", "10.8.8.8"),
        ("203.0.113.9, nonsense", "10.0.0.1"),
        ("nonsense, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("", "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(forwarded: str, client: str) -> None:
    """The client may have written earlier addresses itself."""
    assert seen("10.0.0.1", ("x-forwarded-for", forwarded))["client"][0] == client


def test_several_headers_are_one_list() -> None:
    """The last value is the nearest proxy's."""
    headers = (("x-forwarded-proto", "https"), ("x-forwarded-proto", "http"), ("x-forwarded-for", "1.1.1.1"))
    scope = seen("10.0.0.1", *headers, ("x-forwarded-for", "203.0.113.9"))
    assert (scope["scheme"], scope["client"][0]) == ("http", "203.0.113.9")


@pytest.mark.parametrize("value", ["evil/path", "a b", "a@b", "[", "a\nb", "ä", "a:123456", ""])
def test_a_host_that_is_none_is_left_out(value: str) -> None:
    """It would be used in links."""
    assert host(seen("10.0.0.1", ("x-forwarded-host", value))) == "inside:8080"


def test_a_scheme_that_is_none_is_left_out() -> None:
    """Only http and https are possible."""
    assert seen("10.0.0.1", ("x-forwarded-proto", "javascript"))["scheme"] == "http"


@pytest.mark.parametrize("path", ["/healthz", "/geo/healthz"])
def test_the_root_path_may_be_passed_on_or_not(path: str) -> None:
    """The application gets the same path."""
    scope = seen(None, below="/geo", path=path)
    assert (scope["root_path"], scope["path"]) == ("/geo", "/geo/healthz")


def test_a_path_that_only_begins_like_the_root_path_is_below_it() -> None:
    """/geometry is not in /geo."""
    assert seen(None, below="/geo", path="/geometry")["path"] == "/geo/geometry"


def test_the_root_path_stands_before_that_of_the_server() -> None:
    """A mounted application keeps its mount point."""
    scope = seen(None, below="/outer", root_path="/inner", path="/inner/healthz")
    assert (scope["root_path"], scope["path"]) == ("/outer/inner", "/outer/inner/healthz")


@pytest.mark.parametrize("text", ["10.0.0.0/33", "example.org", "10.0.0.1/8"])
def test_what_is_no_network_is_told(text: str) -> None:
    """At start-up, with the setting's name."""
    with pytest.raises(SettingsError, match="GEOMILL_TRUSTED_PROXIES"):
        parse_networks(text)
