"""Headers of every response, and responses to the less common methods."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.api.conftest import NewClient
from tests.support.data import lakes
from tests.support.server import Client, Server

PATHS = ("/api/geo/pricing/tiers", "/api/geo/nothing", "/healthz", "/readyz")
FILE = "/api/geo/convert/file"
BATCH = "/api/geo/convert/batch"
JOBS = "/api/geo/convert/jobs"


@pytest.mark.parametrize("path", PATHS)
def test_no_answer_can_be_taken_for_a_page_or_kept(client: Client, path: str) -> None:
    """Headers forbid content sniffing, framing, caching and referrers."""
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_result_keeps_what_it_says_of_itself(client: Client) -> None:
    """Each header appears once, as the result store set it."""
    headers = httpx.get(client.convert("a.geojson", lakes())["downloadUrl"]).headers
    assert headers.get_list("cache-control") == ["private, no-cache"]
    assert headers.get_list("x-content-type-options") == ["nosniff"]
    assert headers["referrer-policy"] == "no-referrer"


def items(field: str) -> dict[str, dict[str, str]]:
    """The items of a structured field, by name, with their parameters."""
    found = {}
    for item in field.split(", "):
        name, *parameters = item.split(";")
        found[name.strip('"')] = dict(parameter.split("=", 1) for parameter in parameters)
    return found


def test_answers_tell_how_much_more_the_account_may_have_under_way(client: Client) -> None:
    """In the fields RateLimit and RateLimit-Policy, which responses without a key do not have."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())})
    assert items(response.headers["ratelimit-policy"])["concurrency"] == {"q": "384", "qu": '"concurrent-requests"'}
    assert items(response.headers["ratelimit"])["concurrency"] == {"r": "384"}
    assert "ratelimit" not in client.post(FILE, headers={"X-API-Key": ""}).headers


def test_answers_tell_what_a_plan_allows_and_what_is_left_of_the_month(client: Client) -> None:
    """Every response states the policy; after a conversion, also what is left until the end of the month."""
    now = datetime.now(UTC)
    following = (now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=31)).replace(day=1)
    seconds = monthrange(now.year, now.month)[1] * 86_400
    listed = client.get("/api/geo/pricing/tiers")
    assert set(items(listed.headers["ratelimit"])) == {"concurrency"}
    policy = items(listed.headers["ratelimit-policy"])
    assert policy["conversions"] == {"q": "5000", "w": str(seconds)}
    assert policy["data"] == {"q": str(10 << 30), "qu": '"content-bytes"', "w": str(seconds)}
    one = client.post(FILE, files={"file": ("a.geojson", lakes())}, data={"includeWallet": "true"})
    many = client.post(BATCH, files=[("files", ("a.geojson", lakes())), ("files", ("b.unknown", b"x"))])
    for response in (one, many):
        left, answer = items(response.headers["ratelimit"]), response.json()
        assert left["conversions"]["r"] == str(answer["remainingConversions"])
        assert left["data"]["r"] == str(answer["remainingBytes"])
        assert abs(int(left["data"]["t"]) - (following - now).total_seconds()) < 120


def test_answers_tell_that_no_conversion_is_left(new_client: NewClient) -> None:
    """When that is the reason for a refusal."""
    client = new_client("free")
    for _ in range(10):
        assert client.convert("a.geojson", lakes())["success"]
    refused = client.post(FILE, files={"file": ("a.geojson", lakes())})
    assert refused.json()["limit"] == "conversions"
    assert items(refused.headers["ratelimit"])["conversions"]["r"] == "0"


def test_prepaid_credit_knows_no_month(new_client: NewClient) -> None:
    """An account without a plan has only the concurrency policy."""
    response = new_client(wallet_cents=10).post(FILE, files={"file": ("a.geojson", lakes())})
    assert response.json()["success"]
    assert set(items(response.headers["ratelimit-policy"])) == {"concurrency"}
    assert set(items(response.headers["ratelimit"])) == {"concurrency"}


def test_a_repeat_does_not_tell_what_was_left_then(client: Client) -> None:
    """The response is repeated as it was; what is left may have changed since."""
    key = {"Idempotency-Key": "once"}
    first, again = [client.post(FILE, files={"file": ("a.geojson", lakes())}, headers=key) for _ in range(2)]
    assert first.json()["jobId"] == again.json()["jobId"]
    assert "conversions" in items(first.headers["ratelimit"])
    assert set(items(again.headers["ratelimit"])) == {"concurrency"}


def test_head_is_get_without_the_body(client: Client) -> None:
    """With the same headers."""
    head, get = client.head(JOBS), client.get(JOBS)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    ("path", "allowed"), [(FILE, {"POST"}), (JOBS, {"GET", "HEAD"}), ("/healthz", {"GET", "HEAD"})]
)
def test_options_tells_the_methods(server: Server, path: str, allowed: set[str]) -> None:
    """No key is needed; an unknown path has no methods."""
    response = httpx.options(server.url + path)
    assert (response.status_code, response.content) == (204, b"")
    assert set(response.headers["allow"].split(", ")) == {*allowed, "OPTIONS"}
    assert httpx.options(f"{server.url}/nothing").status_code == 404


def test_pages_of_other_origins_are_told_nothing(client: Client) -> None:
    """Unless the operator allows their origin."""
    headers = client.get(JOBS, headers={"Origin": "https://example.org"}).headers
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("size", [17_000, 60_000])
def test_a_head_that_is_too_long_is_refused(client: Client, size: int) -> None:
    """Whether it arrives in one piece or in several."""
    response = client.get(JOBS, headers={"X-Padding": "x" * size})
    assert (response.status_code, response.json()["code"]) == (431, "headers_too_large")


def test_a_head_that_does_not_end_is_refused(client: Client) -> None:
    """The server stops reading."""
    response = client.get(JOBS, headers={f"X-Padding-{number}": "x" * 10_000 for number in range(100)})
    assert response.status_code == 431


def test_forwarded_headers_of_strangers_mean_nothing(client: Client) -> None:
    """Links use the address that the request was sent to."""
    forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Geomill-Identity": "account=x"}
    answer = client.convert("a.geojson", lakes(), headers=forged)
    assert answer["downloadUrl"].startswith(str(client.base_url))
