"""A real server for the whole test run, and a fresh account for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.accounts.administration import Terms
from service.metering.plans import BY_ID
from tests.database import TestServer
from tests.support.server import Client, Server, create_account, running_server


@pytest.fixture(scope="session")
def server(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service over HTTP, in a separate process, on a fresh database."""
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("server"), dsn) as running:
        yield running


NewClient = Callable[..., Client]


@pytest.fixture
def new_client(server: Server) -> Iterator[NewClient]:
    """Creates clients with fresh accounts: `new_client("free")`, `new_client(wallet_cents=10)`."""
    clients: list[Client] = []

    def make(plan: str | None = None, *, wallet_cents: int | None = None, organization: str | None = None) -> Client:
        terms = Terms(
            plan=plan,
            plan_owner=BY_ID[plan].owner if plan else "user",
            organization=organization,
            wallet_cents=wallet_cents,
        )
        clients.append(create_account(server, terms))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(new_client: NewClient) -> Client:
    """A client on plan team."""
    return new_client("team")


@pytest.fixture
def data_dir(server: Server) -> Path:
    """The server's data directory."""
    return server.data_dir
