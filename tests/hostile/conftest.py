"""The service with low limits, an account on it, and bait around it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.accounts.administration import Terms
from tests.database import TestServer
from tests.hostile.bait import Bait, laid_out
from tests.support.data import lakes
from tests.support.server import Client, Server, create_account, running_server

LOW_LIMITS = {
    "GEOMILL_CONVERSION_SECONDS": "4",
    "GEOMILL_CONVERSION_MEMORY_BYTES": str(1 << 30),
    "GEOMILL_CONVERTERS": "2",
}
BELOW = Path("a", "b", "c", "data")
"""Where the service has its data in a directory of its own: what an attack writes above them is in there too."""


@pytest.fixture(scope="session")
def hardened(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service over HTTP in a separate process, with limits so low that attacks on them end soon."""
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("hardened") / BELOW, dsn, LOW_LIMITS) as running:
        yield running


@pytest.fixture(scope="session")
def attacker(hardened: Server) -> Iterator[Client]:
    """A client with a large allowance."""
    with create_account(hardened, Terms(plan="business", plan_owner="organization")) as client:
        yield client


@pytest.fixture(scope="session")
def bait() -> Iterator[Bait]:
    """The targets of attacks."""
    with laid_out() as laid:
        yield laid


@pytest.fixture(scope="module")
def still_converts(attacker: Client) -> Iterator[None]:
    """After all files of a module the service converts an ordinary one."""
    yield
    assert attacker.convert("lakes.geojson", lakes(), outputFormat="Csv")["success"]


@pytest.fixture
def unharmed(hardened: Server, bait: Bait, still_converts: None) -> Iterator[None]:  # noqa: ARG001 -- looks at its end
    """After each test the bait is untouched, nothing remains on disk, and the service is ready."""
    yield
    assert hardened.wait_until_idle() == []
    assert bait.touched() == []
    assert _strays(hardened.data_dir, bait) == []
    assert httpx.get(f"{hardened.url}/readyz").is_success


def _strays(data_dir: Path, bait: Bait) -> list[Path]:
    """Files near the service with names that only an attack creates."""
    return list(data_dir.parents[len(BELOW.parents) - 1].rglob(f"*{bait.marker}*"))
