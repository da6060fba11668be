"""The service in a separate process, and its clients."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx

from sandbox.locked_directory import LockedDirectory
from service.accounts.administration import Account, Administration, Changes, CreatedKey, Terms
from service.clock import utc_now
from service.db.pool import open_pool
from service.ids import AccountId
from service.intake.areas import sweep
from service.intake.memory import memory_path
from tests.support.forked import Forked, environment_for
from tests.support.patience import PATIENCE_SECONDS, polls

READY_SECONDS = 180.0
SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- where the service makes a directory of its own
EXECUTED = ("-m", "service")
"""The program of a server that is executed, for tests of what `forked` cannot show."""
_READ_LATER = ("GEOMILL_", "OTEL_", "PATH")
"""Variables that no module reads when it is imported."""


class Server:
    """A running `geomill serve`, or `geomill worker`, whose URL is that of its private port."""

    def __init__(
        self,
        process: subprocess.Popen[bytes] | Forked,
        data_dir: Path,
        dsn: str,
        log: Path,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        self.process = process
        self.data_dir = data_dir
        self.dsn = dsn
        self.log = log
        self.url = self._wait_until_ready(ready_seconds)

    @property
    def private_url(self) -> str:
        """The URL of the private port."""
        [event] = self.events("server.ready")
        return str(event["private_url"])

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's events with this name so far."""
        written, _, _ = self.log.read_bytes().rpartition(b"\n")  # what follows is a line of which a part is written
        lines = written.decode().splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{") and name in line]
        return [entry for entry in entries if entry["event"] == name]

    def work_files(self) -> list[Path]:
        """All files of uploads and jobs on disk at present."""
        roots = (self.data_dir / "work" / "uploads", memory_path(SHARED_MEMORY, self.data_dir))
        return [path for root in roots for path in root.glob("*/*")]

    def wait_until_idle(self, seconds: float = PATIENCE_SECONDS) -> list[Path]:
        """Wait until the work directory is empty; return what is left in it after `seconds`."""
        left: list[Path] = []
        for _ in polls(seconds):
            if not (left := self.work_files()):
                break
        return left

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def _wait_until_ready(self, seconds: float) -> str:
        for _ in polls(seconds):
            if self.process.poll() is not None:
                break
            for event in self.events("server.ready"):
                return str(event["url"])
            for event in self.events("worker.ready"):
                return str(event["private_url"])
        message = f"the server did not become ready:\n{self.log.read_text(encoding='utf-8')}"
        raise AssertionError(message)


@contextmanager
def running_server(
    data_dir: Path,
    dsn: str = "",
    settings: Mapping[str, str] | None = None,
    *,
    program: Sequence[str] | None = None,
    command: Sequence[str] = ("serve",),
    prefix: Sequence[str] = (),
    ready_seconds: float = READY_SECONDS,
) -> Iterator[Server]:
    """Start `geomill serve` on a free port, with an embedded database unless `dsn` is given; stop it at the end.

    The process is forked from one that has imported the service. It is executed if there is a `program`, as options of
    Python, a `prefix`, which is a program that replaces itself by the service, or a variable that imports may read.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir / f"server-{time.monotonic_ns()}.log"
    given = dict(settings or {})
    environment = environment_for(
        {
            "GEOMILL_DATA_DIR": str(data_dir),
            "GEOMILL_DATABASE_URL": dsn,
            "GEOMILL_PORT": "0",
            "GEOMILL_LOG_FORMAT": "json",
            **given,
        }
    )
    if program is None and (prefix or not all(name.startswith(_READ_LATER) for name in given)):
        program = EXECUTED
    process: subprocess.Popen[bytes] | Forked
    with log.open("wb") as output:
        if program is None:
            process = Forked(command, environment, output, output)
        else:
            line = [*prefix, sys.executable, *program, *command]
            process = subprocess.Popen(line, env=environment, stdout=output, stderr=output)
    try:
        yield Server(process, data_dir, dsn, log, ready_seconds)
    finally:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
        _leave_no_memory(memory_path(SHARED_MEMORY, data_dir))


def _leave_no_memory(root: Path) -> None:
    """Remove a killed server's files in memory, as the next start would."""
    if root.exists():
        sweep(root)
        LockedDirectory(root, ".selftest").remove()
        with suppress(OSError):  # another server of the same directory lives
            root.rmdir()


class Client(httpx.Client):
    """A client with the key of one account."""

    def __init__(self, server: Server, account: Account, key: CreatedKey) -> None:
        super().__init__(base_url=server.url, headers={"X-API-Key": key.api_key}, timeout=PATIENCE_SECONDS)
        self.server = server
        self.account = account
        self.key = key

    def convert(
        self,
        name: str,
        content: bytes,
        *,
        endpoint: str = "file",
        headers: Mapping[str, str] | None = None,
        **fields: object,
    ) -> dict[str, Any]:
        """Convert one file; the status must be 200 (or 202 where requested)."""
        data = {field: str(value) for field, value in fields.items()}
        response = self.post(
            f"/api/geo/convert/{endpoint}", files={"file": (name, content)}, data=data, headers=headers
        )
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def download(self, answer: Mapping[str, Any]) -> bytes:
        """Download a conversion's output, without the key."""
        response = httpx.get(answer["downloadUrl"])
        assert response.status_code == httpx.codes.OK, response.text
        return response.content

    def batch(
        self, *files: tuple[str, bytes], headers: Mapping[str, str] | None = None, **fields: object
    ) -> dict[str, Any]:
        """Convert several files; the status must be 200 (or 202 where requested)."""
        parts = [("files", file) for file in files]
        response = self.post("/api/geo/convert/batch", files=parts, data=fields, headers=headers)
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def wait_for(self, job_id: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Poll a job until it has ended."""
        job: dict[str, Any] = {}
        for _ in polls(seconds):
            job = self.get(f"/api/geo/convert/jobs/{job_id}/status").json()
            if job["status"] not in {"Pending", "Processing"}:
                break
        return job

    def change(self, changes: Changes) -> Account:
        """Change the account."""
        return anyio.run(_change, self.server.dsn, self.account.account_id, changes)

    def usage(self) -> tuple[int, int]:
        """Conversions and bytes of this month, settled and reserved."""
        answer = self.batch(("x.unknown", b"x"))
        conversions, size = answer["remainingConversions"], answer["remainingBytes"]
        plan = {plan["id"]: plan for plan in self.get("/api/geo/pricing/tiers").json()["plans"]}[self.account.plan]
        return plan["monthlyConversions"] - conversions, plan["monthlyDataBytes"] - size


def create_account(server: Server, terms: Terms, name: str = "test") -> Client:
    """Create an account and return a client with its key."""
    account, key = anyio.run(_create, server.dsn, name, terms)
    return Client(server, account, key)


async def _create(dsn: str, name: str, terms: Terms) -> tuple[Account, CreatedKey]:
    async with open_pool(dsn, max_size=1) as database:
        return await Administration(database, utc_now).create_account(name, terms)


async def _change(dsn: str, account_id: AccountId, changes: Changes) -> Account:
    async with open_pool(dsn, max_size=1) as database:
        return await Administration(database, utc_now).change_account(account_id, changes)
