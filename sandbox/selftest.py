"""At start-up: a jailed probe must not get at a canary, and a launcher must do what plain exec does.

Done from outside, through the same path as every command, so that what is tested is what is used.
"""

import json
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio

from sandbox import probe
from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Ogr2ogr
from sandbox.own_directory import OwnDirectory
from sandbox.report import LauncherReport
from sandbox.verdict import Ending, Verdict

RunBy = Callable[[Command, LauncherName | None], Awaitable[Verdict]]

_LIMITS = Limits(wall_seconds=20, cpu_seconds=15)
_STARTING_SECONDS = 8
_TRY_SECONDS = 0.02
_CANARY = "id,secret\n1,canary\n"
_SAMPLE_NAME = "in.geojson"
_SAMPLE = (
    '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"Žižkov \\"3\\""},'
    '"geometry":{"type":"Point","coordinates":[14.45,50.08]}}]}'
)


async def escapes(run: RunBy, config: Config, launcher: LauncherName) -> tuple[str, ...]:
    """What a jailed program gets at outside of its directory: nothing, or this host cannot be trusted with files."""
    with _own_directory(config.work_root) as home, _directory(home) as directory, _canaries() as canaries:
        package = {"PYTHONPATH": str(Path(__file__).parent.parent), "LC_ALL": "C.UTF-8"}
        command = Command(
            argv=(sys.executable, "-P", "-m", probe.MODULE, *canaries.addresses),
            directory=directory,
            environment=package if launcher is LauncherName.EXEC else config.python.environment,
            limits=_LIMITS,
        )
        verdict = await _run_when_up(run, command, launcher)
        if verdict.ending is not Ending.OK:
            return (f"unknown, the probe ended by {verdict.ending} {verdict.detail}".strip(),)
        reached = json.loads(_read(directory / probe.RESULT))
        return (*reached, *(name for name in canaries.heard() if name not in reached))


class _Canaries:
    """What must not be reached, where it is, and which of it was."""

    def __init__(self, file: Path, listeners: Mapping[str, socket.socket], abstract: str) -> None:
        ports = [str(listeners[name].getsockname()[1]) for name in ("a TCP listener", "a UDP listener")]
        self.file = str(file)
        self.tcp_port = ports[0]
        self.addresses = (self.file, *ports, listeners["a Unix socket"].getsockname(), abstract)
        self._listeners = listeners

    def heard(self) -> list[str]:
        """The listeners that someone spoke to since the last call."""
        return [name for name, listener in self._listeners.items() if _was_reached(listener)]


@contextmanager
def _canaries() -> Iterator[_Canaries]:
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        outside.chmod(0o755)
        (outside / "canary").write_text(_CANARY, encoding="utf-8")
        abstract = secrets.token_hex(8)
        wanted: dict[str, tuple[int, int, str | tuple[str, int]]] = {
            "a TCP listener": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "a UDP listener": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "a Unix socket": (socket.AF_UNIX, socket.SOCK_STREAM, str(outside / "socket")),
            "an abstract socket": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
        }
        listeners = {name: stack.enter_context(_listener(*how)) for name, how in wanted.items()}
        (outside / "socket").chmod(0o777)
        yield _Canaries(outside / "canary", listeners, abstract)


def _listener(family: int, kind: int, address: str | tuple[str, int]) -> socket.socket:
    listener = socket.socket(family, kind)
    listener.bind(address)
    listener.setblocking(False)
    if kind == socket.SOCK_STREAM:
        listener.listen()
    return listener


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(100)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


async def launchers(run: RunBy, config: Config) -> tuple[LauncherReport, ...]:
    """Try the launchers, for ogr2ogr the fastest first and only until one does what plain exec does."""
    return (*await _for_ogr2ogr(run, config), await _for_python(run, config))


async def _for_python(run: RunBy, config: Config) -> LauncherReport:
    name = LauncherName.PYTHON_SERVER
    reason = "left out by configuration"
    if name in config.launchers:
        reached = await escapes(run, config, name)
        reason = f"a program that it started reached {', '.join(reached)}" if reached else ""
    return LauncherReport(name=name, active=not reason, reason=reason)


async def _for_ogr2ogr(run: RunBy, config: Config) -> list[LauncherReport]:
    reports: list[LauncherReport] = []
    if config.ogr2ogr is not None:
        with _own_directory(config.memory_root or config.work_root) as directory, _canaries() as canaries:
            trial = _Trial(run, config.ogr2ogr, directory, canaries)
            for name in (LauncherName.FORK_SERVER, LauncherName.WARM):
                found = any(report.active for report in reports)
                reason = "not needed: a faster one is in use" if found else _unavailable(name, config)
                reason = reason or await trial.trouble(name)
                reports.append(LauncherReport(name=name, active=not reason, reason=reason))
    return [*reports, LauncherReport(name=LauncherName.EXEC, active=True)]


def _unavailable(name: LauncherName, config: Config) -> str:
    if name not in config.launchers:
        return "left out by configuration"
    if name is LauncherName.FORK_SERVER and (config.ogr2ogr is None or config.ogr2ogr.fork_server is None):
        return "its library is not built: that takes a C compiler"
    return ""


class _Trial:
    """Conversions by several launchers, to be compared."""

    def __init__(self, run: RunBy, ogr2ogr: Ogr2ogr, directory: Path, canaries: _Canaries) -> None:
        self._run = run
        self._ogr2ogr = ogr2ogr
        self._directory = directory
        self._canaries = canaries
        self._expected = b""

    async def trouble(self, name: LauncherName) -> str:
        """Why a launcher cannot be used, or nothing."""
        self._expected = self._expected or await self._convert(LauncherName.EXEC, _SAMPLE_NAME)
        if not self._expected:
            return "even plain exec does not convert a sample"
        if await self._convert(name, _SAMPLE_NAME) != self._expected:
            return "it does not convert a sample as plain exec does"
        # The prefix makes GDAL open a file as CSV that is not named so.
        if b"canary" in await self._convert(name, f"CSV:{self._canaries.file}"):
            return "a conversion that it started read a file outside"
        await self._convert(name, f"/vsicurl/http://127.0.0.1:{self._canaries.tcp_port}/canary.csv")
        return "a conversion that it started reached the network" if self._canaries.heard() else ""

    async def _convert(self, launcher: LauncherName, source: str) -> bytes:
        """What is at `source` as CSV; nothing if it does not come to that."""
        with _directory(self._directory) as place:
            _write(place / _SAMPLE_NAME, _SAMPLE)
            command = Command(
                argv=(str(self._ogr2ogr.program), "-f", "CSV", "-lco", "GEOMETRY=AS_XY", "out.csv", source),
                directory=place,
                environment=self._ogr2ogr.environment,
                limits=_LIMITS,
            )
            await _run_when_up(self._run, command, launcher)
            return _read(place / "out.csv")


async def _run_when_up(run: RunBy, command: Command, launcher: LauncherName) -> Verdict:
    """Run by one launcher, which may still be starting."""
    verdict = Verdict(ending=Ending.INTERNAL)
    with anyio.move_on_after(_STARTING_SECONDS):
        while not verdict.launcher:
            verdict = await run(command, launcher)
            if not verdict.launcher:
                await anyio.sleep(_TRY_SECONDS)
    return verdict


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


@contextmanager
def _directory(parent: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _own_directory(work_root: Path) -> Iterator[Path]:
    own = OwnDirectory(work_root, ".selftest")
    try:
        yield own.path
    finally:
        own.remove()
