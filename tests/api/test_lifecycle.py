"""A server starts, stops and dies: every accepted job ends exactly once, and data persist (interface 3)."""

import http.client
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import anyio
import asyncpg
import httpx
import psutil
import pytest

from service.accounts.administration import Terms
from service.accounts.keys import new_key
from tests.support.converters import at_a_standstill
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.server import Client, Server, create_account, running_server

ASYNC = {"Prefer": "respond-async"}
TEAM = Terms(plan="team", plan_owner="organization")
PATIENT = f"""
import sys
from sandbox import selftest
from service.cli import main
selftest._STARTING_SECONDS = {PATIENCE_SECONDS}
sys.exit(main())
"""
"""The service, which otherwise opens without a fork server that is not there after half a minute, and uses it later."""


def children_of(server: Server) -> list[psutil.Process]:
    """Every process below the server, including its database's."""
    return psutil.Process(server.process.pid).children(recursive=True)


def accept(client: Client, name: str, content: bytes) -> str:
    """Submit a file without waiting for the result; return the job id."""
    files, data = {"file": (name, content)}, {"outputFormat": "Csv"}
    response = client.post("/api/geo/convert/file", files=files, data=data, headers=ASYNC)
    assert response.status_code == 202, response.text
    job_id: str = response.json()["jobId"]
    return job_id


def wait_for_status(client: Client, job_id: str, status: str) -> None:
    """Wait until the job has the status."""
    url = f"/api/geo/convert/jobs/{job_id}/status"
    assert any(client.get(url).json()["status"] == status for _ in polls())


def stored_objects(data_dir: Path) -> list[Path]:
    """The outputs in the file store."""
    return [path for path in (data_dir / "store" / "objects").rglob("*") if path.is_file()]


async def _expire_leases(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("UPDATE server SET heartbeat_at = heartbeat_at - interval '1 hour'")
    await connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stopping_server_finishes_what_it_has_accepted(
    tmp_path: Path, database_url: str, number: signal.Signals
) -> None:
    """A signal while a client waits: the client receives its result, then the process exits in order."""
    heeded = ("env", f"--default-signal={number.name}")  # unlike that of tests which run under `nohup`
    with (
        running_server(tmp_path, database_url, prefix=heeded) as server,
        create_account(server, TEAM) as client,
    ):
        answers: list[httpx.Response] = []

        def send() -> None:
            answers.append(client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())}))

        sender = threading.Thread(target=send)
        with at_a_standstill(server):
            sender.start()
            assert any(server.events("job.admitted") for _ in polls())
            server.process.send_signal(number)
            assert any(server.events("server.stopping") for _ in polls())
        assert server.process.wait(PATIENCE_SECONDS) == 0
        sender.join()
        assert answers[0].json()["success"] is True
        assert server.work_files() == []


def test_an_accepted_job_outlives_its_client(client: Client) -> None:
    """A client that disconnects after its upload finds the job completed (interface 3)."""
    request = httpx.Request("POST", "http://x", files={"file": ("a.geojson", lakes())})
    address = urlsplit(client.server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    headers = {"X-API-Key": client.key.api_key, "Content-Type": request.headers["Content-Type"]}
    with at_a_standstill(client.server):
        connection.request("POST", "/api/geo/convert/file", request.read(), headers)
        assert any(jobs := client.get("/api/geo/convert/jobs").json()["jobs"] for _ in polls())
        connection.close()
    assert client.wait_for(jobs[0]["jobId"])["status"] == "Completed"
    assert client.usage()[0] == 1


def test_jobs_of_a_killed_server_are_ended_by_the_next(tmp_path: Path, database_url: str) -> None:
    """Kill -9 with one job running and one waiting: both become Failed, nothing is counted, nothing is left on disk."""
    one = {"GEOMILL_CONVERTERS": "1"}
    with running_server(tmp_path, database_url, one) as server, create_account(server, TEAM) as client:
        jobs = [accept(client, NAME, endless_file()), accept(client, "a.geojson", lakes())]
        wait_for_status(client, jobs[0], "Processing")
        below = children_of(server)
        server.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECONDS)
    assert alive == []
    anyio.run(_expire_leases, database_url)
    with running_server(tmp_path, database_url) as server, Client(server, client.account, client.key) as again:
        ended = [again.wait_for(job_id) for job_id in jobs]
        assert [job["status"] for job in ended] == ["Failed", "Failed"]
        assert all("Nothing was counted" in job["errorMessage"] for job in ended)
        assert again.usage() == (0, 0)
        assert server.work_files() == []
        assert stored_objects(tmp_path) == []


