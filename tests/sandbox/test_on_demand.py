"""The Python server that runs only while its modules are used: its children are as confined as all others."""

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from sandbox import probe
from sandbox.config import LauncherName, PythonServer
from sandbox.verdict import Ending, Verdict
from tests.sandbox.processes import command_line, processes_below
from tests.sandbox.test_launchers import (
    IN_THE_SERVERS_GROUP,
    Place,
    Pool,
    SharedPool,
    make_place,
    opened,
    python_environment,
)
from tests.support.patience import PATIENCE_SECONDS, until

RARE = "rare_module"
THREADED = "threaded_module"
BROKEN = "broken_module"
LINKED = "linked_module"
WRITING = "writing_module"
SPARING = "sparing_module"
SLOW = "slow_module"
ATTACKING = "attacking_module"
MODULES = {
    RARE: """
import fcntl, os, sys
if __name__ != "__main__":
    HELD = open(__file__)
def tries(function):
    try:
        function()
    except OSError:
        return False
    return True
if __name__ == "__main__":
    how, *rest = sys.argv[1:]
    if how == "processor":
        while True: pass
    if how == "memory":
        print(len(bytearray(1 << 30)))
    if how == "file":
        with open("large", "wb") as file:
            while True: file.write(bytes(1 << 16))
    if how == "fork":
        for attempt in range(100):
            if tries(os.fork): sys.exit("a process was made")
    if how == "thread":
        import _thread
        try:
            _thread.start_new_thread(print, ())
        except RuntimeError:
            sys.exit()
        sys.exit("a thread was started")
    if how == "leave":
        for number in range(64):
            tries(lambda: fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND))
            tries(lambda: os.lseek(number, 7, os.SEEK_SET))
        sys.left = True
        open("left", "w").close()
    if how == "look":
        null = os.stat("/dev/null")
        import rare_module
        if not os.path.samestat(os.fstat(rare_module.HELD.fileno()), null): print("not replaced", file=sys.stderr)
        for number in range(3, 1024):
            try:
                found, flags = os.fstat(number), fcntl.fcntl(number, fcntl.F_GETFL)
            except OSError:
                continue
            if not os.path.samestat(found, null): print("open:", number, file=sys.stderr)
            if flags & (os.O_NONBLOCK | os.O_APPEND): print("flags:", number, flags, file=sys.stderr)
        if os.path.exists("left"): print("a file of another run", file=sys.stderr)
        if hasattr(sys, "left"): print("a value of another run", file=sys.stderr)
    if how == "signal":
        os.kill(os.getppid(), int(rest[0]))
""",
    THREADED: """
import threading, time
if __name__ != "__main__":
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
""",
    LINKED: """
import socket
if __name__ != "__main__":
    LINK = socket.socketpair()
""",
    WRITING: """
import os
if __name__ != "__main__":
    FILE = os.memfd_create("file")
""",
    SPARING: """
import os
if __name__ != "__main__":
    FILE = os.memfd_create("file")
    try:
        os.write(FILE, b"code")
    except OSError:
        os.close(FILE)
else:
    os.write(os.open("result", os.O_CREAT | os.O_WRONLY), b"result")
""",
    SLOW: """
import os, time
while not os.path.exists(__file__ + ".go-on"): time.sleep(0.02)
""",
    ATTACKING: """
import pathlib, sys
from sandbox import probe
if __name__ == "__main__":
    pathlib.Path(probe.TARGETS).write_text(sys.argv[1])
    probe.main()
    print(pathlib.Path(probe.RESULT).read_text(), file=sys.stderr)
""",
    BROKEN: "import no_such_module_anywhere\n",
}


@pytest.fixture
def place(public: Path) -> Place:
    """A directory that other users can traverse."""
    return make_place(public, None)


def prepared(place: Place, idle_seconds: float) -> PythonServer:
    """A configuration with the modules, all of which are rare."""
    for name, code in MODULES.items():
        (place.path / "modules" / f"{name}.py").write_text(code)
    return PythonServer(rare_modules=(RARE,), environment=python_environment(place), idle_seconds=idle_seconds)


@asynccontextmanager
async def on_demand(
    place: Place,
    modules: tuple[str, ...] = (RARE,),
    idle_seconds: float = 600,
    without: frozenset[str] = frozenset(),
) -> AsyncIterator[Pool]:
    """A pool that loads `modules` on demand."""
    python = msgspec.structs.replace(prepared(place, idle_seconds), rare_modules=modules)
    async with opened(place, python=python, without=without) as pool:
        yield pool


