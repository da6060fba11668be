"""Processes that use the embedded server, run by root and by an ordinary user."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from service.postgres_embedded.home import Home
from service.postgres_embedded.locks import can_lock
from service.postgres_embedded.server_user import SpawnIdentity
from tests.database import fast_directory
from tests.support.forked import IMPORTED_FROM
from tests.support.patience import PATIENCE_SECONDS, polls

PROJECT = Path(__file__).parents[3]
PROGRAM = "tests.integration.db.user_of_embedded"


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether `holds` becomes true before a test would count as stuck."""
    return any(holds() for _ in polls())


class User:
    """A process inside `embedded_postgres()`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.dsn = ""

    def wait_until_ready(self) -> "User":
        """Wait until the database has answered the process."""
        assert self.process.stdout is not None
        self.dsn = self.process.stdout.readline().strip()
        assert self.dsn, "the server did not start"
        return self

    def ask(self, statement: str) -> str:
        """Run a statement; return its first value as text."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{statement}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.process.communicate(timeout=PATIENCE_SECONDS)[1]
        return answer.strip()

    def leave(self) -> int:
        """Let it exit in order."""
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode

    def kill(self) -> None:
        """Kill -9 it."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)


class Site:
    """A data directory, the user who works in it, and the processes there."""

    def __init__(self, data_dir: Path, python: Path, identity: SpawnIdentity) -> None:
        self.data_dir = data_dir
        self.home = Home(data_dir / "postgres")
        self._python = python
        self._identity = identity
        self._users: list[User] = []

    def spawn(self, data_dir: Path | None = None) -> User:
        """Start a process without waiting for it."""
        process = subprocess.Popen(
            [self._python, "-m", PROGRAM, data_dir or self.data_dir],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env=environment(),
            start_new_session=True,
            **self._identity,
        )
        self._users.append(User(process))
        return self._users[-1]

    def enter(self) -> User:
        """Start a process and wait until the database has answered it."""
        return self.spawn().wait_until_ready()

    def refusal(self) -> str:
        """Start a process that must fail; return its message."""
        process = self.spawn().process
        _, complaint = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 1
        return complaint

    @property
    def data(self) -> Path:
        """The server's data directory."""
        return self.home.data(max(self.home.kept_majors))

    @property
    def postmaster(self) -> int:
        """The process id in the server's pid file."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    @property
    def keeper(self) -> int:
        """The process id of the server's keeper."""
        return parent_of(self.postmaster)

    def servers(self) -> list[int]:
        """All PostgreSQL processes of this directory."""
        return [process for process in processes() if working_directory(process).startswith(str(self.data_dir))]

    def kill_all(self) -> None:
        """Kill -9 users, keeper and server, stopped first so that none notices another's death."""
        victims = [*(user.process.pid for user in self._users), self.keeper, *self.servers()]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in victims:
                os.kill(process, number)
        assert eventually(self.is_quiet)

    def is_quiet(self) -> bool:
        """Whether neither server nor keeper is running."""
        if not self.home.root.is_dir():
            return True
        return not self.servers() and can_lock(self.home.keeper_lock, exclusive=True)

    def end(self) -> None:
        """Kill what a failed test has left."""
        for user in self._users:
            if user.process.returncode is None:
                user.kill()
        assert eventually(self.is_quiet), "something was left running"


def processes() -> Iterator[int]:
    """All processes."""
    return (int(path.name) for path in Path("/proc").glob("[0-9]*"))


def working_directory(process: int) -> str:
    """The working directory of a process, or nothing if it has ended."""
    try:
        return str(Path(f"/proc/{process}/cwd").readlink())
    except OSError:
        return ""


def parent_of(process: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def uid_of(process: int) -> int:
    """The user who runs a process."""
    return Path(f"/proc/{process}").stat().st_uid


def kill(process: int) -> None:
    """Send kill -9."""
    os.kill(process, signal.SIGKILL)


def environment() -> dict[str, str]:
    """The environment that a process needs to find the project and its libraries."""
    libraries = sysconfig.get_paths()["purelib"]
    return {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join((IMPORTED_FROM, libraries)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def python_for(identity: SpawnIdentity, candidates: Sequence[str]) -> Path | None:
    """An interpreter that `identity` can run the project with."""
    for candidate in candidates:
        try:
            probe = subprocess.run(
                [candidate, "-c", f"import {PROGRAM}"],
                cwd=PROJECT,
                env=environment(),
                capture_output=True,
                check=False,
                **identity,
            )
        except OSError:
            continue
        if probe.returncode == 0:
            return Path(candidate)
    return None


def own_identity() -> SpawnIdentity:
    """How root becomes an ordinary user; other users do nothing."""
    if os.geteuid() != 0:
        return SpawnIdentity()
    nobody = pwd.getpwnam("nobody")
    return SpawnIdentity(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])


IDENTITIES = (
    {"root": SpawnIdentity(), "ordinary user": own_identity()}
    if os.geteuid() == 0
    else {"ordinary user": SpawnIdentity()}
)
GROUPED = [pytest.param(name, marks=pytest.mark.xdist_group(f"embedded, {name}")) for name in IDENTITIES]
"""One database for all tests of a user: to make it takes longer than most of them."""


@pytest.fixture(scope="session", params=GROUPED)
def seed(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A data directory with a database, in a directory that is closed to other users."""
    identity = IDENTITIES[request.param]
    python = python_for(identity, (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"))
    if python is None:
        pytest.skip("no Python here with which an ordinary user can run the project")
    with fast_directory() as directory:
        os.chown(directory, identity.get("user", -1), identity.get("group", -1))
        site = Site(directory / "seed", python, identity)
        user = site.enter()
        user.ask("CREATE TABLE kept (n int)")
        assert user.leave() == 0
        yield site


@pytest.fixture
def site(seed: Site) -> Iterator[Site]:
    """A copy of `seed` in which nothing is running."""
    data_dir = seed.data_dir.with_name("site")
    subprocess.run(["cp", "-a", seed.data_dir, data_dir], check=True)
    site = Site(data_dir, seed._python, seed._identity)
    yield site
    site.end()
    shutil.rmtree(data_dir)