def test_the_embedded_database_survives_what_happens_to_the_server(tmp_path: Path) -> None:
    """Accounts, jobs and outputs survive an orderly stop and a kill -9, and no process remains."""
    key = ""
    done: dict[str, str] = {}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        with running_server(tmp_path) as server:
            demo = json.loads((tmp_path / "demo.json").read_bytes())["apiKey"]
            assert key in {"", demo}
            key = demo
            headers = {"X-API-Key": key}
            if done:
                status = httpx.get(f"{server.url}/api/geo/convert/jobs/{done['jobId']}/status", headers=headers).json()
                assert httpx.get(status["downloadUrl"].replace("//localhost", "//127.0.0.1")).status_code == 200
            files = {"file": ("a.geojson", lakes())}
            done = httpx.post(f"{server.url}/api/geo/convert/file", files=files, headers=headers).json()
            assert done["success"]
            below = children_of(server)
            server.stop(number)
        _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECONDS)
        assert alive == []


def test_a_killed_database_is_back_without_a_restart(tmp_path: Path) -> None:
    """Kill -9 of PostgreSQL: 503 with Retry-After at first, then conversions as before."""
    with running_server(tmp_path) as server:
        headers = {"X-API-Key": json.loads((tmp_path / "demo.json").read_bytes())["apiKey"]}

        def convert() -> httpx.Response:
            files = {"file": ("a.geojson", lakes())}
            return httpx.post(f"{server.url}/api/geo/convert/file", files=files, headers=headers)

        assert convert().json()["success"]
        pid_file = next((tmp_path / "postgres").rglob("postmaster.pid"))
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while (response := convert()).status_code != 200 and time.monotonic() < give_up_at:
            assert response.status_code == 503, response.text
            assert "retry-after" in response.headers
            time.sleep(0.1)
        assert response.json()["success"]


def test_health_and_readiness_need_no_key(server: Server) -> None:
    """The server is alive, and every part is ready."""
    assert httpx.get(f"{server.url}/healthz").json() == {"status": "alive"}
    ready = httpx.get(f"{server.url}/readyz")
    assert ready.status_code == 200
    assert set(ready.json()["checks"].values()) == {"ok"}


def test_readiness_falls_while_no_converter_can_be_started(tmp_path: Path, database_url: str) -> None:
    """The process that starts converters dies; when it is replaced, readiness returns."""
    with running_server(tmp_path, database_url) as server:
        assert any(_sandbox(server, without_keeper=True) == (503, "not up") for _ in polls())
        assert any(_sandbox(server) == (200, "ok") for _ in polls())


def _sandbox(server: Server, *, without_keeper: bool = False) -> tuple[int, str]:
    """What readiness says; a keeper that has been killed may have been replaced before anybody looks."""
    for process in psutil.Process(server.process.pid).children() if without_keeper else ():
        with suppress(psutil.Error):
            if "sandbox.process.keeper" in process.cmdline():
                process.kill()
    response = httpx.get(f"{server.url}/readyz")
    return response.status_code, response.json()["checks"]["sandbox"]


def test_the_log_has_a_line_for_each_request_and_job_and_no_secret(tmp_path: Path, database_url: str) -> None:
    """No key, valid or not, no link signature and no host path, whatever is requested."""
    terms = Terms(plan="team", plan_owner="organization")
    with running_server(tmp_path, database_url) as server, create_account(server, terms) as client:
        link = client.convert("a.geojson", lakes())["downloadUrl"]
        wrong_key = new_key()
        asked = [
            client.convert("a.geojson", b"{", outputFormat="Csv")["error"],
            httpx.get(link).status_code,
            httpx.get(f"{link}0").status_code,
            client.get("/api/geo/pricing/tiers", headers={"X-API-Key": wrong_key}).status_code,
            client.get(f"/api/geo/convert/jobs?key={wrong_key}").status_code,
        ]
        assert asked[1:] == [200, 403, 401, 200]
        assert server.stop() == 0
        log = server.log.read_text(encoding="utf-8")
        for secret in (
            client.key.api_key,
            wrong_key,
            dict(parse_qsl(urlsplit(link).query))["signature"],
            str(tmp_path),
        ):
            assert secret not in log
        assert len(server.events("request.finished")) == 6
        assert len(server.events("job.completed") + server.events("job.failed")) == 2


@pytest.mark.timeout(900)  # it gets what all others leave of the cores
def test_a_service_of_low_priority_converts(tmp_path: Path, database_url: str) -> None:
    """Under `nice`, or with Nice= in a systemd unit, converters keep that priority, which they cannot raise."""

    def convert() -> tuple[str, bool]:
        os.setpriority(os.PRIO_PROCESS, 0, 11)  # one below that of converters; this thread's, and of what it executes
        started = running_server(tmp_path, database_url, program=("-c", PATIENT), ready_seconds=600)
        with started as server, create_account(server, TEAM) as client:
            [ready] = server.events("server.ready")
            return ready["launcher"], client.convert("a.geojson", lakes())["success"]

    with ThreadPoolExecutor(max_workers=1) as own_thread:
        assert own_thread.submit(convert).result() == ("fork server", True)
