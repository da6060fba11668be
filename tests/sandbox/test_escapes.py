"""A hostile program with each launcher, and without layers that hosts may lack."""

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr
from sandbox.process.connection import Connection
from sandbox.verdict import Ending, Verdict
from tests.sandbox.escapes import compile_hostile, surroundings
from tests.sandbox.processes import command_line, processes_below
from tests.sandbox.runs import run_with

SUCCEEDED, REFUSED = 0, 1

# What a host loses that lacks a layer; a hostile program must not get more than this.
LEVELS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "every layer": (frozenset(), frozenset()),
    "no namespaces": (frozenset({"namespaces"}), frozenset({"see a file outside", "see another run's file"})),
    "no Landlock": (frozenset({"Landlock"}), frozenset({"list the root", "list the work root"})),
    "no user of its own": (frozenset({"unprivileged user"}), frozenset()),
    "no system-call filter": (
        frozenset({"system-call filter"}),
        frozenset(
            {
                "netlink socket",
                "fork",
                "signal all",
                "new namespace",
                "io_uring",
                "anonymous file",
                "keyring",
                "page faults",
                "count events",
                "share by number",
                "process in a new namespace",
                "secret memory",
            }
        ),
    ),
}
SUFFICE = frozenset({"Landlock", "system-call filter"})
"""What isolates runs without namespaces."""
HARMLESS_CONTROL = (
    "read a file outside",
    "read another run's file",
    "see a file outside",
    "list the root",
    "list another run's directory",
    "write outside",
    "write over a file outside",
    "connect by TCP",
    "send by UDP",
    "connect to a Unix socket",
    "connect to an abstract socket",
    "execute a shell",
    "fork",
    "symbolic link",
)
OGR2OGR_LAUNCHERS = (LauncherName.EXEC, LauncherName.FORK_SERVER)
NOTHING = frozenset(
    {
        "namespaces",
        "Landlock",
        "system-call filter",
        "unprivileged user",
        "no capabilities",
        "no new privileges",
    }
)


@pytest.fixture(scope="module")
def hostile(public: Path) -> Path:
    """The hostile program."""
    program = compile_hostile(public)
    if program is None:
        pytest.skip("no C compiler")
    return program


class Attacker:
    """Runs the hostile program with one launcher."""

    def __init__(self, connection: Connection, config: Config, launcher: LauncherName) -> None:
        self._connection = connection
        self._config = config
        self._launcher = launcher
        self._count = 0

    async def attack(self, *arguments: str, **limits: float) -> tuple[Verdict, Path]:
        """Run the program once; return its verdict and its directory."""
        assert self._config.ogr2ogr is not None
        self._count += 1
        directory = self._config.work_root / f"run{self._count}"
        directory.mkdir()
        (directory / "in").write_text("x")
        command = Command(
            argv=(str(self._config.ogr2ogr.program), *arguments),
            directory=directory,
            limits=Limits(**{"wall_seconds": 10, **limits}),  # type: ignore[arg-type]  # limits of several types
        )
        verdict = await run_with(self._connection, self._launcher, command)
        return verdict, directory

    async def succeeding(self, attacks: dict[str, tuple[str, ...]]) -> set[str]:
        """The attacks that succeed."""
        found = set()
        for name, arguments in attacks.items():
            verdict, _ = await self.attack(*arguments)
            assert verdict.exit_code in {SUCCEEDED, REFUSED} or verdict.ending is Ending.SIGNAL, (name, verdict)
            if verdict.exit_code == SUCCEEDED:
                found.add(name)
        return found


