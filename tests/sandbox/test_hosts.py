"""Restricted hosts: an ordinary user, no namespaces, a missing layer; and the reports about them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode
from sandbox.isolation import policy
from sandbox.pool import SandboxUnavailable, open_pool
from sandbox.report import Guard, LauncherReport, LayerReport, SandboxReport
from sandbox.verdict import Ending
from tests.sandbox.processes import parent_of, processes_below
from tests.support.patience import PATIENCE_SECONDS, until

NOBODY = 65534
ROOT_OF_PROJECT = Path(__file__).parents[2]
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


def python_for_everyone() -> str:
    """A Python that other users can execute, and that finds the sandbox's imports."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        command = [candidate, "-c", "import anyio, msgspec, structlog"]
        try:
            found = subprocess.run(command, user=NOBODY, group=NOBODY, env=environment(), check=False, cwd="/")
        except (PermissionError, FileNotFoundError):
            continue
        if found.returncode == 0:
            return candidate
    pytest.skip("no Python that other users can execute")


def environment() -> dict[str, str]:
    """The module path for another Python of the same version."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT_OF_PROJECT), *filter(None, sys.path)])}


@pytest.fixture
def place() -> Iterator[Path]:
    """A work root owned by nobody."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        root = Path(directory) / "work"
        root.mkdir()
        os.chown(root, NOBODY, NOBODY)
        yield root


