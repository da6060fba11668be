"""The test before the first run: jailed programs must reach nothing private, and launchers must work like plain exec.

The targets are real: the service's own secrets and files, its process and another run's directory, plus canaries for
targets that may not exist. The tests run as ordinary commands, so they test exactly what conversions use.
"""

import errno
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import anyio

from sandbox import probe
from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Ogr2ogr
from sandbox.interpreter import PYTHON
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.locked_directory import LockedDirectory
from sandbox.report import LauncherReport
from sandbox.verdict import Ending, Verdict

RunBy = Callable[[Command, LauncherName | None], Awaitable[Verdict]]

_LIMITS = Limits(wall_seconds=20, cpu_seconds=15)
_STARTING_SECONDS = 30
"""How long the start of the service waits for a launcher. One that takes longer is tested with a later command."""
_TRY_SECONDS = 0.02
_LOOKED_AT = 50
_OUTSIDE = "a file outside"
_CANARY = "id,secret\n1,canary\n"
_LONGEST_PLACE = 88
"""The longest path of a place for temporary files: the address of a Unix socket below it has at most 107 bytes."""
_SHORT_PLACE = "/tmp"  # noqa: S108 -- a directory of our own is made in it
_NOBODY_ANSWERS = {"GDAL_HTTP_TIMEOUT": "1"}
"""A canary hears who connects to it and says nothing, for which GDAL would wait as long as a run may take."""
_SAMPLE_NAME = "in.geojson"
_SAMPLE = (
    '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"Žižkov \\"3\\""},'
    '"geometry":{"type":"Point","coordinates":[14.45,50.08]}}]}'
)
_CONVERTED = tuple(f'X,Y,name{end}\n14.45,50.08,"Žižkov ""3"""\n'.encode() for end in ("", ","))
"""The sample as the GDALs that we know convert it; 3.6 ends the line of names with a comma."""


class SelfTest:
    """Attacks on what is private, and conversions to compare, with every configured launcher."""

    def __init__(self, config: Config, private: Mapping[str, Path]) -> None:
        self._config = config
        self._private = private

    async def performed(self, run: RunBy) -> tuple[tuple[str, ...], tuple[LauncherReport, ...]]:
        """Test what runs from the start; returns the names of what was reached, and a report per launcher.

        If anything was reached, this host must not convert untrusted files.
        """
        when_up = partial(_run_when_up, run)
        with self._attack(when_up) as attack, _own_directory(self._other_root) as home:
            reached = await attack.by_python(LauncherName.EXEC)
            trial = _Trial(when_up, self._config, home, attack)
            reports = await trial.reports()
            return tuple(dict.fromkeys((*reached, *trial.reached))), tuple(reports)

    async def trouble_with(self, server: LauncherName, run: RunBy) -> tuple[str, tuple[str, ...]]:
        """Why a server that has started since cannot be used, if so, and what a program reaches that it starts.

        Raises:
            OSError: the server has not become ready, or the program has not come to its end: this proves nothing.
        """
        if server is LauncherName.FORK_SERVER and self._config.ogr2ogr is not None:
            with self._attack(run) as attack, _own_directory(self._other_root) as home:
                trial = _Trial(run, self._config, home, attack)
                return await trial.trouble(self._config.ogr2ogr), tuple(trial.reached)
        reached = await self._reached_by(server, run)
        return (f"a program that it started reached {', '.join(reached)}" if reached else ""), reached

    async def _reached_by(self, server: LauncherName, run: RunBy) -> tuple[str, ...]:
        """What a program reaches that a Python server starts."""

        async def run_there(command: Command, launcher: LauncherName | None) -> Verdict:
            verdict = await run(command, launcher)
            if verdict.ending is not Ending.OK:
                raise OSError(errno.EAGAIN, f"the probe ended by {verdict.ending} {verdict.detail}".strip())
            return verdict

        with self._attack(run_there) as attack:
            return await attack.by_python(server)

    @property
    def _other_root(self) -> Path:
        return self._config.memory_root or self._config.work_root

    @contextmanager
    def _attack(self, run: RunBy) -> Iterator["_Attack"]:
        work_root = self._config.work_root
        with (
            _own_directory(work_root) as home,
            _own_directory(self._other_root) as other_home,
            _directory(other_home) as other_run,
            _canaries() as canaries,
        ):
            _write(other_run / "secret", _CANARY)
            # Parents of the work root are visible, but they contain nothing else.
            private = {name: path for name, path in self._private.items() if not work_root.is_relative_to(path)}
            targets = {**private, **_processes(), "another run's directory": other_run}
            yield _Attack(run, self._config, home, canaries, targets)


