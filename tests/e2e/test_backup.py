"""A backup made under load is restored elsewhere, reports what it lacks, and serves (docs/runbook.md)."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import httpx
import pytest

from service.accounts.administration import Terms
from service.db.connection import open_connection
from service.postgres_embedded.binaries import find_installation
from service.postgres_embedded.server_user import find_server_user
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import EXECUTED, Client, Server, create_account, running_server

SETTINGS = {"GEOMILL_LEASE_SECONDS": "2"}
"""Of a process that takes over, so that it soon ends jobs of the one before. A busy host may end so short a lease."""
SUCCEEDED = "SELECT id, object_key FROM job WHERE status = 'Completed'"
OPEN = "SELECT id FROM job WHERE status IN ('Pending', 'Processing')"


def rows(dsn: str, statement: str) -> list[asyncpg.Record]:
    """The rows that a statement returns."""

    async def fetch() -> list[asyncpg.Record]:
        async with open_connection(dsn) as connection:
            return list(await connection.fetch(statement))

    return anyio.run(fetch)


def postgres_program(name: str, *arguments: str) -> None:
    """Run one of the programs of the tests' PostgreSQL."""
    program = find_installation(find_server_user(), ()).bin_dir / name
    subprocess.run([str(program), *arguments], check=True)


@contextmanager
def converting(server: Server, client: Client) -> Iterator[list[dict[str, Any]]]:
    """Two clients that convert until the end; yields the responses so far."""
    answers: list[dict[str, Any]] = []
    stop = threading.Event()

    def convert() -> None:
        with httpx.Client(base_url=server.url, headers=client.headers, timeout=PATIENCE_SECONDS) as own:
            while not stop.is_set():
                answers.append(own.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())}).json())

    threads = [threading.Thread(target=convert) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def objects(data: Path) -> dict[str, Path]:
    """The stored outputs in a data directory, by key."""
    return {path.name: path for path in (data / "store" / "objects").glob("*/*")}


@pytest.fixture
def restored(tmp_path: Path, database_url: str, empty_database_url: str) -> Path:
    """A data directory for `empty_database_url`, both from backups of a busy server, the store's the older one.

    The store has one output besides that was made after the backup of the database.
    """
    first, second, dump = tmp_path / "first", tmp_path / "second", tmp_path / "geomill.dump"
    with running_server(first, database_url, program=EXECUTED) as server:
        with (
            closing(create_account(server, Terms(plan="team", plan_owner="organization"))) as client,
            converting(server, client) as answers,
        ):
            wait_until(lambda: len(answers) >= 5)
            second.mkdir()
            shutil.copy(first / "link-secrets", second)
            shutil.copytree(first / "store", second / "store", ignore=shutil.ignore_patterns("incoming"))
            wait_until(lambda: len(answers) >= 10)
            postgres_program("pg_dump", "--format=custom", f"--file={dump}", database_url)
            dumped = len(answers)
            wait_until(lambda: len(answers) >= dumped + 5)
        assert [answer for answer in answers if not answer["success"]] == []
        postgres_program("pg_restore", "--exit-on-error", f"--dbname={empty_database_url}", str(dump))
        in_dump = {row["object_key"] for row in rows(empty_database_url, "SELECT object_key FROM job")}
        later = next(path for key, path in objects(first).items() if key not in in_dump)
        copy = second / "store" / "objects" / later.parent.name / later.name
        shutil.copy(later, copy)
    return second


def test_a_restored_database_and_an_older_store_are_reconciled(restored: Path, empty_database_url: str) -> None:
    """The audit names each difference, `reconcile` corrects exactly these, and all charges remain."""
    stored = objects(restored)
    jobs = {str(row["id"]): row["object_key"] for row in rows(empty_database_url, SUCCEEDED)}
    lost = {job for job, key in jobs.items() if key not in stored}
    [kept, *_] = set(jobs) - lost
    assert lost
    with running_server(restored, empty_database_url, SETTINGS) as server:
        wait_until(lambda: not rows(empty_database_url, OPEN))  # the jobs that the dump found in progress
        geomill = Geomill(restored, {"GEOMILL_DATABASE_URL": empty_database_url})
        known = {row["object_key"] for row in rows(empty_database_url, "SELECT object_key FROM job")}
        [later] = set(objects(restored)) - known
        charged = rows(empty_database_url, "SELECT * FROM ledger ORDER BY job_id")

        audited = geomill("audit", "--json")
        assert audited.returncode == 1
        copied, *told = json.loads(audited.stdout)["differences"]
        assert "this database is a copy" in copied
        assert set(told) == {
            *(f"The output of job {job} is not in the store." for job in lost),
            f"The stored output {later} belongs to no job.",
        }

        mended = geomill.json("reconcile", "--force")
        assert (set(mended["expiredJobs"]), mended["deletedOutputs"]) == (lost, [later])
        assert geomill.json("audit") == {"differences": []}
        members = ("expiredJobs", "deletedOutputs", "handedOverJobs", "deletedMessages", "differences")
        assert geomill.json("reconcile") == {name: [] for name in members}
        assert rows(empty_database_url, "SELECT * FROM ledger ORDER BY job_id") == charged

        # The keys of the clients work as before; a link to a kept output is signed with the secret of the backup.
        [account] = rows(empty_database_url, "SELECT id FROM account")
        key = geomill.json("key", "create", str(account["id"]))["apiKey"]
        with httpx.Client(base_url=server.url, headers={"X-API-Key": key}, timeout=PATIENCE_SECONDS) as client:
            for job, status in ((kept, "Completed"), (lost.pop(), "Expired")):
                answer = client.get(f"/api/geo/convert/jobs/{job}/status").json()
                assert (answer["status"], bool(answer.get("downloadUrl"))) == (status, status == "Completed")
                assert status == "Expired" or client.get(answer["downloadUrl"]).is_success
            assert client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())}).json()["success"]