def printed_by_nobody(script: str | Path, *arguments: object) -> Any:
    """The JSON that a Python script prints last, run by an ordinary user."""
    result = subprocess.run(
        [python_for_everyone(), str(script), *map(str, arguments)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env=environment(),
        cwd="/",
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout.splitlines()[-1])


def found_by_an_ordinary_user(place: Path, *arguments: str, script: str = "ordinary_user.py") -> dict[str, Any]:
    """The output of a program beside this one."""
    found: dict[str, Any] = printed_by_nobody(Path(__file__).with_name(script), place, *arguments)
    return found


def active(found: dict[str, Any]) -> set[str]:
    """The layers in use."""
    return {layer["name"] for layer in found["report"]["layers"] if layer["active"]}


@NEEDS_ROOT
def test_an_ordinary_user_is_isolated_as_well(place: Path) -> None:
    """Namespaces, Landlock and the filter need no privilege; nothing gets out."""
    found = found_by_an_ordinary_user(place)
    assert found["ending"] == Ending.OK, found
    assert found["report"]["escapes"] == []
    assert active(found) >= {"namespaces", "private view", "Landlock", "system-call filter", "resource limits"}
    assert "unprivileged user" not in active(found)


@NEEDS_ROOT
def test_a_host_without_user_namespaces_still_isolates(place: Path) -> None:
    """Landlock and the filter cover files and network where namespaces are refused, as in most containers."""
    found = found_by_an_ordinary_user(place, "refuse")
    assert found["ending"] == Ending.OK, found
    assert found["report"]["escapes"] == []
    assert "namespaces" not in active(found)
    assert active(found) >= {"Landlock", "system-call filter", "resource limits"}
    reasons = {layer["name"]: layer["reason"] for layer in found["report"]["layers"]}
    assert "user namespace" in reasons["namespaces"]


@NEEDS_ROOT
def test_a_host_without_landlock_still_isolates(place: Path) -> None:
    """Namespaces and the filter cover files and network where the kernel knows no Landlock, or denies it."""
    found = found_by_an_ordinary_user(place, "lack")
    assert found["ending"] == Ending.OK, found
    assert found["report"]["escapes"] == []
    assert "Landlock" not in active(found)
    assert active(found) >= {"namespaces", "private view", "system-call filter", "resource limits"}


@NEEDS_ROOT
def test_a_spawner_outlives_a_lack_of_processes(place: Path) -> None:
    """Commands that cannot be started then say so; all others, and later ones, run in the same spawner."""
    found = found_by_an_ordinary_user(place, script="crowded.py")
    assert found["same"], found
    assert found["endings"][0][0] == Ending.INTERNAL, found
    assert found["endings"][0][1].startswith("start: "), found
    assert found["endings"][-1][0] == Ending.OK, found
    assert not [detail for _, detail in found["endings"] if "spawner" in detail], found


@pytest.mark.parametrize(
    ("without", "named"),
    [
        ({"namespaces", "system-call filter"}, "network"),
        ({"namespaces", "Landlock"}, "file system"),
        ({"resource limits"}, "limits"),
        ({"system-call filter", "unprivileged user"}, "other runs"),
        pytest.param({"unprivileged user"}, "rights of root", marks=NEEDS_ROOT),
    ],
)
async def test_strict_mode_names_what_is_missing(work_root: Path, without: set[str], named: str) -> None:
    """A pool does not open without a layer for network, files, limits and other runs, nor with runs as root."""
    with pytest.raises(SandboxUnavailable, match=f"no layer guards the {named} .*best-effort"):
        async with open_pool(Config(work_root=work_root, without=frozenset(without))):
            pass


async def test_best_effort_opens_and_says_what_gets_out(work_root: Path, directory: Path) -> None:
    """With what is available, and an accurate report."""
    config = Config(
        work_root=work_root,
        mode=Mode.BEST_EFFORT,
        without=frozenset({"namespaces", "Landlock", "system-call filter", "unprivileged user"}),
    )
    async with open_pool(config) as pool:
        assert set(pool.report().escapes) >= {"a file outside", "a TCP listener", "a UDP listener"}
        assert pool.report().missing == (
            Guard.NETWORK,
            Guard.FILES,
            Guard.RUNS,
            *((Guard.ROOT,) if os.geteuid() == 0 else ()),
        )
        assert any("reached a file outside" in line for line in pool.report().lines())
        async with pool.lease("a") as converter:
            verdict = await converter.run(Command(argv=(sys.executable, "-c", ""), directory=directory))
    assert verdict.ending is Ending.OK


def test_strict_mode_refuses_a_host_on_which_something_got_out() -> None:
    """Layers that are in use but ineffective are not trusted."""
    layer = LayerReport(name="all", stops="everything", guards=frozenset(Guard), active=True)
    with pytest.raises(SandboxUnavailable, match="reached a TCP listener"):
        policy.enforce(Mode.STRICT, SandboxReport(layers=(layer,), escapes=("a TCP listener",)))


def test_the_launcher_in_use_is_the_first_that_passed() -> None:
    """The report shows which one is in use."""
    rows = (
        LauncherReport(name=LauncherName.FORK_SERVER, active=False, reason="no compiler"),
        LauncherReport(name=LauncherName.EXEC, active=True),
        LauncherReport(name=LauncherName.PYTHON_SERVER, active=True),
    )
    assert SandboxReport(layers=(), launchers=rows).launcher == "plain exec"


@pytest.mark.skipif(not Path("/sys/fs/cgroup/memory").exists() or os.geteuid() != 0, reason="no memory groups to make")
async def test_memory_beyond_the_address_space_limit_is_the_memory_groups(work_root: Path, directory: Path) -> None:
    """A program that exceeds its memory without an address-space limit is killed, and the verdict says so."""
    config = Config(work_root=work_root, mode=Mode.BEST_EFFORT, without=frozenset({"resource limits"}))
    async with open_pool(config) as pool:
        if "memory group" not in {layer.name for layer in pool.report().layers if layer.active}:
            pytest.skip("memory groups cannot be made here")
        own = groups()
        assert own
        async with pool.lease("a") as converter:
            hog = "x = []\nwhile True: x.append(bytes(range(256)) * 4096)"
            limits = Limits(memory_bytes=80 << 20, wall_seconds=30)
            verdict = await converter.run(Command(argv=(sys.executable, "-c", hog), directory=directory, limits=limits))
    assert verdict.ending is Ending.MEMORY
    with anyio.fail_after(PATIENCE_SECONDS):
        while any(group.exists() for group in own):  # noqa: ASYNC110 -- the keeper removes them while it ends
            await anyio.sleep(0.01)


@pytest.mark.skipif(not Path("/sys/fs/cgroup/memory").exists() or os.geteuid() != 0, reason="no memory groups to make")
async def test_the_memory_groups_of_a_killed_keeper_are_removed_by_the_next(work_root: Path) -> None:
    """The next start removes groups without a keeper."""
    async with open_pool(Config(work_root=work_root)):
        made = groups()
        if not made:
            pytest.skip("memory groups cannot be made here")
    abandoned = made[0].with_name("sandbox-999999999")
    (abandoned / "0").mkdir(parents=True)
    async with open_pool(Config(work_root=work_root)):
        assert not abandoned.exists()


@pytest.mark.skipif(not Path("/sys/fs/cgroup/memory").exists() or os.geteuid() != 0, reason="no memory groups to make")
async def test_a_keeper_leaves_the_memory_groups_of_a_living_one_alone(work_root: Path, directory: Path) -> None:
    """Runs continue after another service starts on this host, even one that cannot see the first one's processes."""
    async with open_pool(Config(work_root=work_root)) as pool:
        if not (made := groups()):
            pytest.skip("memory groups cannot be made here")
        program = "from sandbox.isolation.memory_group import Groups; own = Groups(); own.make(1); own.remove()"
        elsewhere = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", program]
        await anyio.run_process(elsewhere)
        assert all(group.exists() for group in made)
        async with pool.lease("a") as converter:
            verdict = await converter.run(Command(argv=(sys.executable, "-c", ""), directory=directory))
    assert verdict.ending is Ending.OK


def groups() -> list[Path]:
    """The memory groups of keepers below this process; those of others may vanish meanwhile."""
    owners = {str(pid) for pid in processes_below()}
    found = [Path(place, name) for place, names, _ in os.walk("/sys/fs/cgroup/memory") for name in names]
    return [path for path in found if path.name.startswith("sandbox-") and path.name.split("-")[1] in owners]


@pytest.mark.skipif(not Path("/sys/fs/cgroup/memory").exists() or os.geteuid() != 0, reason="no memory groups to make")
async def test_a_keeper_that_is_asked_to_end_after_its_spawner_kills_nobody(work_root: Path) -> None:
    """It tells how its spawner has ended, whose id may be that of another process by then."""
    with capture_logs() as log:
        async with open_pool(Config(work_root=work_root)):
            if not (made := groups()):
                pytest.skip("memory groups cannot be made here")
            keeper = int(made[0].name.split("-")[1])
            [spawner] = [pid for pid in processes_below(keeper) if parent_of(pid) == keeper]
            async with await anyio.open_process(["sleep", "1000"]) as busy:
                (made[0] / "0" / "tasks").write_text(str(busy.pid))  # which the keeper waits for
                os.kill(spawner, signal.SIGKILL)
                await until(lambda: not Path(f"/proc/{spawner}").exists())
                os.kill(keeper, signal.SIGTERM)
                await until(lambda: [entry for entry in log if entry["event"] == "sandbox.spawner_lost"])
                busy.kill()
    assert [entry["reason"] for entry in log if "reason" in entry] == ["it was killed by signal 9 (Killed)"]