@pytest.fixture(scope="module")
def pool(public: Path) -> Iterator[SharedPool]:
    """One for tests that leave its server as it is."""
    place = make_place(public, None)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(on_demand(place)) as pool:
        yield SharedPool(portal, pool, place)


def argv(*arguments: str, module: str = RARE) -> tuple[str, ...]:
    """The command that runs a module."""
    return (sys.executable, "-m", module, *arguments)


def servers() -> set[int]:
    """The servers of rare modules below this process."""
    return {pid for pid in processes_below() if b"zygote" in command_line(pid) and is_rare(pid)}


def is_rare(pid: int) -> bool:
    """Whether the process loads modules of these tests."""
    return any(f"\0{name}\0".encode() in command_line(pid) for name in MODULES)


async def none_left() -> None:
    """Wait until no server runs."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while servers():  # noqa: ASYNC110 - other processes end
            await anyio.sleep(0.01)


async def run(pool: Pool, *arguments: str, launcher: LauncherName | None = None, module: str = RARE) -> Verdict:
    """Run a module with the first launcher that takes it."""
    verdict, _ = await pool.run(launcher, argv(*arguments, module=module), pool.config.python.environment)
    return verdict


async def test_it_starts_with_the_first_command_which_it_runs(place: Place) -> None:
    """There is no server before; then one, which runs all commands that came meanwhile."""
    launchers: list[str] = []
    async with on_demand(place) as pool:
        assert servers() == set()

        async def one(slot: int) -> None:
            verdict, _ = await pool.run(None, argv("look"), pool.config.python.environment, slot)
            launchers.append(verdict.launcher)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, 0)
            tasks.start_soon(one, 1)
        assert launchers == [LauncherName.RARE_PYTHON_SERVER] * 2
        assert len(servers()) == 1


async def test_a_command_that_waits_for_it_can_be_cancelled(place: Place) -> None:
    """Without waiting until the server is ready, which then runs the next command."""
    async with on_demand(place, modules=(RARE, SLOW)) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, pool, "look")
            await until(servers)
            (starting,) = servers()
            tasks.cancel_scope.cancel()
        assert servers() == {starting}
        (place.path / "modules" / f"{SLOW}.py.go-on").touch()
        verdict = await run(pool, "look")
        assert (verdict.launcher, verdict.ending) == (LauncherName.RARE_PYTHON_SERVER, Ending.OK)
        assert servers() == {starting}


async def test_what_it_starts_reaches_nothing_outside(place: Place) -> None:
    """The attacks of the self-test, which makes them with the server that is always up."""
    with ExitStack() as stack:
        kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
        tcp, udp = (stack.enter_context(socket.socket(socket.AF_INET, kind)) for kind in kinds)
        unix, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in kinds)
        for listener, address in ((tcp, ("127.0.0.1", 0)), (udp, ("127.0.0.1", 0)), (unix, f"{place.path}/socket")):
            listener.bind(address)
        abstract.bind(f"\0{ATTACKING}-{os.getpid()}")
        for listener in (tcp, unix, abstract):
            listener.listen()
        outside = place.path / "secret"
        outside.write_text("secret")
        paths = {name: str(path) for name, path in (("file", outside), ("folder", place.path))}
        own = Path(f"/proc/{os.getpid()}")
        targets = {
            "paths": {**paths, "environment": str(own / "environ"), "/proc": "/proc"},
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": f"{place.path}/socket",
            "abstract": f"{ATTACKING}-{os.getpid()}",
        }
        for attempt in probe.attempts(**targets).values():
            attempt()  # everything is there, for this process
        async with on_demand(place, modules=(ATTACKING,)) as pool:
            verdict = await run(pool, json.dumps(targets), module=ATTACKING)
    assert (verdict.launcher, verdict.ending) == (LauncherName.RARE_PYTHON_SERVER, Ending.OK)
    assert json.loads(verdict.untrusted_stderr) == []


async def test_it_ends_when_it_is_not_used_and_starts_again(place: Place) -> None:
    """Its memory is the host's again, and the next command gets a new one."""
    async with on_demand(place, idle_seconds=0.2) as pool:
        for _ in range(2):
            verdict = await run(pool, "look")
            assert (verdict.launcher, verdict.ending) == (LauncherName.RARE_PYTHON_SERVER, Ending.OK)
            await none_left()
    assert servers() == set()


async def test_it_ends_with_its_pool(place: Place) -> None:
    """No process of it is left."""
    async with on_demand(place) as pool:
        await run(pool, "look")
        assert servers()
    await none_left()


