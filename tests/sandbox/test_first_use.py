"""Servers that start late: none runs a command before a program that it has started has attacked what is private."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import msgspec
import pytest

from sandbox import first_use, forkserver, selftest
from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.pool import Pool, open_pool
from sandbox.report import LauncherReport
from sandbox.verdict import Ending, Verdict
from tests.sandbox.processes import command_line, processes_below
from tests.sandbox.test_exposure import NOTHING
from tests.sandbox.test_launchers import DATA, ENVIRONMENT, NEEDS_COMPILER, NEEDS_OGR2OGR, OGR2OGR
from tests.support.patience import PATIENCE_SECONDS, until

SERVERS = {"often_used": LauncherName.PYTHON_SERVER, "rarely_used": LauncherName.RARE_PYTHON_SERVER}
MODULE = """
import pathlib
if __name__ == "__main__": pathlib.Path("done").touch()
"""
WAITING = """
import os, time
while not os.path.exists(__file__ + ".go-on"): time.sleep(0.02)
"""
THREADED = """
import threading, time
if __name__ != "__main__": threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
"""

STARTS_LATE = """
#include <unistd.h>
__attribute__((constructor)) static void wait_for_a_file(void) { while (access("go-on", F_OK)) usleep(20000); }
"""
"""A part of the fork server's library, whose directory the server starts in."""
PATIENT = """
import os, sys
from sandbox.config import LauncherName
from sandbox.launchers import server
from sandbox.launchers.server_process import Program
from sandbox.process.loop import Loop

class Kind:
    name, starts = LauncherName.FORK_SERVER, 0
    def program(self, link):
        self.starts += 1
        code = f"import os, time; time.sleep(3); os.write({link}, b'ready'); time.sleep(1000)"
        return Program((sys.executable, "-I", "-S", "-c", code), {})

def reap():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        launcher.ended(pid)

server._STARTING_SECONDS = 0.5
kind, loop = Kind(), Loop(reap)
launcher = server.ServerLauncher(kind, None, loop, 1000)
while not launcher.is_up:
    loop.turn()
for pid in launcher.pids():
    os.kill(pid, 9)
print(kind.starts)
"""
"""A launcher whose servers need longer for their start than it waits at first."""