def _processes() -> dict[str, Path]:
    """The processes to attack: this one, and /proc for all others."""
    own = Path(f"/proc/{os.getpid()}")
    return {"the service's environment": own / "environ", "the service's memory": own / "mem", "/proc": own.parent}


class _Attack:
    """A jailed Python program that tries to reach every target."""

    def __init__(
        self, run: RunBy, config: Config, home: Path, canaries: "_Canaries", targets: Mapping[str, Path]
    ) -> None:
        self._run = run
        self._config = config
        self._home = home
        self.canaries = canaries
        self._targets = targets

    @property
    def files(self) -> dict[str, Path]:
        """One file of each target that has any, for programs that only read files."""
        found = {name: _file_in(path) for name, path in self._targets.items() if not path.is_relative_to("/proc")}
        return {name: path for name, path in found.items() if path is not None} | {_OUTSIDE: self.canaries.file}

    async def by_python(self, launcher: LauncherName) -> tuple[str, ...]:
        """What the program reaches when `launcher` starts it.

        Raises:
            OSError: this host has no space for the test.
            SandboxUnavailable: no program can be started on it.
        """
        with _directory(self._home) as directory:
            paths = {_OUTSIDE: self.canaries.file, f"the listing of {_OUTSIDE}": self.canaries.file.parent}
            tried = {name: str(path) for name, path in (paths | dict(self._targets)).items()}
            _write(directory / probe.TARGETS, json.dumps({"paths": tried, **self.canaries.addresses}))
            exec_only = launcher is LauncherName.EXEC
            # As a script it needs no other file of this package, and no other package.
            how = ("-I", "-S", probe.__file__) if exec_only else ("-P", "-m", probe.MODULE)
            environment = {"LC_ALL": "C.UTF-8"} if exec_only else self._config.python.environment
            command = Command(argv=(PYTHON, *how), directory=directory, environment=environment, limits=_LIMITS)
            verdict = await self._run(command, launcher)
            if verdict.ending is Ending.DISK_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
            if verdict.ending is Ending.INTERNAL and not verdict.launcher:
                raise SandboxUnavailable(
                    f"The sandbox cannot start programs ({verdict.detail}). It needs memory, processes and open files: "
                    "see `ulimit -a`."
                )
            if verdict.ending is not Ending.OK:
                return (f"unknown, the probe ended by {verdict.ending} {verdict.detail}".strip(),)
            reached = json.loads(_read(directory / probe.RESULT))
            return (*reached, *(name for name in self.canaries.heard() if name not in reached))


def _file_in(path: Path) -> Path | None:
    """The file at `path`, or one of the first files below it."""
    try:
        if path.is_file():
            return path
        return next((found for found in islice(path.rglob("*"), _LOOKED_AT) if found.is_file()), None)
    except OSError:
        return None


class _Canaries:
    """Targets that exist only for the test, and whether they were reached."""

    def __init__(self, file: Path, listeners: Mapping[str, socket.socket], abstract: str) -> None:
        self.file = file
        self.addresses = {
            "tcp": listeners["a TCP listener"].getsockname()[1],
            "udp": listeners["a UDP listener"].getsockname()[1],
            "unix": listeners["a Unix socket"].getsockname(),
            "abstract": abstract,
        }
        self._listeners = listeners

    def heard(self) -> list[str]:
        """The listeners that were contacted since the last call."""
        return [name for name, listener in self._listeners.items() if _was_reached(listener)]


