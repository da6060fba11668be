"""A worker that is frozen at one step for longer than its lease, while another one ends its job."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.fleet.freezing import arm, program
from tests.fleet.site import Site
from tests.support.data import lakes
from tests.support.patience import wait_until
from tests.support.server import Server

ASYNC = {"Prefer": "respond-async"}
_JOB = "SELECT status, completed_at, expires_at, attempt, object_key, worker_id FROM job WHERE id = $1"


class Freezer:
    """A worker beside those of the site, which stops itself where it is told to."""

    def __init__(self, site: Site, server: Server, directory: Path) -> None:
        self._site = site
        self._server = server
        self._directory = directory
        self._process = psutil.Process(server.process.pid)

    def freeze(self, step: str, when: str) -> None:
        """Freeze it with a job; check that the end that another worker makes of the job stands.

        The job is charged once and has its object, whatever the frozen worker does when it wakes up.
        """
        site = self._site
        arm(self._directory, step, when)
        with site.client("business") as client:
            with site.frozen_workers():
                accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers=ASYNC)["jobId"]
                wait_until(lambda: self._process.status() == psutil.STATUS_STOPPED)
            wait_until(lambda: site.rows("SELECT FROM job WHERE id = $1 AND completed_at IS NOT NULL", accepted))
            wait_until(lambda: not site.messages())
            [ended] = site.rows(_JOB, accepted)
            self._process.send_signal(signal.SIGCONT)
            assert self._server.wait_until_idle() == []
            wait_until(site.is_clean)
            assert site.rows(_JOB, accepted) == [ended]
            assert ended["status"] == "Completed"
            assert len(site.rows("SELECT FROM ledger WHERE job_id = $1", accepted)) == 1
            assert ended["object_key"] in site.stored()
            assert client.download(client.wait_for(accepted))


@contextmanager
def open_freezer(site: Site) -> Iterator[Freezer]:
    """Start such a worker, and stop it in the end."""
    (directory := site.directory / "freezes").mkdir()
    server = site.start("freezer", ("worker",), program=program(directory))
    yield Freezer(site, server, directory)
    server.process.send_signal(signal.SIGCONT)
    server.stop()
