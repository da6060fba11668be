"""Accounts share the converters: an account without one gets one soon, whatever others have in progress."""

import re
import time
from pathlib import Path

import httpx

from service.accounts.administration import Terms
from tests.support.data import collection, feature, lakes, point
from tests.support.endless import NAME, endless_file
from tests.support.server import Client, Server, create_account, running_server

ASYNC = {"Prefer": "respond-async"}
TEAM = Terms(plan="team", plan_owner="organization")
UNDER_WAY = {"Pending", "Processing"}


def begin(client: Client, files: int) -> list[str]:
    """Start conversions that do not end; return their job ids."""
    content = endless_file()
    answers = [client.convert(NAME, content, headers=ASYNC, outputFormat="Csv") for _ in range(files)]
    return [answer["jobId"] for answer in answers]


def status(client: Client, job_id: str) -> str:
    """The job's status."""
    return str(client.get(f"/api/geo/convert/jobs/{job_id}/status").json()["status"])


def wait_until_running(client: Client, jobs: list[str], running: int) -> None:
    """Wait until this many of the jobs have a converter."""
    while sum(status(client, job_id) == "Processing" for job_id in jobs) < running:
        time.sleep(0.05)


def metric(server: Server, name: str) -> float:
    """A metric of the server."""
    [value] = re.findall(rf"(?m)^{name} (\S+)$", httpx.get(f"{server.url}/metrics").text)
    return float(value)


def use_everything(client: Client) -> int:
    """Convert a small file, a batch, and a document that is scanned in a converter; return the cost."""
    for _ in range(3):
        assert client.convert("a.geojson", collection(feature(point(1, 2))))["success"]
    assert all(entry["success"] for entry in client.batch(("a.geojson", lakes()), ("b.geojson", lakes()))["results"])
    large = collection(*(feature(point(n % 90, 1), n=n, text="x" * 100) for n in range(5000)))
    assert client.convert("a.geojson", large, endpoint="analyze")["success"]
    return 5


def test_one_account_cannot_keep_all_converters(tmp_path: Path, database_url: str) -> None:
    """Twelve endless files of one account: all files of another are converted before any of the twelve ends."""
    settings = {"GEOMILL_CONVERTERS": "2", "GEOMILL_DRAIN_SECONDS": "0"}
    with (
        running_server(tmp_path, database_url, settings) as server,
        create_account(server, TEAM, "heavy") as heavy,
        create_account(server, TEAM, "light") as light,
    ):
        jobs = begin(heavy, 12)
        wait_until_running(heavy, jobs, 2)
        assert use_everything(light) == light.usage()[0]
        assert {status(heavy, job_id) for job_id in jobs} == UNDER_WAY
        assert metric(server, "geomill_suspensions_total") > 0
        assert server.stop() == 0
        assert server.work_files() == []
        assert {event["job_id"] for event in server.events("job.failed")} == set(jobs)


def test_more_accounts_than_converters_take_turns(tmp_path: Path, database_url: str) -> None:
    """On one converter, three accounts with endless files do not keep a fourth from its turn."""
    settings = {"GEOMILL_CONVERTERS": "1", "GEOMILL_SUSPENDED": "3", "GEOMILL_DRAIN_SECONDS": "0"}
    with running_server(tmp_path, database_url, settings) as server:
        heavy = {name: create_account(server, TEAM, name) for name in ("one", "two", "three")}
        jobs = {name: begin(client, 2) for name, client in heavy.items()}
        for name, client in heavy.items():
            wait_until_running(client, jobs[name], 1)
        with create_account(server, TEAM, "light") as light:
            assert use_everything(light) == light.usage()[0]
        for name, client in heavy.items():
            assert {status(client, job_id) for job_id in jobs[name]} == UNDER_WAY
            client.close()
        assert server.stop() == 0
        assert server.work_files() == []
        assert len(server.events("job.failed")) == 6