@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP])
async def test_its_loss_costs_no_command_and_no_run(place: Place, loss: signal.Signals) -> None:
    """Commands start elsewhere until it is back; what it has started runs on."""
    endings: list[Ending] = []
    async with on_demand(place, without=IN_THE_SERVERS_GROUP) as pool:
        await run(pool, "look")
        (server,) = servers()

        async def endless() -> None:
            environment = pool.config.python.environment
            verdict, _ = await pool.run(None, argv("processor"), environment, 1, wall_seconds=4)
            endings.append(verdict.ending)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endless)
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(servers()) < 2 and not endings:  # noqa: ASYNC110 - another process forks
                    await anyio.sleep(0.005)
            os.kill(server, loss)
            assert (await run(pool, "look")).ending is Ending.OK
        assert endings == [Ending.WALL_TIME]
        assert (await run(pool, "look", launcher=LauncherName.RARE_PYTHON_SERVER)).ending is Ending.OK
        assert server not in servers()


@pytest.mark.parametrize(
    ("module", "ending"),
    [
        (THREADED, Ending.OK),
        (LINKED, Ending.OK),
        (WRITING, Ending.OK),
        (BROKEN, Ending.EXIT),
    ],
)
async def test_modules_that_a_server_cannot_hold_are_started(place: Place, module: str, ending: Ending) -> None:
    """One that starts a thread, which a fork would not copy, that keeps open what forks would share, or is broken."""
    async with on_demand(place, modules=(RARE, module)) as pool:
        for _ in range(2):
            verdict = await run(pool, module=module)
            assert (verdict.launcher, verdict.ending) == (LauncherName.EXEC, ending)


async def test_modules_that_can_do_without_a_file_keep_none(place: Place) -> None:
    """As the library behind ctypes: it keeps only a file that it can write. What the server starts may write."""
    async with on_demand(place, modules=(SPARING,)) as pool:
        verdict = await run(pool, module=SPARING)
        (server,) = servers()
        assert resource.prlimit(server, resource.RLIMIT_FSIZE) == resource.getrlimit(resource.RLIMIT_FSIZE)
    assert (verdict.launcher, verdict.ending) == (LauncherName.RARE_PYTHON_SERVER, Ending.OK)


@pytest.mark.parametrize(
    ("how", "limits", "ending"),
    [
        ("processor", {"cpu_seconds": 1}, Ending.CPU_TIME),
        ("processor", {"wall_seconds": 0.3}, Ending.WALL_TIME),
        ("memory", {"memory_bytes": 400 << 20}, Ending.MEMORY),
        ("file", {"file_bytes": 100_000}, Ending.OUTPUT_SIZE),
        ("fork", {}, Ending.OK),
        ("thread", {}, Ending.OK),
    ],
)
def test_a_child_has_the_limits_of_every_run(
    pool: SharedPool, how: str, limits: dict[str, float], ending: Ending
) -> None:
    """Memory, time, files, processes and threads, although its program started before; the server survives them."""
    environment = python_environment(pool.place)
    before = servers()
    verdict, _ = pool.run(LauncherName.RARE_PYTHON_SERVER, argv(how), environment, **limits)
    assert verdict.ending is ending, verdict
    verdict, _ = pool.run(LauncherName.RARE_PYTHON_SERVER, argv("look"), environment)
    assert verdict.ending is Ending.OK
    assert before <= servers()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_child_cannot_signal_the_server(pool: SharedPool, number: signal.Signals) -> None:
    """Whatever it sends, the server serves the next command."""
    environment = python_environment(pool.place)
    pool.run(LauncherName.RARE_PYTHON_SERVER, argv("look"), environment)
    before = servers()
    pool.run(LauncherName.RARE_PYTHON_SERVER, argv("signal", str(number.value)), environment)
    verdict, _ = pool.run(LauncherName.RARE_PYTHON_SERVER, argv("look"), environment)
    assert verdict.ending is Ending.OK
    assert before == servers()


def test_a_child_finds_nothing_of_the_one_before(pool: SharedPool) -> None:
    """What the modules keep open is an empty device of its own; no flag, value or file is left."""
    environment = python_environment(pool.place)
    for how in ("look", "leave", "look"):
        verdict, _ = pool.run(LauncherName.RARE_PYTHON_SERVER, argv(how), environment)
        assert (verdict.ending, verdict.untrusted_stderr) == (Ending.OK, b"")
