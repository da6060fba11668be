"""The service behind a gateway: the gateway's address, its authentication, and a private port for operators."""

import time
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from service.accounts.administration import Terms
from service.accounts.identity import sign_identity
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.server import Client, Server, create_account, running_server

SECRET = "k" * 40
ORIGIN = "https://maps.example.org"
PUBLIC = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "maps.example.org", "X-Forwarded-For": "203.0.113.9"}
OUTSIDE = "https://maps.example.org/geo"
FILE = "/api/geo/convert/file"
TIERS = "/api/geo/pricing/tiers"
OPERATIONS = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs")

pytestmark = pytest.mark.xdist_group("gateway")  # one server for all


@pytest.fixture(scope="module")
def server(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that trusts this host as its gateway."""
    settings = {
        "GEOMILL_ROOT_PATH": "/geo",
        "GEOMILL_TRUSTED_PROXIES": "127.0.0.0/8",
        "GEOMILL_IDENTITY_SECRET": f"{'o' * 32},{SECRET}",
        "GEOMILL_PRIVATE_PORT": "0",
        "GEOMILL_CORS_ORIGINS": ORIGIN,
    }
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("gateway"), dsn, settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    """A client of an account on plan team."""
    with create_account(server, Terms(plan="team", plan_owner="organization", organization=None)) as made:
        yield made


def private_url(server: Server) -> str:
    """The address of the private port."""
    return str(server.events("server.ready")[0]["private_url"])


def identity(account_id: object, *, secret: str = SECRET, path: str = TIERS, method: str = "GET", age: int = 0) -> str:
    """The header of a gateway that authenticates clients itself."""
    seconds = str(int(time.time()) - age)
    signature = sign_identity(secret.encode(), str(account_id), seconds, method, path)
    return f"account={account_id},time={seconds},v1={signature}"


def convert(client: Client, path: str, **headers: str) -> httpx.Response:
    """Convert a small file."""
    return client.post(path, files={"file": ("a.geojson", lakes())}, headers={**PUBLIC, **headers})


@pytest.mark.parametrize("path", [FILE, f"/geo{FILE}"], ids=["taken off", "passed on"])
def test_links_lead_through_the_gateway(client: Client, path: str) -> None:
    """They have its scheme, host and root path, and work through it."""
    answer = convert(client, path).json()
    assert answer["success"], answer
    url = answer["downloadUrl"]
    assert url.startswith(f"{OUTSIDE}/files/")
    parts = urlsplit(url)
    for inside in (parts.path, parts.path.removeprefix("/geo")):
        assert client.get(f"{inside}?{parts.query}").is_success


def test_the_place_of_an_accepted_job_leads_through_the_gateway(client: Client) -> None:
    """Location is an absolute address that the client can request."""
    response = convert(client, FILE, Prefer="respond-async")
    location = response.headers["location"]
    assert location == f"{OUTSIDE}/api/geo/convert/jobs/{response.json()['jobId']}/status"
    assert client.get(urlsplit(location).path).json()["jobId"] == response.json()["jobId"]


def test_without_a_gateway_links_lead_to_where_the_request_came(server: Server, client: Client) -> None:
    """They use the Host header and the root path."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())})
    assert response.json()["downloadUrl"].startswith(f"{server.url}/geo/files/")


def test_the_gateways_word_takes_the_place_of_a_key(server: Server, client: Client) -> None:
    """The account is the one that the gateway names, and the job belongs to it."""
    word = identity(client.account.account_id, path=FILE, method="POST")
    files = {"file": ("a.geojson", lakes())}
    answer = httpx.post(f"{server.url}/geo{FILE}", files=files, headers={"X-Geomill-Identity": word})
    assert answer.json()["success"], answer.text
    assert client.get(f"/api/geo/convert/jobs/{answer.json()['jobId']}/status").is_success


def test_a_word_that_cannot_be_believed_is_refused_whatever_key_comes_with_it(client: Client) -> None:
    """Forged, for another request, expired, repeated, or for an account that does not exist."""
    account = client.account.account_id
    wrong = (
        identity(account, secret="x" * 40),
        identity(account, path=FILE),
        identity(account, age=120),
        f"{identity(account)}, {identity(account)}",
        identity(uuid4()),
        "",
    )
    for word in wrong:
        response = client.get(TIERS, headers={"X-Geomill-Identity": word})
        assert (response.status_code, response.json()["code"]) == (401, "invalid_identity"), word


def test_without_the_gateways_word_the_key_is_needed(server: Server, client: Client) -> None:
    """A valid key is enough."""
    assert client.get(TIERS).is_success
    assert httpx.get(server.url + TIERS).json()["code"] == "missing_api_key"


def test_operators_have_a_port_of_their_own(server: Server, client: Client) -> None:
    """Operators' endpoints exist only there; clients' endpoints do not exist there."""
    for path in OPERATIONS:
        assert httpx.get(private_url(server) + path).is_success, path
        assert client.get(path).status_code == 404, path
    assert httpx.get(private_url(server) + TIERS, headers=dict(client.headers)).status_code == 404


def test_the_documentation_is_only_named_where_it_is(server: Server, client: Client) -> None:
    """Below the root path that clients know."""
    assert client.get("/nothing").json()["detail"] == "There is nothing at this address."
    there = httpx.get(private_url(server) + "/nothing").json()["detail"]
    assert there == "There is nothing at this address. /geo/docs lists the endpoints."


def test_scripts_of_an_allowed_origin_may_call(client: Client) -> None:
    """Preflight and actual responses allow it and list the headers that scripts may read."""
    sends = "x-api-key, range, if-range, if-none-match"
    asks = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": sends}
    before = client.options(FILE, headers=asks)
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "X-API-Key" in before.headers["access-control-allow-headers"]
    after = client.get(TIERS, headers={"Origin": ORIGIN})
    assert after.headers["access-control-allow-origin"] == ORIGIN
    assert {"RateLimit", "ETag", "Content-Range"} <= {*after.headers["access-control-expose-headers"].split(", ")}


def test_scripts_of_another_origin_may_not(client: Client) -> None:
    """Their browser withholds the response from them."""
    other = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options(FILE, headers=other).headers
    assert "access-control-allow-origin" not in client.get(TIERS, headers=other).headers
