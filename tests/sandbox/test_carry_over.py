"""Nothing carries over from one run to the next, whichever launcher starts them and whoever runs the service."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import anyio
import msgspec
import pytest

from sandbox.config import LauncherName
from sandbox.verdict import Ending
from tests.sandbox.carry_over import LAUNCHERS, LEFT, PROJ, REFUSING, Place, compile_hijacked, hijacker
from tests.sandbox.processes import command_line, processes_below
from tests.sandbox.test_hosts import NEEDS_ROOT, NOBODY, printed_by_nobody

pytestmark = pytest.mark.xdist_group("carry over")  # one program for all

NO_FILTER = frozenset({"system-call filter"})
OPEN_HOST = frozenset({"namespaces", "Landlock", "unprivileged user", "no capabilities"})
"""What keeps a run from reading its own memory through /proc."""
READS_MAPS = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root reads what processes in namespaces of their own map"
)
MOST_PAGES = 20
"""How many pages of the server's heap may have room: where it took its last pieces, one of each size."""


@pytest.fixture(scope="module")
def program(public: Path) -> Path:
    """The hijacked converter."""
    program = compile_hijacked(public)
    if program is None:
        pytest.skip("no C compiler")
    return program


@pytest.fixture
def base(public: Path) -> Path:
    """A directory that other users can traverse."""
    path = Path(tempfile.mkdtemp(dir=public))
    path.chmod(0o755)
    return path


@pytest.fixture
def place(base: Path, program: Path, library: Path) -> Place:
    """Where runs take place."""
    place = Place(base, program, library)
    place.prepare()
    return place


def rewrite(database: Path) -> None:
    """Replace the database by another one with the same content."""
    other = database.with_name("other.db")
    shutil.copyfile(database, other)
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("VACUUM")
    other.replace(database)


@pytest.mark.skipif(not PROJ.exists(), reason="PROJ's database is not there")
async def test_a_server_whose_database_was_replaced_is_replaced_too(place: Place) -> None:
    """What PROJ has read of one is not used with the other."""
    async with hijacker(place, LauncherName.FORK_SERVER) as hijacked:
        assert await hijacked.traces() == []
        before = servers(place)
        assert has_open(before, place.database)
        await anyio.to_thread.run_sync(rewrite, place.database)
        assert await hijacked.traces() == []
        assert before.isdisjoint(servers(place))


def servers(place: Place) -> set[int]:
    """The fork servers: ogr2ogr without arguments."""
    return {pid for pid in processes_below() if command_line(pid) == f"{place.program}\0".encode()}


def has_open(processes: set[int], file: Path) -> bool:
    """Whether each of the processes has the file open."""
    return all(
        any(os.path.samestat(link.stat(), file.stat()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.exists())
        for pid in processes
    )


def mappings() -> list[str]:
    """The memory mappings of all processes below this one."""
    found = []
    for pid in processes_below():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found += Path(f"/proc/{pid}/maps").read_text().splitlines()
    return found


@pytest.mark.parametrize("without", [frozenset[str](), NO_FILTER], ids=["every layer", "no system-call filter"])
@pytest.mark.parametrize("launcher", [*LAUNCHERS, LauncherName.PYTHON_SERVER])
async def test_a_run_finds_nothing_of_the_one_before(
    place: Place, launcher: LauncherName, without: frozenset[str]
) -> None:
    """No flag, offset, lock or lease of a file description, and no text of its command; what it needs is intact.

    Without the filter all of these can be left, so that descriptions are known to be the run's own.
    """
    async with hijacker(place, launcher, without) as hijacked:
        assert await hijacked.traces() == []


async def test_the_memory_of_a_python_command_holds_nothing_of_the_one_before(place: Place) -> None:
    """The server keeps nothing that it was sent."""
    async with hijacker(place, LauncherName.PYTHON_SERVER, OPEN_HOST) as hijacked:
        assert await hijacked.traces("look") == []


@READS_MAPS
async def test_no_process_maps_memory_that_others_write(place: Place) -> None:
    """Neither servers nor their parents share pages with children."""
    async with hijacker(place, LauncherName.FORK_SERVER) as hijacked:
        await hijacked.run("leave", LEFT)
        found = mappings()
    assert any("hijacked" in line for line in found)
    assert [line for line in found if line.split()[1].startswith(("rw-s", "-w-s", "rwxs"))] == []


@READS_MAPS
async def test_what_the_host_refuses_to_replace_stays_in_place(place: Place, base: Path) -> None:
    """The server moves the data of libraries into a file where it can, and serves where it cannot."""
    async with hijacker(place, LauncherName.FORK_SERVER) as hijacked:
        assert await hijacked.traces() == []
        assert [line for line in mappings() if "memfd:data" in line]
    refusing = compile_hijacked(base, REFUSING)
    assert refusing
    async with hijacker(msgspec.structs.replace(place, program=refusing), LauncherName.FORK_SERVER) as hijacked:
        assert await hijacked.traces() == []
        assert not [line for line in mappings() if "memfd:data" in line]


async def test_a_run_writes_to_few_pages_of_the_server(place: Place) -> None:
    """Nearly all pieces that are free in the server's heap are taken, so that runs allocate beyond it."""
    async with hijacker(place, LauncherName.FORK_SERVER) as hijacked:
        verdict, _ = await hijacked.run("allocate", "")
    assert verdict.ending is Ending.OK
    assert int(verdict.untrusted_stderr) <= MOST_PAGES


@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_a_run_leaves_no_special_file(place: Place, launcher: LauncherName) -> None:
    """No file that it makes is set-uid, set-gid or sticky."""
    async with hijacker(place, launcher) as hijacked:
        assert await hijacked.special_files() == []


@pytest.mark.parametrize("without", [frozenset[str](), frozenset({"namespaces", "unprivileged user"})])
@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_a_run_changes_no_file_that_all_read(
    place: Place, launcher: LauncherName, without: frozenset[str]
) -> None:
    """Nor its mode, times, length or locks, where the run's user owns the file and no mount is read-only."""
    before = place.database.stat()
    async with hijacker(place, launcher, without) as hijacked:
        assert await hijacked.changes() == 0
    after = place.database.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)


@NEEDS_ROOT
def test_nothing_carries_over_for_an_ordinary_user_either(base: Path, program: Path, library: Path) -> None:
    """With namespaces and without, in which case runs have the service's own user."""
    os.chown(base, NOBODY, NOBODY)
    found = printed_by_nobody(Path(__file__).with_name("carry_over.py"), base, program, library)
    assert found["user"] == NOBODY
    assert {how: through for how, through in found["found"].items() if through} == {}