@asynccontextmanager
async def attacker(config: Config, launcher: LauncherName) -> AsyncIterator[Attacker]:
    """A pool without the self-test, whose samples this program does not convert."""
    connection = Connection(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use([launcher])
        yield Attacker(connection, config, launcher)
        connection.close()


def configuration(public: Path, hostile: Path, library: Path, without: frozenset[str]) -> tuple[Config, Path]:
    """A pool of one slot, and a directory outside it."""
    base = Path(tempfile.mkdtemp(dir=public))
    base.chmod(0o755)
    work_root, outside = base / "work", base / "outside"
    work_root.mkdir()
    outside.mkdir()
    ogr2ogr = Ogr2ogr(program=hostile, fork_server=library)
    config = Config(work_root=work_root, mode=Mode.BEST_EFFORT, converters=1, ogr2ogr=ogr2ogr, without=without)
    return config, outside


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("launcher", OGR2OGR_LAUNCHERS)
async def test_a_hostile_program_gets_nothing_that_its_layers_guard(
    public: Path, hostile: Path, library: Path, launcher: LauncherName, level: str, *, in_namespaces: bool
) -> None:
    """With any launcher, only attacks that the missing layer prevents get through."""
    without, losses = LEVELS[level]
    if not in_namespaces:
        if without & SUFFICE:
            pytest.skip("this host refuses namespaces, without which strict mode requires both other layers")
        losses |= LEVELS["no namespaces"][1]
    config, outside = configuration(public, hostile, library, without)
    with surroundings(config.work_root, outside) as attacks:
        if os.geteuid() != 0 and level == "no system-call filter":
            losses |= {
                "become root",  # of its namespace, which it is already: the ordinary user to everybody else
                "limit parent",  # the spawner, which has the same user; it is replaced
            }
        async with attacker(config, launcher) as tries:
            assert (await tries.attack("nothing"))[0].exit_code == SUCCEEDED
            assert await tries.succeeding(attacks) <= losses
    assert (outside / "canary").read_text() == "canary"
    assert not list((outside / "writable").iterdir())


async def test_the_same_attacks_get_through_where_there_are_no_layers(
    public: Path, hostile: Path, library: Path
) -> None:
    """The attacks are real: without layers they succeed."""
    config, outside = configuration(public, hostile, library, NOTHING)
    with surroundings(config.work_root, outside) as attacks:
        harmless = {name: attacks[name] for name in HARMLESS_CONTROL}
        async with attacker(config, LauncherName.EXEC) as tries:
            assert await tries.succeeding(harmless) == set(harmless)


@pytest.mark.parametrize("launcher", OGR2OGR_LAUNCHERS)
async def test_a_spawner_that_a_run_has_limited_is_replaced(
    public: Path, hostile: Path, library: Path, launcher: LauncherName
) -> None:
    """A run with the spawner's user and no filter can take its descriptors; the next command runs nevertheless."""
    without = frozenset({"system-call filter", "unprivileged user"})
    config, _ = configuration(public, hostile, library, without)
    async with attacker(config, launcher) as tries:
        for _ in range(2):
            assert (await tries.attack("limit parent"))[0].exit_code == SUCCEEDED
            assert (await tries.attack("nothing"))[0].exit_code == SUCCEEDED


@pytest.mark.parametrize("without", [frozenset[str](), frozenset({"system-call filter"})], ids=["refused", "swept"])
@pytest.mark.parametrize("launcher", OGR2OGR_LAUNCHERS)
async def test_a_daemon_is_gone_when_its_run_is(
    public: Path, hostile: Path, library: Path, launcher: LauncherName, without: Sequence[str]
) -> None:
    """A program that leaves its session, group and parent leaves no process behind."""
    config, _ = configuration(public, hostile, library, frozenset(without))
    async with attacker(config, launcher) as tries:
        _, directory = await tries.attack("daemon")
        assert (directory / "daemon").exists() == bool(without)
        assert not [pid for pid in processes_below() if b"daemon" in command_line(pid)]


@pytest.mark.parametrize("launcher", OGR2OGR_LAUNCHERS)
async def test_a_fork_bomb_makes_no_process(public: Path, hostile: Path, library: Path, launcher: LauncherName) -> None:
    """Every fork is refused, and the pool continues."""
    config, _ = configuration(public, hostile, library, frozenset())
    async with attacker(config, launcher) as tries:
        assert (await tries.attack("fork bomb"))[0].exit_code == REFUSED
        assert (await tries.attack("nothing"))[0].exit_code == SUCCEEDED
