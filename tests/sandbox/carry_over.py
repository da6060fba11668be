"""What one run leaves for the next: a hijacked converter leaves all it can, and the next one looks for traces.

Run by `test_carry_over.py` as an ordinary user too: `carry_over.py BASE PROGRAM [LIBRARY]` prints what was found.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.process.connection import Connection
from sandbox.verdict import Ending, Verdict
from tests.sandbox.runs import run_with

SOURCE = Path(__file__).with_name("hijacked.c")
REFUSING = Path(__file__).with_name("refusing.c")
PROJ = Path("/usr/share/proj/proj.db")
MARK = "what-nobody-else-may-see"
LEFT = MARK * 120
"""An argument so long that the next, shorter command does not write over all of it."""
SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
LAUNCHERS = (LauncherName.EXEC, LauncherName.FORK_SERVER)
MODULE = """
import fcntl, os, re, sys
if __name__ == "__main__":
    how, mark = sys.argv[1], sys.argv[2].encode()
    null = os.stat("/dev/null")  # which replaces the files that libraries keep open, such as libffi its own code
    for number in range(1024):
        try:
            flags = fcntl.fcntl(number, fcntl.F_GETFL)
        except OSError:
            continue
        if how == "leave":
            fcntl.fcntl(number, fcntl.F_SETFL, flags | os.O_NONBLOCK | os.O_APPEND)
        elif number > 2 and not os.path.samestat(os.fstat(number), null):
            print(f"descriptor {number} is open", file=sys.stderr)
        elif flags & (os.O_NONBLOCK | os.O_APPEND):
            print(f"descriptor {number} has flags {flags:o}", file=sys.stderr)
    if how == "look":
        memory = os.open("/proc/self/mem", os.O_RDONLY)
        for start, end in re.findall(r"(?m)^(\\w+)-(\\w+) rw", open("/proc/self/maps").read()):
            content = os.pread(memory, int(end, 16) - int(start, 16), int(start, 16))
            if mark in content[::-1]:
                print("the memory holds the mark", file=sys.stderr)
"""


class Place(msgspec.Struct, frozen=True):
    """Where runs take place, and their program: hijacked, and with the fork server's library if it was built."""

    base: Path
    program: Path
    library: Path | None = None

    @property
    def work_root(self) -> Path:
        """The parent of the runs' directories."""
        return self.base / "work"

    @property
    def database(self) -> Path:
        """PROJ's database, owned by the user who runs the service."""
        return self.base / "proj" / PROJ.name

    def prepare(self) -> None:
        """Create the files that must exist."""
        for name in ("work", "proj", "modules"):
            (self.base / name).mkdir()
        (self.base / "modules" / "hijacked_module.py").write_text(MODULE)
        self.database.write_bytes(PROJ.read_bytes() if PROJ.exists() else b"")
        self.database.chmod(0o644)

    def config(self, without: frozenset[str]) -> Config:
        """A pool of one slot."""
        environment = {"PROJ_LIB": str(self.database.parent)}
        return Config(
            work_root=self.work_root,
            mode=Mode.BEST_EFFORT,
            converters=1,
            readable=(self.database.parent, self.base / "modules"),
            ogr2ogr=Ogr2ogr(program=self.program, environment=environment, fork_server=self.library),
            python=PythonServer(modules=("hijacked_module",), environment=self.python_environment),
            without=without,
        )

    @property
    def python_environment(self) -> dict[str, str]:
        """The directory of the hijacked module."""
        return {"PYTHONPATH": str(self.base / "modules"), "PYTHONSAFEPATH": "1", "LC_ALL": "C.UTF-8"}


def compile_hijacked(directory: Path, *more: Path) -> Path | None:
    """The hijacked program, linked with `more` and the host's GDAL if there is one; None without a compiler."""
    compiler, ogr2ogr = shutil.which("cc"), shutil.which("ogr2ogr")
    if compiler is None:
        return None
    program = directory / "-".join(("hijacked", *(source.stem for source in more)))
    listed = subprocess.run(["ldd", ogr2ogr], capture_output=True, text=True, check=True).stdout if ogr2ogr else ""
    gdal = [line.split()[2] for line in listed.splitlines() if "libgdal" in line]
    subprocess.run([compiler, "-O1", "-o", program, SOURCE, *more, "-Wl,--no-as-needed", *gdal], check=True)
    return program


