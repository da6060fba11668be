"""What clients see while the primary of the database is lost and its standby takes over (docs/operating.md).

`just failover-test` runs it; it is no part of the suite, because it takes a minute. It prints its figures.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import anyio
import httpx
import pytest

from service.accounts.administration import Terms
from service.db.connection import open_connection
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.load import Load
from tests.support.patience import polls
from tests.support.replication import Pair, running_pair
from tests.support.server import create_account, running_server

CLIENTS = 8
PAUSE_SECONDS = 0.25
"""How long a client waits after a refusal; most should wait for as long as `Retry-After` says."""
UNTIL_PROMOTED_SECONDS = 3.0
SETTINGS = {"GEOMILL_LEASE_SECONDS": "5"}
JOBS = "/api/geo/convert/jobs"
FILE = "/api/geo/convert/file"
PATIENCE_SECONDS = 180.0


class Conversions(Load):
    """Clients that convert one file after another, and one that reads its jobs; they record what they were told."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(CLIENTS)
        self.told: dict[str, float] = {}
        self.failed: list[str] = []
        self.refused: list[httpx.Response] = []
        self.broken: list[str] = []
        self._client = {"base_url": url, "headers": {"X-API-Key": key}, "timeout": PATIENCE_SECONDS}

    def run(self, number: int) -> None:
        """Convert until stopped."""
        with httpx.Client(**self._client) as client:  # type: ignore[arg-type]  # settings of several types
            while not self.over.is_set():
                try:
                    if number:
                        self._note(client.post(FILE, files={"file": ("a.geojson", lakes())}))
                    else:
                        self._look(client)
                except httpx.HTTPError as error:
                    self.broken.append(repr(error))

    def _look(self, client: httpx.Client) -> None:
        response = client.get(JOBS)
        if response.status_code != httpx.codes.OK:
            self.refused.append(response)
        self.over.wait(PAUSE_SECONDS)

    def _note(self, response: httpx.Response) -> None:
        if response.status_code != httpx.codes.OK:
            self.refused.append(response)
            self.over.wait(PAUSE_SECONDS)
        elif response.json()["success"]:
            self.told[response.json()["jobId"]] = time.monotonic()
        else:
            self.failed.append(response.json()["error"])

    def wait_for_more(self, count: int) -> None:
        """Wait until this many more conversions have succeeded."""
        enough = len(self.told) + count
        assert any(len(self.told) >= enough for _ in polls()), (self.refused[-3:], self.broken[-3:])


def lose_power(pair: Pair) -> None:
    """The primary's host loses power, and the network reports it as unreachable."""
    pair.primary.kill()


def lose_network(pair: Pair) -> None:
    """The primary's host neither accepts nor refuses packets any more."""
    pair.primary.freeze()


def lag_and_lose_power(pair: Pair) -> None:
    """The primary's host loses power after the standby has received nothing for a second."""
    pair.primary.freeze_sender()
    time.sleep(1)
    pair.primary.kill()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("synchronous", "lose"),
    [(True, lose_power), (True, lose_network), (True, lag_and_lose_power), (False, lag_and_lose_power)],
)
def test_failover(tmp_path: Path, synchronous: bool, lose: Callable[[Pair], None]) -> None:
    """With a synchronous standby, nothing that a client was promised is lost, and nothing is charged twice."""
    with running_pair(synchronous=synchronous) as pair:
        with running_server(tmp_path, pair.dsn, SETTINGS) as server:
            client = create_account(server, Terms(plan="business", plan_owner="organization"))
            with Conversions(server.url, client.key.api_key) as load:
                load.wait_for_more(50)
                lose(pair)
                time.sleep(UNTIL_PROMOTED_SECONDS)
                pair.standby.promote()
                promoted = time.monotonic()
                load.wait_for_more(50)
            charged = _settled_charges(pair.dsn)
        audit = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": pair.dsn})("audit")
    missing = load.told.keys() - charged.keys()
    answered = sorted(load.told.values())
    pause, resumed = max((later - earlier, later) for earlier, later in pairwise(answered))
    report(
        f"{'synchronous' if synchronous else 'asynchronous'} standby, {lose.__name__}: {len(load.told)} conversions, "
        f"none for {pause:.1f} s, the next {resumed - promoted:.1f} s after the promotion; "
        f"{len(load.refused)} responses 503, {len(load.failed)} failed jobs, {len(load.broken)} broken connections; "
        f"{len(missing)} conversions lost with their charge"
    )
    for text, count in Counter(load.failed).items():
        report(f"    {count} x {text}")
    assert load.broken == []
    assert {(one.status_code, "retry-after" in one.headers) for one in load.refused} <= {(503, True)}, load.refused
    assert set(charged.values()) == {1}
    if synchronous:
        assert missing == set()
        assert audit.returncode == 0, audit.stdout


def report(line: str) -> None:
    """Print one line of the figures that the recipe reports."""
    sys.stdout.write(f"\n{line}")


def _settled_charges(dsn: str) -> Counter[str]:
    """How often each job was charged, once no job is open."""

    async def fetch() -> Counter[str]:
        async with open_connection(dsn) as connection:
            while await connection.fetchval("SELECT count(*) FROM job WHERE completed_at IS NULL"):  # noqa: ASYNC110 -- nothing tells us
                await anyio.sleep(0.2)
            return Counter(str(row["job_id"]) for row in await connection.fetch("SELECT job_id FROM ledger"))

    return anyio.run(fetch)