@contextmanager
def _canaries() -> Iterator[_Canaries]:
    with ExitStack() as stack:
        is_short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_PLACE
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=None if is_short else _SHORT_PLACE)))
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


def _unavailable(ogr2ogr: Ogr2ogr, config: Config) -> str:
    if LauncherName.FORK_SERVER not in config.launchers:
        return "left out by configuration"
    return "" if ogr2ogr.fork_server else "its library is not built from these sources: that takes a C compiler"


class _Trial:
    """Conversions of a sample, to compare with what it must become, and conversions of private files."""

    def __init__(self, run: RunBy, config: Config, directory: Path, attack: _Attack) -> None:
        self._run = run
        self._config = config
        self._directory = directory
        self._canaries = attack.canaries
        self._files = attack.files
        self.reached: list[str] = []

    async def reports(self) -> list[LauncherReport]:
        """Test the fork server, and plain exec if the fork server cannot be used."""
        ogr2ogr = self._config.ogr2ogr
        plain = LauncherReport(name=LauncherName.EXEC, active=True)
        if ogr2ogr is None:
            return [plain]
        is_tested = True
        try:
            reason = _unavailable(ogr2ogr, self._config) or await self.trouble(ogr2ogr)
        except BlockingIOError as error:
            reason, is_tested = f"it was not tested: {error.strerror}", False
        if reason:
            await self._attack(plain.name, ogr2ogr)
        fast = LauncherReport(name=LauncherName.FORK_SERVER, active=not reason, reason=reason, is_tested=is_tested)
        return [fast, plain]

    async def trouble(self, ogr2ogr: Ogr2ogr) -> str:
        """Why the fork server cannot be used, or an empty string.

        Raises:
            OSError: it has not become ready, or a run has not come to its end.
        """
        converted = await self._convert(LauncherName.FORK_SERVER, ogr2ogr, _SAMPLE_NAME)
        if converted not in _CONVERTED:  # another GDAL may spell it differently
            expected = await self._convert(LauncherName.EXEC, ogr2ogr, _SAMPLE_NAME)
            if not expected:
                return "even plain exec does not convert a sample"
            if converted != expected:
                return "it does not convert a sample as plain exec does"
        got = await self._attack(LauncherName.FORK_SERVER, ogr2ogr)
        return f"a conversion that it started reached {', '.join(got)}" if got else ""

    async def _attack(self, name: LauncherName, ogr2ogr: Ogr2ogr) -> list[str]:
        """What conversions reach when this launcher starts them."""
        # The prefix makes GDAL open a file as CSV whatever its extension.
        got = [what for what, path in self._files.items() if await self._convert(name, ogr2ogr, f"CSV:{path}")]
        await self._convert(name, ogr2ogr, f"/vsicurl/http://127.0.0.1:{self._canaries.addresses['tcp']}/canary.csv")
        got += self._canaries.heard()
        self.reached += got
        return got

    async def _convert(self, launcher: LauncherName, ogr2ogr: Ogr2ogr, source: str) -> bytes:
        """The source converted to CSV, or no bytes if the conversion fails."""
        with _directory(self._directory) as place:
            _write(place / _SAMPLE_NAME, _SAMPLE)
            command = Command(
                argv=(str(ogr2ogr.program), "-f", "CSV", "-lco", "GEOMETRY=AS_XY", "out.csv", source),
                directory=place,
                environment={**ogr2ogr.environment, **_NOBODY_ANSWERS},
                limits=_LIMITS,
            )
            verdict = await self._run(command, launcher)
            if launcher is LauncherName.FORK_SERVER and verdict.ending in {Ending.INTERNAL, Ending.WALL_TIME}:
                how = f"a sample ended by {verdict.ending} {verdict.detail}" if verdict.launcher else "it is not ready"
                raise OSError(errno.EAGAIN, how.strip())
            return _read(place / "out.csv")


async def _run_when_up(run: RunBy, command: Command, launcher: LauncherName | None) -> Verdict:
    """Run with one launcher, which may still be starting."""
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
    own = LockedDirectory(work_root, ".selftest")
    try:
        yield own.path
    finally:
        own.remove()
