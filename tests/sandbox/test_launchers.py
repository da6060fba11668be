"""All launchers, with the real ogr2ogr and with Python: the same arguments give the same results."""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.launchers.environment import StartEnvironment
from sandbox.process.connection import Connection
from sandbox.verdict import Ending, Verdict
from tests.sandbox.processes import command_line, processes_below
from tests.sandbox.runs import run_with
from tests.support.patience import PATIENCE_SECONDS

OGR2OGR = shutil.which("ogr2ogr")
NEEDS_OGR2OGR = pytest.mark.skipif(OGR2OGR is None, reason="GDAL is not installed")
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
LAUNCHERS = (
    pytest.param(LauncherName.FORK_SERVER, marks=NEEDS_COMPILER),
    LauncherName.EXEC,
)
PREPARED = (4326, 3857, 4258, 3035, 25831, 25832, 25833, 32631, 32632, 32633, 2056, 2154, 2180, 28992)
"""Systems to and from which the fork server has prepared the transformation, and whose text it keeps."""
MOVED = (
    'PROJCS["ETRS89 / UTM zone 32N",GEOGCS["ETRS89",DATUM["European_Terrestrial_Reference_System_1989",'
    'SPHEROID["GRS 1980",6378137,298.257222101]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],PARAMETER["central_meridian",9],'
    'PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",0],PARAMETER["false_northing",0],UNIT["metre",1],'
    'AUTHORITY["EPSG","25832"]]'
)
"""A system that says of itself that it is one of them, and is not."""
DATA = tuple(path for path in (Path("/usr/share/gdal"), Path("/usr/share/proj")) if path.exists())
ENVIRONMENT = {"PATH": "/usr/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "GDAL_DRIVER_PATH": "disable"}
MODULE = """
import json, os, sys, threading
from pathlib import Path
if __name__ == "__main__":
    how = sys.argv[1]
    told = [__name__, sys.argv[1:], sorted(os.environ), os.getcwd(), threading.active_count(), sys.path[0]]
    Path("told").write_text(json.dumps(told))
    if how == "raise": raise ValueError("of its own")
    if how == "text": sys.exit("a text")
    if how == "code": sys.exit(7)
    if how == "crash": os.abort()
    if how == "endless":
        while True: pass
    if how == "large":
        with open("large", "wb") as file:
            while True: file.write(bytes(1 << 16))
"""


class Place(msgspec.Struct, frozen=True):
    """A test's directory, and the fork server's library if it was built."""

    path: Path
    library: Path | None

    @property
    def work_root(self) -> Path:
        """The parent of the runs' directories."""
        return self.path / "work"


@pytest.fixture
def place(public: Path, library: Path | None) -> Place:
    """A directory that other users can traverse."""
    return make_place(public, library)


def make_place(public: Path, library: Path | None) -> Place:
    """A directory that other users can traverse."""
    path = Path(tempfile.mkdtemp(dir=public))
    path.chmod(0o755)
    (path / "work").mkdir()
    (path / "modules").mkdir()
    (path / "modules" / "told_module.py").write_text(MODULE)
    return Place(path, library)


class Pool:
    """Runs commands with a launcher of the test's choice."""

    def __init__(self, connection: Connection, config: Config) -> None:
        self._connection = connection
        self.config = config
        self._count = 0

    def directory(self) -> Path:
        """A fresh directory with a sample in it."""
        self._count += 1
        path = self.config.work_root / f"run{self._count}"
        path.mkdir()
        feature = '{"type":"Feature","properties":{"n":%d,"t":"ž"},"geometry":{"type":"Point","coordinates":[%d,50]}}'
        features = ",".join(feature % (n, n) for n in range(5))
        sample = path / "in.geojson"
        sample.write_text(f'{{"type":"FeatureCollection","features":[{features}]}}')
        sample.chmod(0o600)  # as a service keeps what it was sent
        return path

    async def run(
        self,
        launcher: LauncherName | None,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        slot: int = 0,
        **limits: float,
    ) -> tuple[Verdict, Path]:
        """Run with one launcher once it is up; None takes the first available."""
        directory = self.directory()
        command = Command(
            argv=argv,
            directory=directory,
            environment=environment,
            limits=Limits(**{"wall_seconds": 20, **limits}),  # type: ignore[arg-type]  # limits of several types
        )
        verdict = await run_with(self._connection, launcher, command, slot)
        return verdict, directory

    async def convert(
        self,
        launcher: LauncherName | None,
        *arguments: str,
        environment: Mapping[str, str] = ENVIRONMENT,
        slot: int = 0,
        **limits: float,
    ) -> tuple[Verdict, Path]:
        """Run ogr2ogr."""
        assert OGR2OGR
        return await self.run(launcher, (OGR2OGR, *arguments), environment, slot, **limits)


@asynccontextmanager
async def opened(
    place: Place,
    modules: tuple[str, ...] = (),
    commands_per_server: int = 1000,
    without: frozenset[str] = frozenset(),
    mode: Mode = Mode.STRICT,
    *,
    python: PythonServer | None = None,
) -> AsyncIterator[Pool]:
    """A pool with two slots and every launcher."""
    ogr2ogr = Ogr2ogr(program=Path(OGR2OGR), environment=ENVIRONMENT, fork_server=place.library) if OGR2OGR else None
    config = Config(
        work_root=place.work_root,
        mode=mode,
        converters=2,
        commands_per_server=commands_per_server,
        without=without,
        readable=(*DATA, place.path / "modules"),
        ogr2ogr=None if modules or python else ogr2ogr,
        python=python or PythonServer(modules=modules, environment=python_environment(place)),
    )
    connection = Connection(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use(list(LauncherName))
        yield Pool(connection, config)
        connection.close()


class SharedPool:
    """A pool in its own event loop, for tests that leave its state unchanged."""

    def __init__(self, portal: BlockingPortal, pool: Pool, place: Place) -> None:
        self._portal = portal
        self._pool = pool
        self.place = place

    def run(
        self, launcher: LauncherName, argv: tuple[str, ...], environment: Mapping[str, str], **limits: float
    ) -> tuple[Verdict, Path]:
        """See `Pool`."""

        async def run() -> tuple[Verdict, Path]:
            return await self._pool.run(launcher, argv, environment, 0, **limits)

        return self._portal.call(run)

    def convert(
        self, launcher: LauncherName, *arguments: str, environment: Mapping[str, str] = ENVIRONMENT, **limits: float
    ) -> tuple[Verdict, Path]:
        """See `Pool`."""

        async def convert() -> tuple[Verdict, Path]:
            return await self._pool.convert(launcher, *arguments, environment=environment, slot=0, **limits)

        return self._portal.call(convert)


@contextmanager
def shared(place: Place, modules: tuple[str, ...] = ()) -> Iterator[SharedPool]:
    """A pool with every launcher that several tests share."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened(place, modules)) as pool:
        yield SharedPool(portal, pool, place)


@pytest.fixture(scope="module")
def gdal_pool(public: Path, library: Path | None) -> Iterator[SharedPool]:
    """A pool for the real ogr2ogr."""
    with shared(make_place(public, library)) as pool:
        yield pool


@pytest.fixture(scope="module")
def python_pool(public: Path) -> Iterator[SharedPool]:
    """A pool for the test's module."""
    with shared(make_place(public, None), modules=("told_module",)) as pool:
        yield pool


def python_environment(place: Place) -> dict[str, str]:
    """The module path of the test's module."""
    return {"PYTHONPATH": str(place.path / "modules"), "PYTHONSAFEPATH": "1", "LC_ALL": "C.UTF-8"}


def servers() -> list[int]:
    """The fork servers below this process, and their children: ogr2ogr without arguments."""
    return [pid for pid in processes_below() if command_line(pid) == f"{OGR2OGR}\0".encode()]


def content(directory: Path) -> dict[str, bytes]:
    """The contents of a run's files."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@NEEDS_OGR2OGR
@NEEDS_COMPILER
@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "CSV", "out.csv", "in.geojson"),
        *(("-f", "ESRI Shapefile", "-t_srs", f"EPSG:{code}", "out", "in.geojson") for code in PREPARED),
        ("-f", "ESRI Shapefile", "-a_srs", MOVED, "out", "in.geojson"),
        *(("-f", "GeoJSON", "-t_srs", f"EPSG:{code}", "out.geojson", "in.geojson") for code in PREPARED),
        *(("-f", "GeoJSON", "-s_srs", f"EPSG:{code}", "out.geojson", "in.geojson") for code in PREPARED),
        ("-f", "KML", "out.kml", "in.geojson", "-nln", 'a "quoted" \\ name'),
        ("-f", "GeoJSON", "-where", "n > 2", "out.geojson", "in.geojson"),
        ("-f", "GML", "out.gml", "in.geojson", "-dsco", "FORMAT=GML3"),
        ("-f", "FlatGeobuf", "out.fgb", "in.geojson"),
        ("-f", "GeoJSON", "out.geojson", "missing.geojson"),
        ("--no-such-option",),
    ],
)
def test_every_launcher_gives_the_same_answer(gdal_pool: SharedPool, arguments: tuple[str, ...]) -> None:
    """Files, exit code and messages equal those of plain exec."""
    expected, directory = gdal_pool.convert(LauncherName.EXEC, *arguments)
    files = content(directory)
    verdict, directory = gdal_pool.convert(LauncherName.FORK_SERVER, *arguments)
    assert verdict.launcher == LauncherName.FORK_SERVER
    assert (verdict.ending, verdict.exit_code) == (expected.ending, expected.exit_code)
    assert content(directory) == files
    assert verdict.untrusted_stderr.splitlines()[:1] == expected.untrusted_stderr.splitlines()[:1]


@NEEDS_OGR2OGR
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_command_has_the_drivers_and_settings_of_its_own_environment(
    gdal_pool: SharedPool, launcher: LauncherName
) -> None:
    """What one command's environment disables is disabled for that command alone."""
    without_csv = {**ENVIRONMENT, "GDAL_SKIP": "CSV"}
    csv = ("-f", "CSV", "out.csv", "in.geojson")
    verdicts = [
        gdal_pool.convert(launcher, *csv, environment=environment)[0]
        for environment in (ENVIRONMENT, without_csv, ENVIRONMENT)
    ]
    assert [verdict.exit_code for verdict in verdicts] == [0, 1, 0]
    assert b"CSV" in verdicts[1].untrusted_stderr


@NEEDS_OGR2OGR
@NEEDS_COMPILER
async def test_the_fork_server_starts_wherever_its_library_is(place: Place) -> None:
    """Even if the path has characters that separate the names of preloaded libraries."""
    assert place.library
    there = place.path / "Geo mill: Öl"
    there.mkdir()
    library = Path(shutil.copy(place.library, there))
    async with opened(Place(place.path, library)) as pool:
        verdict, _ = await pool.convert(LauncherName.FORK_SERVER, "-f", "CSV", "out.csv", "in.geojson")
    assert verdict.launcher == LauncherName.FORK_SERVER
    assert verdict.ending is Ending.OK


@NEEDS_OGR2OGR
@NEEDS_COMPILER
@pytest.mark.parametrize("option", ["GDAL_SKIP", "OGR_SKIP"])
@pytest.mark.parametrize("names", ["CSV", "FlatGeobuf,CSV", "FlatGeobuf, CSV", "FlatGeobuf CSV"])
@pytest.mark.parametrize("way", ["variable", "argument"])
def test_the_fork_server_leaves_out_the_drivers_that_a_start_would(
    gdal_pool: SharedPool, option: str, names: str, way: str
) -> None:
    """Drivers are registered before the command is known; the list to skip is read as GDAL reads it."""
    environment = {**ENVIRONMENT, option: names} if way == "variable" else ENVIRONMENT
    given = ("--config", option, names) if way == "argument" else ()
    arguments = (*given, "-f", "CSV", "out.csv", "in.geojson")
    expected, forked = [
        gdal_pool.convert(launcher, *arguments, environment=environment)[0]
        for launcher in (LauncherName.EXEC, LauncherName.FORK_SERVER)
    ]
    after, _ = gdal_pool.convert(LauncherName.FORK_SERVER, "-f", "CSV", "out.csv", "in.geojson")
    assert forked.launcher == LauncherName.FORK_SERVER
    assert forked.exit_code == expected.exit_code
    assert after.ending is Ending.OK


@NEEDS_OGR2OGR
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_limits_hold_whatever_the_launcher(gdal_pool: SharedPool, launcher: LauncherName) -> None:
    """Memory, file size and time are limited in a process that started before its command arrived."""
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, 'xxxxxxxxxxxxxxxx' AS t FROM c"
    query = ("-f", "CSV", "out.csv", "in.geojson", "-dialect", "SQLITE", "-sql", endless)
    assert gdal_pool.convert(launcher, *query, file_bytes=100_000)[0].ending is Ending.OUTPUT_SIZE
    assert gdal_pool.convert(launcher, *query, cpu_seconds=1)[0].ending is Ending.CPU_TIME
    assert gdal_pool.convert(launcher, *query, wall_seconds=0.3)[0].ending is Ending.WALL_TIME
    hog = ("-f", "CSV", "out.csv", "in.geojson", "-dialect", "SQLITE", "-sql", "SELECT zeroblob(900000000) AS z")
    assert gdal_pool.convert(launcher, *hog, memory_bytes=400 << 20)[0].ending is Ending.MEMORY


@NEEDS_OGR2OGR
@NEEDS_COMPILER
@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_dead_or_silent_server_costs_no_command(place: Place, loss: signal.Signals) -> None:
    """Commands start elsewhere while the server is away, and it comes back."""
    arguments = ("-f", "CSV", "out.csv", "in.geojson")
    async with opened(place) as pool:
        await pool.convert(LauncherName.FORK_SERVER, *arguments)
        for pid in servers():
            os.kill(pid, loss)
        verdict, directory = await pool.convert(None, *arguments)
        assert verdict.ending is Ending.OK
        assert verdict.launcher != LauncherName.FORK_SERVER
        assert (directory / "out.csv").exists()
        assert (await pool.convert(LauncherName.FORK_SERVER, *arguments))[0].ending is Ending.OK


@NEEDS_OGR2OGR
@NEEDS_COMPILER
async def test_a_server_is_replaced_after_its_commands_and_none_is_lost(place: Place) -> None:
    """Commands continue while a new server takes over."""
    async with opened(place, commands_per_server=3) as pool:
        seen: set[int] = set()
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(seen) <= 2:
                arguments = ("-f", "CSV", "out.csv", "in.geojson")
                verdict, _ = await pool.convert(LauncherName.FORK_SERVER, *arguments)
                assert verdict.ending is Ending.OK
                seen.update(servers())
        # The last that was replaced may be on its way out.
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(servers()) > 2:  # noqa: ASYNC110 - other processes end
                await anyio.sleep(0.01)


# Runs that stay in their server's group for good: as those are for a moment that have just been forked.
IN_THE_SERVERS_GROUP = frozenset({"own session"})
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0"


@NEEDS_OGR2OGR
@NEEDS_COMPILER
async def test_a_run_outlives_the_server_that_started_it(place: Place) -> None:
    """A replaced server ends and is reaped; none of its children ends with it."""
    query = ("-f", "CSV", "out.csv", "in.geojson", "-dialect", "SQLITE", "-sql", ENDLESS)
    async with opened(place, commands_per_server=1, without=IN_THE_SERVERS_GROUP) as pool:
        verdict, _ = await pool.convert(LauncherName.FORK_SERVER, *query, wall_seconds=2)
    assert verdict.ending is Ending.WALL_TIME


async def test_a_python_run_outlives_the_server_that_started_it(place: Place) -> None:
    """The same for the server of Python commands."""
    argv = (sys.executable, "-m", "told_module", "endless")
    async with opened(place, modules=("told_module",), commands_per_server=1, without=IN_THE_SERVERS_GROUP) as pool:
        verdict, _ = await pool.run(LauncherName.PYTHON_SERVER, argv, python_environment(place), wall_seconds=2)
    assert verdict.ending is Ending.WALL_TIME


@NEEDS_OGR2OGR
@NEEDS_COMPILER
@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_run_outlives_a_dead_or_silent_server(place: Place, loss: signal.Signals) -> None:
    """A server that dies, or is ended because it is silent, takes no run along."""
    query = ("-f", "CSV", "out.csv", "in.geojson", "-dialect", "SQLITE", "-sql", ENDLESS)
    endings: list[Ending] = []

    async with opened(place, without=IN_THE_SERVERS_GROUP) as pool:
        await pool.convert(LauncherName.FORK_SERVER, "-f", "CSV", "out.csv", "in.geojson")
        (server,) = servers()

        async def run() -> None:
            endings.append((await pool.convert(LauncherName.FORK_SERVER, *query, wall_seconds=3))[0].ending)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(servers()) < 2:  # noqa: ASYNC110 - another process forks
                    await anyio.sleep(0.005)
            os.kill(server, loss)
            verdict, _ = await pool.convert(None, "-f", "CSV", "out.csv", "in.geojson", slot=1)
    assert verdict.ending is Ending.OK
    assert endings == [Ending.WALL_TIME]


@pytest.mark.parametrize("launcher", [LauncherName.PYTHON_SERVER, LauncherName.EXEC])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("fine", (Ending.OK, 0, b"")),
        ("raise", (Ending.EXIT, 1, b"ValueError: of its own")),
        ("text", (Ending.EXIT, 1, b"a text")),
        ("code", (Ending.EXIT, 7, b"")),
        ("crash", (Ending.SIGNAL, None, b"")),
        ("large", (Ending.OUTPUT_SIZE, None, b"")),
    ],
)
def test_a_module_runs_as_if_python_had_been_started(
    python_pool: SharedPool, launcher: LauncherName, how: str, expected: tuple[Ending, int | None, bytes]
) -> None:
    """Arguments, environment, directory, exit code and messages are those of `python -m`."""
    ending, code, message = expected
    environment = {**python_environment(python_pool.place), "GIVEN": "1"}
    argv = (sys.executable, "-m", "told_module", how, "two words")
    verdict, directory = python_pool.run(launcher, argv, environment, file_bytes=1_000_000)
    assert verdict.launcher == launcher
    assert verdict.ending is ending
    if code is not None:
        assert verdict.exit_code == code
    assert message in verdict.untrusted_stderr
    told = json.loads((directory / "told").read_text())
    variables = sorted(set(environment) | set(told[2]) & {"LC_CTYPE"})
    assert told[:5] == ["__main__", [how, "two words"], variables, str(directory), 1]
    assert told[5] != str(directory)


