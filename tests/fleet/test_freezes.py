"""A worker that is frozen at any step for longer than its lease: another one ends its job, and that end stands."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fleet.freezing import STEPS, WHEN, arm, program
from tests.fleet.site import Site, wait_until
from tests.support.data import lakes
from tests.support.server import Server

pytestmark = pytest.mark.xdist_group("fleet")

ASYNC = {"Prefer": "respond-async"}
_JOB = "SELECT status, completed_at, expires_at, attempt, object_key, worker_id FROM job WHERE id = $1"


@pytest.fixture(scope="module")
def freezer(shared_fleet: Site) -> Iterator[tuple[Server, Path]]:
    """A third worker, which stops itself, and the directory that says where."""
    (directory := shared_fleet.directory / "freezes").mkdir()
    shared_fleet.revive()
    worker = shared_fleet.start("freezer", ("worker",), program=program(directory))
    yield worker, directory
    worker.process.send_signal(signal.SIGCONT)
    worker.stop()


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("step", STEPS)
def test_the_end_of_another_worker_stands(fleet: Site, freezer: tuple[Server, Path], step: str, when: str) -> None:
    """It is charged once and has its object, whatever the frozen worker does when it wakes up."""
    frozen, directory = freezer
    worker = psutil.Process(frozen.process.pid)
    arm(directory, step, when)
    with fleet.client() as client:
        with fleet.frozen_workers():
            accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers=ASYNC)["jobId"]
            wait_until(lambda: worker.status() == psutil.STATUS_STOPPED)
        wait_until(lambda: fleet.rows("SELECT FROM job WHERE id = $1 AND completed_at IS NOT NULL", accepted))
        wait_until(lambda: not fleet.messages())
        [ended] = fleet.rows(_JOB, accepted)
        worker.send_signal(signal.SIGCONT)
        assert frozen.wait_until_idle() == []
        wait_until(fleet.is_clean)
        assert fleet.rows(_JOB, accepted) == [ended]
        assert ended["status"] == "Completed"
        assert len(fleet.rows("SELECT FROM ledger WHERE job_id = $1", accepted)) == 1
        assert ended["object_key"] in fleet.stored()
        assert client.download(client.wait_for(accepted))
