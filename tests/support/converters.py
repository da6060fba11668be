"""The service's own converters, in the jail with the fastest launcher, for tests of their results."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil
from anyio.from_thread import BlockingPortal, start_blocking_portal

from sandbox.command import Command, Limits
from sandbox.pool import Pool
from sandbox.verdict import Ending, Verdict
from service.app.converters import WORK, look_at_host, open_converters
from service.engine.capabilities import Capabilities
from service.engine.convert import Engine
from service.engine.environment import converter_environment, prepared_environment
from service.engine.session import Session
from service.engine.workspace import FOLDER
from service.settings import Settings
from tests.sandbox.processes import command_line, processes_below
from tests.support.server import Server

_KEEPER = "sandbox.process.keeper"


class Converters:
    """Converters in their own event loop, so that every test's loop can share them.

    Tests share their engines too, one without and one with sessions: as in the service, each remembers what it has
    found about coordinate systems.
    """

    def __init__(self, portal: BlockingPortal, pool: Pool, host: Capabilities, work_root: Path) -> None:
        self.engines = {held: Engine(host, has_sessions=held) for held in (False, True)}
        self.engine = self.engines[False]
        self._portal = portal
        self._pool = pool
        self._work_root = work_root

    async def run(self, command: Command) -> Verdict:
        """Run a command in the jail; its directory is below one of `new_directory`."""
        return await asyncio.wrap_future(self._portal.start_task_soon(self._run, command))

    async def _run(self, command: Command) -> Verdict:
        async with self._pool.lease("test") as converter:
            return await converter.run(command)

    async def ogr2ogr(self, directory: Path, *arguments: str) -> bool:
        """Run ogr2ogr in `directory`, one of `new_directory`; returns whether it succeeded.

        It is the genuine program, forked from one that has loaded its libraries, which takes most of its time.
        """
        host = self.engine.capabilities
        argv = (host.ogr2ogr, *arguments)
        verdict = await self.run(Command(argv=argv, directory=directory, environment=prepared_environment(host)))
        return verdict.ending is Ending.OK

    @asynccontextmanager
    async def open_run(self, drivers: Sequence[str]) -> AsyncIterator[tuple[Session, Path]]:
        """A run with `drivers` that is held open, and its directory."""
        host, directory = self.engine.capabilities, self.new_directory()
        async with Session(self.run, drivers, {}) as held:
            held.begin(host.ogr2ogr, directory, converter_environment(host, drivers), Limits())
            yield held, directory

    def new_directory(self) -> Path:
        """Create a directory for one job."""
        return Path(tempfile.mkdtemp(dir=self._work_root))


def signal_converters(number: int, service: int | None = None) -> int:
    """Signal every converter that has a job, below the process of a service or this one; return how many there are."""
    found = 0
    for pid in processes_below(service):
        with suppress(OSError):
            if b"ogr2ogr" in command_line(pid) and Path(f"/proc/{pid}/cwd").readlink().name == FOLDER:
                os.kill(pid, number)
                found += 1
    return found


@contextmanager
def at_a_standstill(server: Server) -> Iterator[None]:
    """Stop the process that starts conversions, so that later ones stay in progress.

    After some fifteen seconds, the service replaces it, and they go on.
    """
    [keeper] = [
        process for process in psutil.Process(server.process.pid).children() if _KEEPER in " ".join(process.cmdline())
    ]
    [spawner] = keeper.children()
    os.kill(spawner.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(spawner.pid, signal.SIGCONT)


@contextmanager
def running_converters(data_dir: Path) -> Iterator[Converters]:
    """Open converters with the service's defaults."""
    settings = Settings(data_dir=str(data_dir), memory_dir="")
    with start_blocking_portal() as portal:
        host = portal.call(look_at_host, settings)
        with portal.wrap_async_context_manager(open_converters(settings, host)) as pool:
            yield Converters(portal, pool, host, data_dir / WORK)
