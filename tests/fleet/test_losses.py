"""Whichever process dies or loses its data, promised jobs end and are charged once."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.fleet.site import Site
from tests.support.data import lakes
from tests.support.patience import wait_until
from tests.support.server import Client

pytestmark = pytest.mark.xdist_group("fleet")

ASYNC = {"Prefer": "respond-async"}
MANY = 6


def promise(client: Client) -> list[str]:
    """Submit conversions that are promised with 202; return the job ids."""
    return [client.convert("a.geojson", lakes(), outputFormat="csv", headers=ASYNC)["jobId"] for _ in range(MANY)]


def assert_each_ended_once(fleet: Site, jobs: list[str]) -> None:
    """Every job completes, is charged once and has its object; nothing else remains."""
    wait_until(lambda: len(fleet.rows("SELECT FROM job WHERE id = ANY($1) AND completed_at IS NOT NULL", jobs)) == MANY)
    states = fleet.rows("SELECT status FROM job WHERE id = ANY($1)", jobs)
    assert [row["status"] for row in states] == ["Completed"] * MANY
    assert len(fleet.rows("SELECT FROM ledger WHERE job_id = ANY($1)", jobs)) == MANY
    wait_until(fleet.is_clean)


def test_jobs_of_a_killed_worker_run_again_elsewhere(fleet: Site) -> None:
    """A worker is killed with jobs in progress; the other one takes them over in new attempts."""
    with fleet.client() as client:
        with fleet.frozen_workers():
            jobs = promise(client)
        wait_until(lambda: fleet.rows("SELECT FROM job WHERE id = ANY($1) AND worker_id IS NOT NULL", jobs))
        fleet.workers[0].process.kill()
        assert_each_ended_once(fleet, jobs)


def test_promised_jobs_survive_their_gateway(fleet: Site) -> None:
    """The gateway is killed as soon as it has promised them, before any worker has them."""
    with fleet.client() as client, fleet.frozen_workers():
        jobs = promise(client)
        stored = fleet.rows("SELECT input_key FROM job WHERE id = ANY($1) AND handover IS NOT NULL", jobs)
        assert {row["input_key"] for row in stored} <= fleet.stored()
        assert len(stored) == MANY
        fleet.gateway.process.kill()
        fleet.gateway.process.wait()
    assert_each_ended_once(fleet, jobs)


def test_a_queue_that_has_lost_its_data_is_filled_again(fleet: Site) -> None:
    """Promised jobs, and one with a waiting client; meanwhile new ones get 503 and the readiness probe says why."""
    with fleet.client() as client, ThreadPoolExecutor() as threads:
        with fleet.frozen_workers():
            waiting = threads.submit(client.convert, "waits.geojson", lakes(), outputFormat="csv")
            wait_until(lambda: fleet.rows("SELECT FROM job WHERE original_file_name = 'waits.geojson'"))
            jobs = promise(client)
            fleet.nats.kill()
            fleet.nats.lose_data()
            wait_until(lambda: fleet.readiness()["checks"]["queue"] != "ok")
            refused = client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())})
            assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
            assert int(refused.headers["Retry-After"]) > 0
            fleet.nats.start()
        assert_each_ended_once(fleet, jobs)
        assert waiting.result()["success"] is True
        wait_until(lambda: fleet.readiness()["ready"])


def test_a_worker_that_wakes_up_late_harms_nothing(fleet: Site) -> None:
    """It is suspended with jobs for longer than its lease; what it does afterwards changes nothing."""
    with fleet.client() as client:
        with fleet.frozen_workers():
            jobs = promise(client)
        wait_until(lambda: fleet.rows("SELECT FROM job WHERE id = ANY($1) AND worker_id IS NOT NULL", jobs))
        with fleet.frozen(fleet.workers[0]):
            assert_each_ended_once(fleet, jobs)
        assert_each_ended_once(fleet, jobs)


def test_a_worker_that_stops_gives_back_what_it_has_not_begun(fleet: Site) -> None:
    """The other one runs them, long before a lease ends, and nothing fails."""
    with fleet.client() as client:
        with fleet.frozen_workers():
            jobs = promise(client)
        assert fleet.workers[1].stop() == 0
        assert_each_ended_once(fleet, jobs)
