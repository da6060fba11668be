"""A hijacked converter with each launcher: what it reads."""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from sandbox import libraries
from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.process.connection import Connection
from sandbox.verdict import Ending, Verdict
from tests.adversary.hijack import hijacked_ogr2ogr, orders, taken
from tests.sandbox.runs import run_with

pytestmark = [
    pytest.mark.skipif(shutil.which("ogr2ogr") is None, reason="no ogr2ogr"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]
LAUNCHERS = (LauncherName.FORK_SERVER, LauncherName.EXEC)
DATA = tuple(path for path in (Path("/usr/share/gdal"), Path("/usr/share/proj")) if path.exists())
ENVIRONMENT = {"PATH": "/usr/bin", "LC_ALL": "C.UTF-8", "GDAL_DRIVER_PATH": "disable"}
ALONE = {
    "every layer": frozenset[str](),
    "Landlock alone": frozenset({"namespaces"}),
    "the view alone": frozenset({"Landlock"}),
    "Landlock alone, as root": frozenset({"namespaces", "unprivileged user"}),
    "the view alone, as root": frozenset({"Landlock", "unprivileged user"}),
}
SCRIPT = """
import pathlib, sys
got = []
for path in map(pathlib.Path, sys.argv[1:]):
    try:
        got.append(path.read_bytes() if not path.is_dir() else list(path.iterdir()))
    except OSError:
        pass
pathlib.Path("out.csv").write_text(repr(got))
"""


@pytest.fixture(scope="module")
def program(public: Path) -> Iterator[Path]:
    """The hijacked ogr2ogr."""
    with hijacked_ogr2ogr(Path(tempfile.mkdtemp(dir=public))) as made:
        made.parent.chmod(0o755)
        yield made


class Checkout:
    """A directory with a package that runs import, and many unrelated files."""

    def __init__(self, base: Path) -> None:
        self.path = base / "checkout"
        self.package = self.path / "package"
        (self.path / ".git").mkdir(parents=True)
        self.package.mkdir()
        (self.package / "__init__.py").write_text("x = 1\n")
        self.secrets = [self.path / ".git" / "HEAD", self.path / "key", base / "outside"]
        for secret in self.secrets:
            secret.write_text("secret\n")
        self.work_root = base / "work"
        self.work_root.mkdir()
        for path in (base, *base.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)


@pytest.fixture
def checkout(public: Path) -> Checkout:
    """All in it may be read by anybody, as far as its modes say."""
    return Checkout(Path(tempfile.mkdtemp(dir=public)))


class Runs:
    """Runs in one pool, one after the other."""

    def __init__(self, connection: Connection, program: Path, work_root: Path) -> None:
        self._connection = connection
        self._program = str(program)
        self._work_root = work_root
        self._count = 0

    async def convert(self, launcher: LauncherName, content: bytes) -> tuple[Verdict, Path]:
        """A conversion by the hijacked ogr2ogr."""
        argv = (self._program, "-f", "CSV", "out.csv", "in.geojson")
        return await self.run(launcher, argv, content, ENVIRONMENT)

    async def run(
        self, launcher: LauncherName, argv: tuple[str, ...], content: bytes, environment: Mapping[str, str]
    ) -> tuple[Verdict, Path]:
        """Run a command; return its verdict and its directory."""
        self._count += 1
        directory = self._work_root / f"run{self._count}"
        directory.mkdir()
        (directory / "in.geojson").write_bytes(content)
        command = Command(argv=argv, directory=directory, environment=environment, limits=Limits(wall_seconds=20))
        verdict = await run_with(self._connection, launcher, command)
        return verdict, directory


@pytest.fixture
def without(level: str, *, in_namespaces: bool) -> frozenset[str]:
    """The layers that a level leaves out."""
    if "Landlock" in ALONE[level] and not in_namespaces:
        pytest.skip("this host refuses namespaces, which the view needs")
    return ALONE[level]


@asynccontextmanager
async def running(
    program: Path, library: Path | None, checkout: Checkout, without: frozenset[str] = frozenset()
) -> AsyncIterator[Runs]:
    """One slot, every launcher."""
    config = Config(
        work_root=checkout.work_root,
        mode=Mode.BEST_EFFORT,
        converters=1,
        readable=(*DATA, *libraries.outside_the_system(libraries.linked_with(program))),
        ogr2ogr=Ogr2ogr(program=program, environment=ENVIRONMENT, fork_server=library),
        python=PythonServer(packages=(checkout.package,)),
        without=without,
    )
    connection = Connection(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use(list(LauncherName))
        yield Runs(connection, program, checkout.work_root)
        connection.close()


@pytest.mark.parametrize("level", ALONE)
async def test_it_reads_its_own_and_nothing_else(
    program: Path, library: Path, checkout: Checkout, without: frozenset[str]
) -> None:
    """Each of the two file layers suffices, whichever user and launcher the run has."""
    async with running(program, library, checkout, without) as runs:
        for launcher in LAUNCHERS:
            _, other = await runs.convert(launcher, orders({}))
            places = [other / "in.geojson", "/etc/passwd", f"/proc/{os.getpid()}/environ", "/proc/1/mem"]
            read = ["in.geojson", *map(str, checkout.secrets), *map(str, places)]
            wanted = {"read": read, "list": [str(checkout.path / ".git"), "/etc/ssl"]}
            verdict, directory = await runs.convert(launcher, orders(wanted))
            assert verdict.ending is Ending.OK, verdict
            assert set(taken((directory / "out.csv").read_bytes())) == {"read=in.geojson"}, launcher


@pytest.mark.parametrize("level", ALONE)
async def test_a_program_in_python_reads_its_packages_and_nothing_beside_them(
    program: Path, library: Path, checkout: Checkout, without: frozenset[str]
) -> None:
    """It reads a package that it imports, nothing beside it, and no packages that others installed."""
    async with running(program, library, checkout, without) as runs:
        wanted = [checkout.package / "__init__.py", *checkout.secrets, checkout.path / ".git", Path(anyio.__file__)]
        argv = (sys.executable, "-I", "-c", SCRIPT, *map(str, wanted))
        verdict, directory = await runs.run(LauncherName.EXEC, argv, b"", {"LC_ALL": "C.UTF-8"})
    assert verdict.ending is Ending.OK, verdict
    assert (directory / "out.csv").read_text() == repr([b"x = 1\n"])