async def test_a_module_that_is_not_held_ready_is_started(place: Place) -> None:
    """The server runs the modules it knows; any other gets a new process."""
    async with opened(place) as pool:
        argv = (sys.executable, "-m", "told_module", "fine")
        verdict, _ = await pool.run(None, argv, python_environment(place))
    assert (verdict.launcher, verdict.ending) == (LauncherName.EXEC, Ending.OK)


def test_an_environment_is_taken_over_unless_a_start_would_have_read_it() -> None:
    """GDAL's options come with the command; the path of PROJ's data does not."""
    assert StartEnvironment({"PROJ_LIB": "/a"}).can_become({"PROJ_LIB": "/a", "GDAL_SKIP": "CSV"})
    assert not StartEnvironment({"PROJ_LIB": "/a"}).can_become({"PROJ_LIB": "/b"})
    assert not StartEnvironment({}).can_become({"LD_PRELOAD": "x"})
    assert StartEnvironment({"GDAL_SKIP": "PDF,WFS"}).can_become({"GDAL_SKIP": "WFS,CSV,PDF"})
    assert not StartEnvironment({"GDAL_SKIP": "PDF,WFS"}).can_become({"GDAL_SKIP": "CSV,PDF"})
    assert not StartEnvironment({"GDAL_SKIP": "PDF,WFS"}).can_become({})
