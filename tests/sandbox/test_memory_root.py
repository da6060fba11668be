"""Runs below the second work root, on another file system, are isolated like those below the first."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr
from sandbox.pool import Pool, open_pool
from sandbox.verdict import Ending
from tests.sandbox.test_launchers import DATA, ENVIRONMENT, OGR2OGR

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- a private directory is made in it
LEVELS = [frozenset[str](), frozenset({"namespaces"}), frozenset({"namespaces", "unprivileged user"})]
SAMPLE = '{"type":"Feature","properties":{"n":1},"geometry":{"type":"Point","coordinates":[1,2]}}'

pytestmark = pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="no file system in memory that all may use")


@pytest.fixture
def memory_root() -> Iterator[Path]:
    """A directory in memory."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


@pytest.fixture
def roots(public: Path, memory_root: Path) -> tuple[Path, Path]:
    """The first root and the second."""
    first = Path(tempfile.mkdtemp(dir=public))
    first.chmod(0o711)
    return first, memory_root


def new_run(root: Path, name: str) -> Path:
    """The directory of a run, with a file in it."""
    path = root / "area" / name
    path.mkdir(parents=True)
    (path / "in.geojson").write_text(SAMPLE)
    return path


async def look(pool: Pool, directory: Path, *paths: Path) -> list[str]:
    """Those of `paths` that a program in `directory` can see, by their names there."""
    program = (
        "import os, sys\n"
        "here = os.getcwd()\n"
        "seen = [path for path in sys.argv[1:] if os.path.lexists(path)]\n"
        "open('seen', 'w').write('\\n'.join(seen))\n"
    )
    async with pool.lease("a") as converter:
        command = Command(argv=(sys.executable, "-c", program, *map(str, paths)), directory=directory)
        verdict = await converter.run(command)
    assert verdict.ending is Ending.OK, verdict
    return (directory / "seen").read_text().splitlines()


@pytest.mark.parametrize("without", LEVELS, ids=["all", "no namespaces", "no user"])
async def test_a_run_below_the_second_root_writes_there_and_sees_no_other(
    roots: tuple[Path, Path], without: frozenset[str], *, in_namespaces: bool
) -> None:
    """Neither beside it nor below the first root; and runs below the first see none below the second."""
    first, second = (new_run(root, "own") for root in roots)
    others = [new_run(root, "other") / "in.geojson" for root in roots]
    config = Config(work_root=roots[0], memory_root=roots[1], mode=Mode.BEST_EFFORT, without=without)
    inside = config.memory_inside / "area" / "other" / "in.geojson"
    async with open_pool(config) as pool:
        found = [await look(pool, directory, *others, inside) for directory in (first, second)]
    assert (found == [[], []]) == (in_namespaces and "namespaces" not in without)
    assert all(str(inside) not in seen for seen in found)


def converting(
    roots: tuple[Path, Path], launcher: LauncherName, library: Path | None = None, without: frozenset[str] = frozenset()
) -> Config:
    """A converter for both roots that tries `launcher` first, then plain exec."""
    return Config(
        work_root=roots[0],
        memory_root=roots[1],
        mode=Mode.BEST_EFFORT,
        converters=1,
        readable=DATA,
        ogr2ogr=Ogr2ogr(program=Path(OGR2OGR or ""), environment=ENVIRONMENT, fork_server=library),
        launchers=(launcher, LauncherName.EXEC),
        without=without,
    )


@pytest.mark.skipif(OGR2OGR is None, reason="no ogr2ogr")
@pytest.mark.parametrize("launcher", [LauncherName.EXEC, LauncherName.FORK_SERVER])
@pytest.mark.parametrize("without", LEVELS, ids=["all", "no namespaces", "no user"])
async def test_every_launcher_converts_below_either_root(
    roots: tuple[Path, Path], library: Path | None, launcher: LauncherName, without: frozenset[str]
) -> None:
    """Whichever file system the run's directory is on."""
    config = converting(roots, launcher, library, without)
    async with open_pool(config) as pool:
        for number, root in enumerate((roots[1], roots[0], roots[1])):
            directory = new_run(root, f"run{number}")
            argv = (str(OGR2OGR), "-f", "CSV", "out.csv", "in.geojson")
            async with pool.lease("a") as converter:
                verdict = await converter.run(Command(argv=argv, directory=directory, environment=ENVIRONMENT))
            assert verdict.ending is Ending.OK, verdict
            written = (directory / "out.csv").read_text()
            assert written in {'n,\n"1"\n', 'n\n"1"\n', "n\n1\n"}  # as GDAL's version delimits and quotes
            assert verdict.launcher == launcher


async def test_limits_hold_below_the_second_root(roots: tuple[Path, Path]) -> None:
    """The total size of all files is limited there too."""
    directory = new_run(roots[1], "own")
    program = "import time\nfor n in range(8): open(str(n), 'wb').write(b'x' * 2_000_000)\ntime.sleep(300)"
    async with open_pool(Config(work_root=roots[0], memory_root=roots[1])) as pool, pool.lease("a") as converter:
        limits = Limits(directory_bytes=4 << 20)
        verdict = await converter.run(
            Command(argv=(sys.executable, "-c", program), directory=directory, limits=limits),
        )
    assert verdict.ending is Ending.OUTPUT_SIZE


@pytest.mark.skipif(OGR2OGR is None, reason="no ogr2ogr")
@pytest.mark.parametrize("launcher", [LauncherName.EXEC, LauncherName.FORK_SERVER])
async def test_a_directory_that_is_not_there_costs_its_own_run_only(
    roots: tuple[Path, Path], library: Path | None, launcher: LauncherName
) -> None:
    """Helper and server continue, whichever launcher is tried first."""
    async with open_pool(converting(roots, launcher, library)) as pool, pool.lease("a") as converter:
        argv = (str(OGR2OGR), "--version")
        missing = await converter.run(Command(argv=argv, directory=roots[1] / "missing", environment=ENVIRONMENT))
        verdict = await converter.run(Command(argv=argv, directory=new_run(roots[1], "there"), environment=ENVIRONMENT))
    assert missing.ending is Ending.INTERNAL
    assert missing.detail.startswith("start: ")
    assert verdict.ending is Ending.OK
    assert verdict.launcher == launcher
