"""Hundreds of concurrent conversions on one allowance, across two processes; refused clients retry."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

import anyio
import asyncpg
import httpx
import pytest

from service.accounts.administration import Terms
from service.db.pool import open_pool
from service.metering.audit import audit_books
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Client, Server, create_account, running_server

PARALLEL = 500
"""So many are an overload, of which those that come again take turns."""
SIDE_BY_SIDE = 100
"""So many are admitted side by side."""
POOLS = 20
LEFT = 10
IMPATIENCE_SECONDS = 4.0
REFUSED = {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}

pytestmark = pytest.mark.xdist_group("concurrency")  # one server for all


@pytest.fixture(scope="module")
def server(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two serving processes behind one port."""
    dsn = postgres.create_database(postgres.migrated_template())
    settings = {"GEOMILL_PROCESSES": "2", "GEOMILL_CONVERTERS": "8"}  # many converters, many places before them
    with running_server(tmp_path_factory.mktemp("concurrency"), dsn, settings) as running:
        yield running


async def _send_all(server: Server, key: str, requests: int) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)

    async def send(client: httpx.AsyncClient) -> None:
        """Retry while the server refuses, since hundreds of clients are an overload; every request gets a response.

        This process, with all clients in one loop, may come too late with one: that is an answer too.
        """
        url, files = f"{server.url}/api/geo/convert/file", {"file": ("a.geojson", lakes())}
        while True:
            response = await client.post(url, files=files, data={"outputFormat": "Csv"})
            if response.status_code not in REFUSED:
                break
            await anyio.sleep(IMPATIENCE_SECONDS)
        assert response.status_code == HTTPStatus.OK, response.text
        answers.append(response.json())

    async with AsyncExitStack() as stack:
        clients = [  # a pool looks through all of its connections for each request
            await stack.enter_async_context(
                httpx.AsyncClient(headers={"X-API-Key": key}, timeout=PATIENCE_SECONDS, limits=limits)
            )
            for _ in range(POOLS)
        ]
        tasks = await stack.enter_async_context(anyio.create_task_group())
        for number in range(requests):
            tasks.start_soon(send, clients[number % POOLS])
    return answers


async def _arrange(dsn: str, client: Client, conversions: int, size_bytes: int) -> None:
    """Record usage for this month in the account."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO usage SELECT a.payer_id, date_trunc('month', now() AT TIME ZONE 'UTC')::date, $2, $3,"
        " n.monthly_conversions, n.monthly_data_bytes"
        " FROM account a JOIN payer p ON p.id = a.payer_id JOIN plan n ON n.id = p.plan_id WHERE a.id = $1",
        client.account.account_id,
        conversions,
        size_bytes,
    )
    await connection.close()


def _outcomes(answers: list[dict[str, Any]]) -> Counter[tuple[bool, str | None]]:
    return Counter((answer["success"], answer["limit"]) for answer in answers)


async def _audit(dsn: str) -> list[str]:
    async with open_pool(dsn) as database:
        return await audit_books(database)


def test_exactly_the_conversions_that_are_left_succeed(server: Server) -> None:
    """Ten are left of five hundred: ten succeed, the rest are refused by `conversions`, nothing else counts."""
    with create_account(server, Terms(plan="free")) as client:
        answers = anyio.run(_send_all, server, client.key.api_key, PARALLEL)
        assert _outcomes(answers) == {(True, None): LEFT, (False, "conversions"): PARALLEL - LEFT}
        assert client.usage() == (LEFT, LEFT * len(lakes()))
    assert anyio.run(_audit, server.dsn) == []


def test_exactly_the_files_that_a_wallet_covers_are_converted(server: Server) -> None:
    """Sixty-five cents cover ten files at six cents: ten succeed, the rest are refused by `wallet`."""
    with create_account(server, Terms(wallet_cents=6 * LEFT + 5)) as client:
        answers = anyio.run(_send_all, server, client.key.api_key, SIDE_BY_SIDE)
        assert _outcomes(answers) == {(True, None): LEFT, (False, "wallet"): SIDE_BY_SIDE - LEFT}
        assert client.batch(("x.unknown", b"x"))["newWalletBalanceCents"] == 5
    assert anyio.run(_audit, server.dsn) == []


def test_exactly_the_bytes_that_are_left_are_converted(server: Server) -> None:
    """Ten files of this size fit, and ten succeed. This test comes last, since its usage is not in the ledger."""
    with create_account(server, Terms(plan="personal")) as client:
        left = LEFT * len(lakes()) + len(lakes()) - 1
        anyio.run(_arrange, server.dsn, client, 0, 2**30 - left)
        answers = anyio.run(_send_all, server, client.key.api_key, SIDE_BY_SIDE)
        assert _outcomes(answers) == {(True, None): LEFT, (False, "data"): SIDE_BY_SIDE - LEFT}
