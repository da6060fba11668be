"""Two servers behind a load balancer are restarted in turn under load, and no client notices (docs/operating.md)."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from service.accounts.administration import Terms
from tests.support.balancer import Balancer, running_balancer
from tests.support.data import lakes, lengthy
from tests.support.load import Load
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Server, create_account, running_server

CLIENTS = 4
PAUSE_SECONDS = 0.3
"""Short beside a restart, which thus meets requests at every stage, and long beside a conversion: cores are shared."""
SETTINGS = {"GEOMILL_DRAIN_DELAY_SECONDS": "6", "GEOMILL_DRAIN_SECONDS": "200"}
"""The delay is many probes of the load balancer, which on a busy host are slow."""
FILE = "/api/geo/convert/file"


class Conversions(Load):
    """Clients that convert over kept connections with little pause, and record every failure."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(CLIENTS)
        self.jobs: list[str] = []
        self.failures: list[str] = []
        self._client = {"base_url": url, "headers": {"X-API-Key": key}, "timeout": PATIENCE_SECONDS}
        self._big = lengthy(1_500)

    def run(self, number: int) -> None:
        """Convert until stopped."""
        choose = random.Random(number)
        with httpx.Client(**self._client) as client:  # type: ignore[arg-type]  # settings of several types
            while not self.over.wait(PAUSE_SECONDS):
                try:
                    self._convert(client, choose.choice([lakes(), lakes(), self._big]))
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))

    def _convert(self, client: httpx.Client, content: bytes) -> None:
        response = client.post(FILE, files={"file": ("a.geojson", content)}, data={"outputFormat": "Csv"})
        answer = response.json()
        if response.status_code != httpx.codes.OK or not answer["success"]:
            self.failures.append(response.text)
        else:
            self.jobs.append(answer["jobId"])


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    """A load balancer without servers."""
    with running_balancer() as running:
        yield running


def test_a_rolling_restart_loses_no_request(tmp_path: Path, database_url: str, balancer: Balancer) -> None:
    """Every request gets its result, from an old server or a new one."""
    with ExitStack() as stack:

        def start() -> Server:
            server = stack.enter_context(running_server(tmp_path, database_url, SETTINGS))
            balancer.add(server.url)
            wait_until(lambda: balancer.is_ready(server.url))
            return server

        old = [start(), start()]
        client = stack.enter_context(create_account(old[0], Terms(plan="business", plan_owner="organization")))
        with Conversions(balancer.url, client.key.api_key) as load:
            for server in old:
                start()
                _wait_for_more(load)
                assert server.stop() == 0
                balancer.remove(server.url)
            _wait_for_more(load)
        assert load.failures == []
        with httpx.Client(base_url=balancer.url, headers=dict(client.headers), timeout=PATIENCE_SECONDS) as again:
            for job_id in load.jobs[:: max(1, len(load.jobs) // 20)]:
                job = again.get(f"/api/geo/convert/jobs/{job_id}/status").json()
                assert again.get(job["downloadUrl"]).is_success, job


def _wait_for_more(load: Conversions) -> None:
    enough = len(load.jobs) + 10
    wait_until(lambda: len(load.jobs) >= enough)
