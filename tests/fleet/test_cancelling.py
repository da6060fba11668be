"""A job is cancelled through any gateway: the client that waits at another one hears of it, and its worker stops."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from service.usecases.delete_job import CANCELLED
from tests.fleet.site import GATEWAY, Site
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import wait_until
from tests.support.server import Client, Server

pytestmark = pytest.mark.xdist_group("fleet")

_STATUS = "SELECT id::text, status FROM job WHERE account_id = $1"


@pytest.fixture(scope="module")
def other(shared_fleet: Site) -> Iterator[Server]:
    """A second gateway."""
    gateway = shared_fleet.start("other-gateway", GATEWAY)
    yield gateway
    gateway.stop()


@pytest.mark.parametrize("status", ["Pending", "Processing"])
def test_a_job_is_cancelled_through_another_gateway(fleet: Site, other: Server, status: str) -> None:
    """At no charge, whether it waits in the queue or a worker is converting it."""
    with fleet.client("business") as client, Client(other, client.account, client.key) as elsewhere:
        account = client.account.account_id
        with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
            if status == "Pending":
                stack.enter_context(fleet.frozen_workers())
            waiting = threads.submit(client.convert, NAME, endless_file(), outputFormat="csv")
            wait_until(lambda: [job["status"] for job in fleet.rows(_STATUS, account)] == [status] and fleet.messages())
            if status == "Processing":
                stack.enter_context(fleet.frozen_workers())
            [job] = fleet.rows(_STATUS, account)
            assert elsewhere.get(f"/api/geo/convert/jobs/{job['id']}/status").json()["status"] == status
            elsewhere.delete(f"/api/geo/convert/jobs/{job['id']}").raise_for_status()
            answer = waiting.result()
        assert (answer["jobId"], answer["success"], answer["error"]) == (job["id"], False, CANCELLED)
        assert elsewhere.wait_for(job["id"])["errorMessage"] == CANCELLED
        assert client.usage() == (0, 0)
        wait_until(lambda: not fleet.messages())
        for worker in fleet.workers:
            assert worker.wait_until_idle() == []
        assert client.convert("b.geojson", lakes(), outputFormat="csv")["success"]
    assert fleet.rows("SELECT FROM ledger WHERE job_id::text = $1", job["id"]) == []
    wait_until(fleet.is_clean)
