"""Who may call each endpoint of the route table, and with which methods (interface 5)."""

import re
from http import HTTPStatus

import anyio
import httpx
import pytest

from service.accounts.administration import Administration, CreatedKey
from service.accounts.keys import new_key
from service.clock import utc_now
from service.db.pool import open_pool
from service.http.api.endpoint import Keyed, Open
from service.http.routes import ENDPOINTS, PRIVATE
from service.ids import AccountId, uuid7
from tests.api.conftest import NewClient
from tests.support.data import lakes
from tests.support.server import Client, Server

KEYED = [endpoint for endpoint in ENDPOINTS if isinstance(endpoint, Keyed)]
OF_JOBS = [endpoint for endpoint in KEYED if "{jobId}" in endpoint.path]
OPEN = {
    "/files/{key}/{name}",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/docs/{asset}",
    "/",
    "/page/{asset}",
}
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"}


def name_of(endpoint: Keyed | Open) -> str:
    """The name of an endpoint in a test."""
    return endpoint.name


def address(endpoint: Keyed | Open, value: str = "x") -> str:
    """The path of an endpoint with a value for each parameter."""
    return re.sub(r"\{\w+\}", value, endpoint.path)


def send(server: Server, endpoint: Keyed | Open, *keys: str, value: str = "x") -> httpx.Response:
    """Call an endpoint with these keys."""
    headers = [("X-API-Key", key) for key in keys]
    return httpx.request(endpoint.method, server.url + address(endpoint, value), headers=headers)


async def revoked_key(dsn: str, account_id: AccountId) -> str:
    """A key of the account that was revoked before it was used."""
    async with open_pool(dsn, max_size=1) as database:
        administration = Administration(database, utc_now)
        key: CreatedKey = await administration.create_key(account_id)
        await administration.revoke_key(key.key_id)
        return key.api_key


def test_only_these_endpoints_need_no_key() -> None:
    """A new one without a key belongs in this list, once it is clear that it needs none."""
    assert {endpoint.path for endpoint in ENDPOINTS if isinstance(endpoint, Open)} == OPEN | PRIVATE


@pytest.mark.parametrize("endpoint", KEYED, ids=name_of)
def test_every_other_endpoint_needs_a_valid_key(server: Server, client: Client, endpoint: Keyed) -> None:
    """Without one, or with an unknown, a revoked or a second one, the response is 401 and says how to authenticate."""
    revoked = anyio.run(revoked_key, server.dsn, client.account.account_id)
    for keys in ((), ("",), (new_key(),), (revoked,), (client.key.api_key, new_key())):
        response = send(server, endpoint, *keys)
        assert response.status_code == HTTPStatus.UNAUTHORIZED
        assert response.json()["code"] == ("invalid_api_key" if any(keys) else "missing_api_key")
        assert "X-API-Key" in response.headers["www-authenticate"]


def test_no_endpoint_knows_the_job_of_another_account(server: Server, client: Client, new_client: NewClient) -> None:
    """The response is the one for a job that does not exist, and the job stays as it was."""
    job_id = client.convert("lakes.geojson", lakes(), outputFormat="Csv")["jobId"]
    stranger = new_client("free").key.api_key
    for endpoint in OF_JOBS:
        for value in (job_id, str(uuid7(utc_now()))):
            response = send(server, endpoint, stranger, value=value)
            assert response.status_code == HTTPStatus.NOT_FOUND
            assert response.json()["detail"] == f"This account has no job {value}."
    job = client.get(f"/api/geo/convert/jobs/{job_id}/status").json()
    assert (job["status"], "downloadUrl" in job) == ("Completed", True)


@pytest.mark.parametrize("path", sorted({endpoint.path for endpoint in ENDPOINTS} - PRIVATE))
def test_no_path_has_other_methods_than_those_of_the_table(server: Server, client: Client, path: str) -> None:
    """With a valid key, every other method is 405."""
    served = {endpoint.method for endpoint in ENDPOINTS if endpoint.path == path}
    served |= {"HEAD"} if "GET" in served else set()
    address = re.sub(r"\{\w+\}", "x", path)
    for method in sorted(METHODS - served):
        response = httpx.request(method, server.url + address, headers={"X-API-Key": client.key.api_key})
        assert response.status_code == HTTPStatus.METHOD_NOT_ALLOWED, method
