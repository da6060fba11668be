"""Kill -9 of any process at any moment under load: nothing is lost, charged twice or left behind (interface 3).

`CRASHES` in the environment says how many kills there are; `just crash-test` takes a hundred.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.data import collection, feature, lakes, point
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.server import Server, running_server

CRASHES = int(os.environ.get("CRASHES", "5"))
CLIENTS = 6
LEASE = {"GEOMILL_LEASE_SECONDS": "3", "GEOMILL_DRAIN_SECONDS": "10"}
AWAY_SECONDS = 0.2
"""How long a client waits after a connection that failed, so that it does not slow down the next start."""


class Load:
    """Clients that convert all the time, whatever happens to the server, and record what they were promised."""

    def __init__(self, key: str) -> None:
        self.url = ""
        self.promised: list[str] = []
        self.completed: list[str] = []
        self._key = key
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]
        self._big = collection(*(feature(point(n % 90, 1), n=n) for n in range(3000)))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        choose = random.Random(number)
        with httpx.Client(headers={"X-API-Key": self._key}, timeout=PATIENCE_SECONDS) as client:
            while not self._stop.is_set():
                try:
                    self._send(client, choose)
                    time.sleep(0.01)
                except httpx.HTTPError:
                    time.sleep(AWAY_SECONDS)

    def _send(self, client: httpx.Client, choose: random.Random) -> None:
        content = choose.choice([lakes(), lakes(), self._big, b"{"])
        headers = {"Prefer": "respond-async"} if choose.random() < 0.5 else {}
        response = client.post(
            f"{self.url}/api/geo/convert/file",
            files={"file": ("a.geojson", content)},
            data={"outputFormat": choose.choice(["Shapefile", "Csv", "Kml"])},
            headers=headers,
        )
        if response.status_code == httpx.codes.ACCEPTED:
            self.promised.append(response.json()["jobId"])
        elif response.status_code == httpx.codes.OK and response.json()["success"]:
            self.completed.append(response.json()["jobId"])


def _kill_server(server: Server) -> None:
    server.process.kill()
    server.process.wait()


def _kill_database(server: Server) -> None:
    with suppress(StopIteration, OSError, ValueError):
        pid_file = next((server.data_dir / "postgres").rglob("postmaster.pid"))
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)


def _kill_converter(server: Server) -> None:
    with suppress(psutil.Error):
        below = psutil.Process(server.process.pid).children(recursive=True)
        database = {"postgres"}
        candidates = [process for process in below if process.name() not in database and "keeper" not in _line(process)]
        if candidates:
            random.choice(candidates).kill()


def _line(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


KILLS: tuple[Callable[[Server], None], ...] = (_kill_server, _kill_database, _kill_converter)


def _audit(data_dir: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GEOMILL_DATA_DIR": str(data_dir), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "service", "audit"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _open_jobs(client: httpx.Client, jobs: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for job_id in jobs:
        response = client.get(f"/api/geo/convert/jobs/{job_id}/status")
        assert response.status_code == httpx.codes.OK, f"the accepted job {job_id} is lost"
        yield job_id, response.json()


@pytest.mark.timeout(300 + 20 * CRASHES)
def test_whatever_is_killed_the_books_agree(tmp_path: Path) -> None:
    """The server, converters and PostgreSQL are killed in turn under load."""
    choose = random.Random(4)
    rounds = iter(range(CRASHES))
    load: Load | None = None
    left = CRASHES
    while left:
        with running_server(tmp_path, settings=LEASE) as server:
            if load is None:
                load = Load(_demo_key(tmp_path))
                load.url = server.url
                load.start()
            load.url = server.url
            while left and server.process.poll() is None:
                time.sleep(choose.uniform(0.2, 2.0))
                KILLS[next(rounds) % len(KILLS)](server)
                left -= 1
    assert load is not None
    with running_server(tmp_path, settings=LEASE) as server:
        load.url = server.url
        time.sleep(1)
        assert any(load.completed for _ in polls()), "the load never got an answer"
        load.stop()
        _assert_all_is_well(server, load)
    result = _audit(tmp_path)
    assert (result.returncode, result.stdout) == (0, "Ledger, jobs and store agree.\n"), result.stdout + result.stderr


def _assert_all_is_well(server: Server, load: Load) -> None:
    with httpx.Client(
        base_url=server.url, headers={"X-API-Key": _demo_key(server.data_dir)}, timeout=PATIENCE_SECONDS
    ) as client:
        ended: dict[str, dict[str, Any]] = {}
        unended: list[str] = []
        for _ in polls():
            ended = dict(_open_jobs(client, load.promised + load.completed))
            unended = [job_id for job_id, job in ended.items() if job["status"] in {"Pending", "Processing"}]
            if not unended:
                break
        assert unended == []
        assert {ended[job_id]["status"] for job_id in load.completed} == {"Completed"}
    assert server.wait_until_idle() == []


def _demo_key(data_dir: Path) -> str:
    key: str = httpx.Response(200, content=(data_dir / "demo.json").read_bytes()).json()["apiKey"]
    return key
