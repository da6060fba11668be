"""A file whose workers die runs alone, and fails free in the end; other files are neither blamed nor held up."""

import signal
from datetime import timedelta
from functools import partial

import pytest

from service.jobs.leases import MOST_DEATHS, POISON
from tests.fleet.site import LEASE_SECONDS, WORKER, Site
from tests.fleet.test_losses import promise
from tests.support.converters import signal_converters
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import wait_until
from tests.support.server import Client, Server

pytestmark = pytest.mark.xdist_group("fleet")

ASYNC = {"Prefer": "respond-async"}
_BEGUN = "SELECT FROM job WHERE id = $1 AND status = 'Processing' AND deaths = $2"
_HELD = """
SELECT FROM job JOIN server ON server.id = worker_id WHERE job.id = $1 AND heartbeat_at >= now() - $2::interval
"""
_OPEN = "SELECT FROM job WHERE id = $1 AND completed_at IS NULL"
_RUNNING = "SELECT FROM job WHERE id = $1 AND status = 'Processing'"
_TOGETHER = "SELECT FROM job WHERE completed_at IS NULL AND worker_id = (SELECT worker_id FROM job WHERE id = $1)"
_LEASE = timedelta(seconds=LEASE_SECONDS)


def promised(client: Client, content: bytes, name: str = "a.geojson") -> str:
    """Submit a conversion that is promised with 202; return the job's id."""
    return str(client.convert(name, content, outputFormat="csv", headers=ASYNC)["jobId"])


def killed(server: Server) -> Server:
    """Kill a process."""
    server.process.kill()
    server.process.wait()
    return server


def test_a_file_that_ends_its_workers(fleet: Site) -> None:
    """What waited with it is not blamed, and what comes while it runs alone is left to the other worker."""
    first, other = fleet.workers[0], killed(fleet.workers[1])
    with fleet.client("business") as client:
        poison, waited = promised(client, endless_file(), NAME), promised(client, lakes())
        blamed = 0  # as long as the poison ran, a small file may have had a turn: it runs then, and is in doubt
        for died in range(MOST_DEATHS - 1):
            wait_until(partial(fleet.rows, _BEGUN, poison, died))
            directory = killed(first).data_dir.name
            wait_until(lambda: not fleet.rows(_HELD, poison, _LEASE))  # what it had sent to the database is done then
            blamed += len(fleet.rows(_RUNNING, waited))
            first = fleet.workers[0] = fleet.start(directory, WORKER)
        wait_until(partial(fleet.rows, _BEGUN, poison, MOST_DEATHS - 1))
        beside = fleet.rows(_OPEN, waited)
        wait_until(lambda: len(fleet.rows(_TOGETHER, poison)) == 1)  # what was claimed with it has been returned,
        assert fleet.rows(_OPEN, waited) == beside  # and not converted
        later = promise(client)
        with fleet.frozen(first):
            signal_converters(signal.SIGSTOP, first.process.pid)  # or it would keep a core busy until the lease ends
            assert fleet.rows(_BEGUN, poison, MOST_DEATHS - 1)
            fleet.workers[1] = fleet.start(other.data_dir.name, WORKER)
            wait_until(lambda: not fleet.rows("SELECT FROM job WHERE id = ANY($1) AND completed_at IS NULL", later))
            first.process.kill()
        assert client.wait_for(poison)["errorMessage"] == POISON
        assert client.wait_for(waited)["status"] == "Completed"
    rows = fleet.rows("SELECT status, attempt, deaths FROM job WHERE id = ANY($1)", later)
    assert rows == [{"status": "Completed", "attempt": 2, "deaths": 0}] * len(later)
    assert fleet.rows("SELECT deaths FROM job WHERE id = $1", waited) == [{"deaths": blamed}]
    assert fleet.rows("SELECT FROM ledger WHERE job_id = $1", poison) == []
    wait_until(fleet.is_clean)
