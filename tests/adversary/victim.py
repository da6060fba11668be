"""The service as a user runs it from a checkout that holds all its data, with a hijacked converter."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from sandbox import forkserver
from service.intake.memory import memory_path
from tests.support.patience import PATIENCE_SECONDS

SOURCE = Path(__file__).parents[2]
PARTS = ("service", "sandbox", "sql")
NOBODY = 65534
SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- where the service makes a directory of its own


class Victim:
    """A running `serve`, with its operator's commands."""

    def __init__(self, checkout: Path, program: Path, user: int) -> None:
        self.checkout = checkout
        self.data_dir = checkout / ".geomill"
        self.identity_secret = checkout.parent / "identity-secret"
        self.user = user
        self.memory_dir = Path(str(memory_path(SHARED_MEMORY, self.data_dir)).replace(f"-{os.geteuid()}-", f"-{user}-"))
        self._environment = {
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join((str(checkout), sysconfig.get_path("purelib"))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GEOMILL_IDENTITY_SECRET_FILE": str(self.identity_secret),
            "GEOMILL_OGR2OGR": str(program),
            "GEOMILL_PORT": "0",
            "GEOMILL_CONVERTERS": "1",
            "GEOMILL_LOG_FORMAT": "json",
        }

    def started(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """A running `geomill` command."""
        other: dict[str, Any] = {} if self.user == os.geteuid() else {"user": self.user, "group": self.user}
        return subprocess.Popen(
            [_python(self.user), "-m", "service", *arguments],
            env=self._environment,
            cwd=self.checkout,
            extra_groups=[] if other else None,
            **other,
            **streams,
        )

    def demo(self, url: str) -> "Customer":
        """The demo account."""
        return Customer(url, json.loads((self.data_dir / "demo.json").read_text())["apiKey"])

    def customer(self, url: str, name: str) -> "Customer":
        """A new account with a client."""
        command = ("account", "create", "--name", name, "--plan", "business", "--json")
        output, _ = self.started(*command, stdout=subprocess.PIPE).communicate(timeout=PATIENCE_SECONDS)
        return Customer(url, json.loads(output)["apiKey"])


class Customer(httpx.Client):
    """A client with an account."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(base_url=url, headers={"X-API-Key": key}, timeout=PATIENCE_SECONDS)

    def converted(self, content: bytes, **fields: str) -> bytes:
        """The converted GeoJSON file, or the response that explains the failure."""
        files = {"file": ("in.geojson", content)}
        response = self.post("/api/geo/convert/file", files=files, data=fields)
        answer = response.json()
        return httpx.get(answer["downloadUrl"]).raise_for_status().content if answer["success"] else response.content


class Serving:
    """The victim while it is serving."""

    def __init__(self, victim: Victim, process: subprocess.Popen[bytes], log: Path) -> None:
        self.victim = victim
        self.process = process
        self.log = log
        self.ready = self._wait()
        self.url = str(self.ready["url"])

    def _wait(self) -> dict[str, Any]:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at and self.process.poll() is None:
            written, _, _ = self.log.read_text().rpartition("\n")  # what follows is a line of which a part is written
            for event in (json.loads(line) for line in written.splitlines() if line.startswith("{")):
                if event["event"] == "server.ready":
                    return dict(event)
            time.sleep(0.02)
        raise AssertionError(f"the service did not become ready:\n{self.log.read_text()}")


def _python(user: int) -> str:
    if user == os.geteuid():
        return sys.executable
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin:/bin")
    assert found, f"there is no Python {version} that other users can execute"
    return found


def check_out(directory: Path, user: int) -> Path:
    """A copy of this checkout owned by `user`, with a Git history and a secret file beside it."""
    checkout = directory / "geomill"
    for part in PARTS:
        shutil.copytree(SOURCE / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    if shutil.which("cc"):
        forkserver.build(checkout / "sandbox" / "forkserver")
    (checkout / ".git").mkdir()
    (checkout / ".git" / "HEAD").write_text("ref: refs/heads/secret\n")
    (directory / "identity-secret").write_text("0123456789abcdef" * 3)
    for path in (directory, *directory.rglob("*")):
        os.chown(path, user, user)
    return checkout


@contextmanager
def serving(victim: Victim) -> Iterator[Serving]:
    """Run the server inside the block."""
    log = victim.checkout.parent / f"log-{time.monotonic_ns()}"
    with log.open("wb") as output:
        process = victim.started("serve", stdout=output, stderr=output)
    try:
        yield Serving(victim, process, log)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
