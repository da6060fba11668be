"""A server that stops announces it, then closes its port, and ends what does not finish in time (docs/operating.md)."""

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from service.accounts.administration import Terms
from service.usecases.detect_format import UNPACKED
from tests.support.converters import at_a_standstill
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.large_files import crafted_gpx
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.server import Client, Server, create_account, running_server

FILE = "/api/geo/convert/file"
TEAM = Terms(plan="team", plan_owner="organization")


def wait_for_event(server: Server, name: str) -> None:
    """Wait until the log contains the event."""
    assert any(server.events(name) for _ in polls())


def wait_until_closed(server: Server) -> None:
    """Wait until the public port is closed; a connection that the system accepted just before is reset."""
    with pytest.raises((httpx.ConnectError, httpx.ReadError)):
        _ask_for_ever(server)


def _ask_for_ever(server: Server) -> None:
    while True:
        httpx.get(f"{server.url}/api/geo/convert/jobs")
        time.sleep(0.02)


def test_readiness_falls_while_work_is_still_taken(tmp_path: Path, database_url: str) -> None:
    """For as long as a load balancer needs to notice; every response asks its client to close the connection."""
    settings = {"GEOMILL_DRAIN_DELAY_SECONDS": "600"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        assert httpx.get(f"{server.url}/readyz").is_success
        assert "connection" not in client.get("/api/geo/convert/jobs").headers
        server.process.send_signal(signal.SIGTERM)
        wait_for_event(server, "server.stopping")
        ready = httpx.get(f"{server.url}/readyz")
        assert (ready.status_code, ready.json()["checks"]["intake"]) == (503, "draining")
        response = client.post(FILE, files={"file": ("a.geojson", lakes())})
        assert response.json()["success"]
        assert response.headers["connection"] == "close"
        assert httpx.get(f"{server.url}/healthz").is_success
        server.process.kill()


def test_operators_can_watch_the_last_jobs_end(tmp_path: Path, database_url: str) -> None:
    """The private port answers when the door for clients is closed."""
    settings = {"GEOMILL_PRIVATE_PORT": "0", "GEOMILL_DRAIN_SECONDS": "600"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        private = str(server.events("server.ready")[0]["private_url"])
        with at_a_standstill(server):
            accepted = client.post(
                FILE, files={"file": ("a.geojson", lakes())}, headers={"Prefer": "respond-async", "Connection": "close"}
            )
            assert accepted.status_code == 202
            server.process.send_signal(signal.SIGTERM)
            wait_for_event(server, "server.stopping")
            wait_until_closed(server)
            assert httpx.get(f"{private}/readyz").status_code == 503
        assert server.process.wait(PATIENCE_SECONDS) == 0
        assert len(server.events("job.completed")) == 1


def test_what_does_not_end_in_time_is_ended_and_told(tmp_path: Path, database_url: str) -> None:
    """The waiting client learns that the service is restarting; the job is Failed and free."""
    settings = {"GEOMILL_DRAIN_SECONDS": "0.2", "GEOMILL_CONVERTERS": "1"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        answers: list[httpx.Response] = []

        def send() -> None:
            answers.append(client.post(FILE, files={"file": (NAME, endless_file())}, data={"outputFormat": "Csv"}))

        sender = threading.Thread(target=send)
        sender.start()
        wait_for_event(server, "job.admitted")
        assert server.stop(signal.SIGTERM) == 0
        sender.join()
        assert (answers[0].status_code, answers[0].json()["code"]) == (503, "overloaded")
        assert server.work_files() == []
    with running_server(tmp_path, database_url) as server:
        headers = {"X-API-Key": client.key.api_key}
        [job] = httpx.get(f"{server.url}/api/geo/convert/jobs", headers=headers).json()["jobs"]
        assert job["jobId"] in answers[0].json()["detail"]
        assert job["status"] == "Failed"
        assert "Nothing was counted" in job["errorMessage"]


def test_a_crafted_file_does_not_hold_up_the_end(tmp_path: Path, database_url: str) -> None:
    """The service was not gone before it had looked through all of it, which may take minutes."""
    settings = {"GEOMILL_DRAIN_SECONDS": "0.2", "GEOMILL_CONVERSION_SECONDS": "1000000"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        sender = threading.Thread(target=_send_crafted, args=(client,))
        sender.start()
        assert any(list(server.data_dir.rglob(UNPACKED)) for _ in polls())
        assert server.stop(signal.SIGTERM) == 0
        sender.join()
        assert server.work_files() == []


def _send_crafted(client: Client) -> None:
    with suppress(httpx.HTTPError):
        client.post("/api/geo/convert/analyze", files={"file": ("a.gpx.gz", crafted_gpx())})


def test_idle_connections_do_not_hold_up_the_end(tmp_path: Path, database_url: str) -> None:
    """They are closed with the port."""
    with running_server(tmp_path, database_url) as server:
        address = urlsplit(server.url)
        with httpx.Client(base_url=f"http://{address.netloc}") as client:
            assert client.get("/healthz").is_success
            assert server.stop(signal.SIGTERM) == 0