class Place:
    """A work root beside the modules of the servers, which import what a test makes them."""

    def __init__(self, path: Path) -> None:
        self.work_root, self.modules, self.secret = path / "work", path / "modules", path / "secret"
        for directory in (self.work_root, self.modules):
            directory.mkdir()
        self.secret.write_text("secret")
        for name in SERVERS:
            self.write(name, MODULE)

    def write(self, module: str, code: str) -> None:
        """Make a module."""
        (self.modules / f"{module}.py").write_text(code)

    def config(self, without: frozenset[str] = frozenset()) -> Config:
        """A pool, as strict as what it does `without` allows."""
        path = os.pathsep.join([str(self.modules), *filter(None, sys.path)])
        often, rarely = SERVERS
        return Config(
            work_root=self.work_root,
            converters=1,
            mode=Mode.BEST_EFFORT if without else Mode.STRICT,
            without=without,
            readable=(self.modules,),
            python=PythonServer(
                modules=(often,),
                rare_modules=(rarely,),
                environment={"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            ),
        )

    async def run(self, pool: Pool, module: str, tenant: str = "a") -> Verdict:
        """Run a module."""
        directory = Path(tempfile.mkdtemp(dir=self.work_root))
        command = Command(
            argv=(sys.executable, "-m", module),
            directory=directory,
            environment=self.config().python.environment,
            limits=Limits(wall_seconds=60),
        )
        async with pool.lease(tenant) as converter:
            verdict = await converter.run(command)
        assert (directory / "done").exists() is (verdict.ending is Ending.OK)
        return verdict


@pytest.fixture
def place(public: Path) -> Place:
    """A place that other users can pass through."""
    path = Path(tempfile.mkdtemp(dir=public))
    path.chmod(0o755)
    return Place(path)


def servers() -> set[int]:
    """The Python servers below this process."""
    return {pid for pid in processes_below() if b"launchers.zygote" in command_line(pid)}


def row(pool: Pool, name: LauncherName) -> LauncherReport:
    """What the report says of a launcher."""
    (found,) = [each for each in pool.report().launchers if each.name is name]
    return found


@pytest.mark.parametrize("module", SERVERS)
async def test_a_server_starts_with_its_first_command_and_is_attacked_from(place: Place, module: str) -> None:
    """None runs before; the first command is run by a server that has passed, and the report says so."""
    async with open_pool(place.config(), {"the secret": place.secret}) as pool:
        assert servers() == set()
        assert not any(row(pool, name).active for name in SERVERS.values())
        for _ in range(2):
            verdict = await place.run(pool, module)
            assert (verdict.launcher, verdict.ending) == (SERVERS[module], Ending.OK)
            assert len(servers()) == 1
        assert [name for name in SERVERS.values() if row(pool, name).active] == [SERVERS[module]]
        assert pool.report().escapes == ()


async def test_the_complete_report_attacks_from_every_server(place: Place) -> None:
    """Whether or not a command has needed it."""
    async with open_pool(place.config(), {"the secret": place.secret}) as pool:
        await place.run(pool, "often_used")
        report = await pool.complete_report()
        assert set(report.active_launchers) == {*SERVERS.values(), LauncherName.EXEC}
        assert report.escapes == ()
        assert pool.report() == report


@pytest.mark.parametrize("module", SERVERS)
async def test_a_server_whose_program_reaches_something_runs_nothing(place: Place, module: str) -> None:
    """Plain exec runs its commands; the report names what was reached."""
    async with open_pool(place.config(without=NOTHING), {"the secret": place.secret}) as pool:
        for _ in range(2):
            verdict = await place.run(pool, module)
            assert (verdict.launcher, verdict.ending) == (LauncherName.EXEC, Ending.OK)
        assert "the secret" in row(pool, SERVERS[module]).reason
        assert not row(pool, SERVERS[module]).active


async def test_a_command_that_waits_for_the_attack_can_be_cancelled(place: Place) -> None:
    """The next command has the server attacked from, and is run by it."""
    place.write("often_used", WAITING + MODULE)
    async with open_pool(place.config(), {"the secret": place.secret}) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(place.run, pool, "often_used")
            await until(servers)
            tasks.cancel_scope.cancel()
        assert not row(pool, LauncherName.PYTHON_SERVER).active
        assert pool.queue.places_taken == 0
        (place.modules / "often_used.py.go-on").touch()
        verdict = await place.run(pool, "often_used")
        assert (verdict.launcher, verdict.ending) == (LauncherName.PYTHON_SERVER, Ending.OK)


async def test_a_test_goes_on_although_its_command_is_suspended(place: Place) -> None:
    """It was suspended in favor of a command that waits for the same test, as does all else that has a converter."""
    place.write("often_used", WAITING + MODULE)
    config = msgspec.structs.replace(place.config(), converters=2, suspended=1)
    verdicts: list[Verdict] = []
    async with open_pool(config, {"the secret": place.secret}) as pool:

        async def run(tenant: str) -> None:
            verdicts.append(await place.run(pool, "often_used", tenant))

        async with anyio.create_task_group() as tasks:
            for tenant in ("a", "a", "b"):
                tasks.start_soon(run, tenant)
            await until(lambda: pool.queue.suspended == 1)
            (place.modules / "often_used.py.go-on").touch()
    assert [verdict.ending for verdict in verdicts] == [Ending.OK] * 3


async def test_a_server_that_does_not_become_ready_holds_nothing_up(place: Place) -> None:
    """Plain exec runs the commands of a server that cannot hold its modules."""
    place.write("often_used", THREADED + MODULE)
    async with open_pool(place.config(), {"the secret": place.secret}) as pool:
        for _ in range(2):
            verdict = await place.run(pool, "often_used")
            assert (verdict.launcher, verdict.ending) == (LauncherName.EXEC, Ending.OK)
        assert not row(pool, LauncherName.PYTHON_SERVER).active


async def test_an_attack_that_is_cut_short_is_made_again_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It proves nothing; not every command tries, since the start of a server takes long."""
    async with open_pool(place.config(), {"the secret": place.secret}) as pool:
        for limits in (Limits(file_bytes=1), selftest._LIMITS):
            monkeypatch.setattr(selftest, "_LIMITS", limits)
            verdict = await place.run(pool, "often_used")
            assert (verdict.launcher, verdict.ending) == (LauncherName.EXEC, Ending.OK)
        assert "the probe ended by output_size" in row(pool, LauncherName.PYTHON_SERVER).reason
        verdict = await place.run(pool, "rarely_used")
        assert (verdict.launcher, verdict.ending) == (LauncherName.RARE_PYTHON_SERVER, Ending.OK)
        monkeypatch.setattr(first_use, "_PAUSE_SECONDS", 0)
        verdict = await place.run(pool, "often_used")
        assert (verdict.launcher, verdict.ending) == (LauncherName.PYTHON_SERVER, Ending.OK)
        assert pool.report().escapes == ()


@NEEDS_OGR2OGR
@NEEDS_COMPILER
async def test_a_fork_server_that_starts_late_is_used_then(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool opens without it, plain exec runs its commands, and a later one has it attacked from."""
    library, source = place.modules / "late.so", place.modules / "late.c"
    source.write_text(STARTS_LATE)
    compilation = forkserver.compilation(shutil.which("cc") or "cc", library)
    await anyio.run_process([*compilation, str(source), "-O0"])  # to optimize it takes longer than to use it
    ogr2ogr = Ogr2ogr(program=Path(OGR2OGR or ""), environment=ENVIRONMENT, fork_server=library)
    config = Config(
        work_root=place.work_root, mode=Mode.BEST_EFFORT, converters=1, readable=(*DATA, place.modules), ogr2ogr=ogr2ogr
    )
    monkeypatch.setattr(selftest, "_STARTING_SECONDS", 5)
    monkeypatch.setattr(first_use, "_PAUSE_SECONDS", 0)

    async def convert(pool: Pool) -> str:
        directory = Path(tempfile.mkdtemp(dir=place.work_root))
        (directory / "in.csv").write_text("a,b\n1,2\n")
        argv = (str(ogr2ogr.program), "-f", "CSV", "out.csv", "in.csv")
        command = Command(argv=argv, directory=directory, environment=ENVIRONMENT, limits=Limits(wall_seconds=60))
        async with pool.lease("a") as converter:
            verdict = await converter.run(command)
        assert verdict.ending is Ending.OK, verdict
        assert (directory / "out.csv").read_text().replace('"', "").splitlines() == ["a,b", "1,2"]
        return verdict.launcher

    async with open_pool(config, {"the secret": place.secret}) as pool:
        assert pool.report().untested_launchers[:1] == (LauncherName.FORK_SERVER,)
        assert await convert(pool) == LauncherName.EXEC
        (place.modules / "go-on").touch()
        with anyio.fail_after(PATIENCE_SECONDS):
            while await convert(pool) != LauncherName.FORK_SERVER:  # noqa: ASYNC110 - another process starts
                await anyio.sleep(0.02)
        found = row(pool, LauncherName.FORK_SERVER)
        assert (found.active, found.is_tested, found.reason) == (True, True, "")


def test_a_server_that_takes_too_long_to_start_is_given_longer() -> None:
    """On a busy host, the patience of the first start may never be enough."""
    command = [sys.executable, "-c", PATIENT]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
    assert int(made.stdout) > 1


async def test_a_host_that_starts_no_program_is_told_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the attacks and conversions waited for a launcher, one after the other, for several minutes."""
    monkeypatch.setattr(selftest, "_STARTING_SECONDS", 0.1)
    tried: list[Command] = []

    async def run(command: Command, _launcher: LauncherName | None) -> Verdict:
        tried.append(command)
        return Verdict(ending=Ending.INTERNAL, detail="start: too many open files")

    test = selftest.SelfTest(Config(work_root=place.work_root, mode=Mode.STRICT), {})
    with pytest.raises(SandboxUnavailable, match=r"cannot start programs \(start: too many open files\)"):
        await test.performed(run)
    assert len({command.argv for command in tried}) == 1
