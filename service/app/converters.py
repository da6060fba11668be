"""GDAL and the sandbox that its converters run in."""

import math
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from sandbox import forkserver
from sandbox.command import Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.pool import Pool
from sandbox.pool import open_pool as open_sandbox
from service.confidential import confidential_places
from service.cores import cores
from service.engine.capabilities import INSTALL_GDAL, Capabilities, ConverterMissing, probe, without_gdal
from service.engine.convert import JAILED_PROGRAMS, Engine
from service.engine.environment import prepared_environment, python_environment
from service.engine.jailed import RARE_CALLER, RARE_PROGRAMS
from service.formats.offer import Offer
from service.intake.memory import memory_root
from service.intake.workspace import WorkArea, open_work_area
from service.settings import Settings, SettingsError
from service.system_encoding import names_files_in_utf8
from service.telemetry import events, metrics
from service.usecases import inspect_source
from service.usecases.convert_local import LocalParts

_log = structlog.get_logger()

WORK = "work"
UPLOADS = "uploads"


async def look_at_host(settings: Settings) -> Capabilities:
    """Look at the GDAL of this host.

    Raises:
        ConverterMissing: there is none that can be used.
        SettingsError: the locale of this process has another encoding than UTF-8.
    """
    if not names_files_in_utf8():
        raise SettingsError("This process does not use UTF-8, which GDAL needs. Set PYTHONUTF8=1 before it starts.")
    found = shutil.which(settings.ogr2ogr or "ogr2ogr")
    if not found:
        raise ConverterMissing(f"There is no ogr2ogr. {INSTALL_GDAL}")
    return await anyio.to_thread.run_sync(probe, Path(found), settings.data_path, {})


async def look_at_gateway(settings: Settings) -> Capabilities:
    """Return what a gateway needs of its host, which need not have GDAL."""
    return await anyio.to_thread.run_sync(without_gdal, settings.data_path)


def open_converters(settings: Settings, capabilities: Capabilities) -> AbstractAsyncContextManager[Pool]:
    """Open the isolated converters for jobs in the directories of work, on disk and in memory, which are made."""
    work_root = settings.data_path / WORK
    work_root.mkdir(parents=True, exist_ok=True)
    work_root.chmod(0o711)  # the users of slots pass through; the umask is the host's
    converters = converters_of(settings)
    metrics.CONVERTERS.set(converters if capabilities.ogr2ogr else 0)  # a gateway leaves conversions to workers
    metrics.SEATS.set(converters + settings.waiting_room)
    return open_sandbox(
        Config(
            work_root=work_root,
            memory_root=memory_of(settings),
            mode=Mode(settings.sandbox),
            converters=converters,
            waiting_room=settings.waiting_room,
            suspended=settings.suspended or 2 * converters,
            per_tenant=settings.max_per_account,
            lease_seconds=settings.file_seconds,
            readable=capabilities.readable,
            ogr2ogr=_ogr2ogr(capabilities) if capabilities.ogr2ogr else None,
            python=PythonServer(
                modules=(*JAILED_PROGRAMS, *inspect_source.JAILED_PROGRAMS),
                rare_modules=(RARE_CALLER, *RARE_PROGRAMS) if capabilities.has_arrow else (),
                packages=capabilities.packages,
                environment=python_environment(capabilities),
            ),
        ),
        confidential_places(settings, os.environ),  # noqa: TID251 -- names the files that clients' libraries read
        on_suspended=metrics.SUSPENSIONS.inc,
    )


@asynccontextmanager
async def open_local_converter(settings: Settings) -> AsyncIterator[LocalParts]:
    """Open what conversions without a server need, in the data directory.

    Raises:
        SandboxUnavailable, ConverterMissing: as `open_services`.
    """
    async with AsyncExitStack() as stack:
        work_area = await stack.enter_async_context(open_uploads(settings, None))
        capabilities = await look_at_host(settings)
        pool = await stack.enter_async_context(open_converters(settings, capabilities))
        yield LocalParts(
            engine=make_engine(settings, capabilities, pool),
            pool=pool,
            work_area=work_area,
            offer=Offer(capabilities.formats),
        )


def make_engine(settings: Settings, capabilities: Capabilities, pool: Pool) -> Engine:
    """Return the engine that converts with the converters of `pool`."""
    if capabilities.ogr2ogr and forkserver.is_stale():
        _log.warning(events.FORK_SERVER_STALE, advice=forkserver.STALE)
    report = pool.report()
    # One that is slow to start may be tested later; until then, sessions end at once and conversions do without.
    has_sessions = LauncherName.FORK_SERVER in (*report.active_launchers, *report.untested_launchers)
    return Engine(capabilities, _conversion_limits(settings), has_sessions=has_sessions)


def open_uploads(settings: Settings, memory: Path | None) -> AbstractAsyncContextManager[WorkArea]:
    """Open where uploads are received: in the data directory, and small ones in `memory`, if there is one."""
    return open_work_area(settings.data_path / WORK / UPLOADS, memory)


def converters_of(settings: Settings) -> int:
    """Return how many files are converted at the same time."""
    return settings.converters or cores()


def memory_of(settings: Settings) -> Path | None:
    """Return where small files are kept in memory, if the host has such a place."""
    return memory_root(settings.memory_dir, settings.data_path)


def _ogr2ogr(capabilities: Capabilities) -> Ogr2ogr:
    return Ogr2ogr(
        program=Path(capabilities.ogr2ogr),
        environment=prepared_environment(capabilities),
        fork_server=forkserver.built(),
    )


def _conversion_limits(settings: Settings) -> Limits:
    return Limits(
        wall_seconds=settings.conversion_seconds,
        cpu_seconds=math.ceil(settings.conversion_seconds),
        memory_bytes=settings.conversion_memory_bytes,
    )