class Hijacker:
    """Runs commands of a hijacked converter one after another with one launcher."""

    def __init__(self, connection: Connection, place: Place, launcher: LauncherName) -> None:
        self._connection = connection
        self._place = place
        self._launcher = launcher

    async def run(self, *arguments: str) -> tuple[Verdict, Path]:
        """Run once; return the verdict and the directory."""
        directory = Path(tempfile.mkdtemp(dir=self._place.work_root))
        command = self._command(directory, arguments)
        verdict = await run_with(self._connection, self._launcher, command)
        return verdict, directory

    def _command(self, directory: Path, arguments: tuple[str, ...]) -> Command:
        limits = Limits(wall_seconds=15)
        if self._launcher is LauncherName.PYTHON_SERVER:
            argv = (sys.executable, "-m", "hijacked_module", *arguments)
            return Command(argv=argv, directory=directory, environment=self._place.python_environment, limits=limits)
        environment = {"PROJ_LIB": str(self._place.database.parent)}
        argv = (str(self._place.program), *arguments)
        return Command(argv=argv, directory=directory, environment=environment, limits=limits)

    async def traces(self, how: str = "find") -> list[str]:
        """What a run finds of the previous one; a Python command has to `look` to see its memory."""
        verdict, _ = await self.run("leave", LEFT)
        assert verdict.ending is Ending.OK, verdict
        verdict, _ = await self.run(how, MARK[::-1])
        assert verdict.ending is Ending.OK, verdict
        return verdict.untrusted_stderr.decode().splitlines()

    async def special_files(self) -> list[str]:
        """A run's files that are set-uid, set-gid or sticky."""
        verdict, directory = await self.run("modes")
        assert verdict.ending is Ending.OK, verdict
        assert (directory / "plain").exists()
        return [path.name for path in directory.iterdir() if path.stat().st_mode & SPECIAL_BITS]

    async def changes(self) -> int:
        """In how many ways a run can change a file that all runs read."""
        verdict, _ = await self.run("change", str(self._place.database))
        assert verdict.exit_code is not None, verdict
        return verdict.exit_code


@asynccontextmanager
async def hijacker(
    place: Place, launcher: LauncherName, without: frozenset[str] = frozenset()
) -> AsyncIterator[Hijacker]:
    """A pool without the self-test, whose samples this converter does not convert."""
    connection = Connection(place.config(without))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use([launcher])
        yield Hijacker(connection, place, launcher)
        connection.close()


async def main(place: Place) -> None:
    """Everything that each launcher lets through, by name: as this user, with and without namespaces."""
    place.prepare()
    status = place.database.stat()
    found: dict[str, list[str]] = {}
    launchers = (*(LAUNCHERS if place.library else LAUNCHERS[:1]), LauncherName.PYTHON_SERVER)
    for without in (frozenset[str](), frozenset({"namespaces"})):
        for launcher in launchers:
            async with hijacker(place, launcher, without) as hijacked:
                through = await hijacked.traces()
                if launcher is not LauncherName.PYTHON_SERVER:
                    through += [f"{name} is special" for name in await hijacked.special_files()]
                    through += ["a file was changed"] * await hijacked.changes()
            found[" ".join((launcher, "without", *without))] = through
    after = place.database.stat()
    if (status.st_mode, status.st_size, status.st_mtime_ns) != (after.st_mode, after.st_size, after.st_mtime_ns):
        found["database"] = ["the database is not as it was"]
    print(json.dumps({"user": os.getuid(), "found": found}))  # noqa: T201 - read by the test


if __name__ == "__main__":
    base, program, *library = map(Path, sys.argv[1:])
    anyio.run(main, Place(base, program, *library))
