"""Wiring: concrete classes are named here alone, nothing is decided here."""

import math
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from starlette.routing import Route

from sandbox import forkserver
from sandbox.command import Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.pool import Pool, QueueTicket
from sandbox.pool import open_pool as open_sandbox
from service.accounts.idempotency import IdempotencyKeys
from service.accounts.identity import TrustedGateway, parse_identity_secrets
from service.accounts.keys import Authenticator
from service.clock import Clock, utc_now
from service.confidential import confidential_places
from service.cores import cores
from service.db.migrate import migrate, require_schema
from service.db.pool import Database, open_pool
from service.engine.capabilities import Capabilities, ConverterMissing, probe, without_gdal
from service.engine.convert import JAILED_PROGRAMS, RARE_PROGRAMS, Engine
from service.engine.environment import prepared_environment, python_environment
from service.errors import DatabaseUnavailable
from service.formats.offer import Offer
from service.http.application import FOR_CLIENTS, FOR_OPERATORS, ON_ONE_PORT, PAGE, Application, DeploymentConfig
from service.http.middleware.proxy_headers import parse_networks
from service.ids import ServerId
from service.intake.form import IntakeLimits
from service.intake.memory import memory_root
from service.intake.workspace import open_work_area
from service.jobs.dispatch import JobRunner, RunJob
from service.jobs.ends import EndWatch
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.promises import Promises
from service.jobs.records import Job
from service.jobs.register import JobRegister
from service.jobs.spec import JobSpec
from service.jobs.windows import Windows
from service.jobs.workers import KnownWorkers
from service.metering.history import History, Retention
from service.metering.ledger import Ledger, publish_plans
from service.metering.pricing import Pricing
from service.metering.usage import UsageReports
from service.postgres_embedded import EmbeddedPostgresError, embedded_postgres, has_database
from service.settings import Settings, SettingsError
from service.siblings import Siblings, no_siblings
from service.storage.bucket_config import BucketConfig, read_bucket_configs
from service.storage.local import open_local
from service.storage.port import Storage
from service.storage.secrets import parse_secrets, stored_secrets
from service.telemetry import metrics
from service.telemetry.exposition import sharing_metrics
from service.telemetry.lag import watch_lag
from service.telemetry.metrics import observe_statement
from service.telemetry.tracing import tracing
from service.usecases import inspect_source
from service.usecases.convert_local import LocalParts
from service.usecases.ending import JobParts
from service.usecases.maintenance import PERIODIC_TASKS, run_periodically
from service.usecases.overflow import FULL_AT, Overflow
from service.usecases.run_job import run_job
from service.usecases.services import Fleet, Role, Services
from service.usecases.shutdown import end_jobs

if TYPE_CHECKING:  # it needs an extra
    from service.jobs.queue_contents import QueueContents
    from service.jobs.work_queue import WorkQueue
    from service.usecases.hand_over import Gateway

GOODBYE_SECONDS = 5.0
WORK = "work"
UPLOADS = "uploads"


@asynccontextmanager
async def make_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the configured database, or the embedded one, made if need be, with its schema and plans up to date."""
    async with _reach_database(settings) as dsn:
        await migrate(dsn)
        async with open_pool(dsn, watch=observe_statement) as database:
            await publish_plans(database)
            yield database


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Open a database that `make_database` has made with this version, and change nothing of it.

    Raises:
        EmbeddedPostgresError, MigrationError: there is none, or it is another version's.
    """
    if not settings.database_url and not has_database(settings.data_path):
        raise EmbeddedPostgresError(
            f"There is no database in {settings.data_path}. Name the service's data directory in GEOMILL_DATA_DIR or "
            "its database in GEOMILL_DATABASE_URL; only `geomill serve` and `geomill migrate` make a new one."
        )
    async with _reach_database(settings) as dsn:
        await require_schema(dsn)
        async with open_pool(dsn, watch=observe_statement) as database:
            yield database


def _reach_database(settings: Settings) -> AbstractAsyncContextManager[str]:
    if settings.database_url:
        return nullcontext(settings.database_url)
    return embedded_postgres(
        settings.data_path,
        bin_dir=Path(settings.postgres_bin_dir) if settings.postgres_bin_dir else None,
        user=settings.postgres_user,
    )


@asynccontextmanager
async def open_services(
    settings: Settings, clock: Clock = utc_now, siblings: Siblings | None = None, role: Role = "all"
) -> AsyncIterator[Services]:
    """Open everything that a role needs, and close it in order: take no more jobs, end those under way, then the rest.

    `siblings` are the other processes of the service, if there are any.

    Raises:
        EmbeddedPostgresError, MigrationError, DatabaseUnavailable: there is no database to work with.
        SandboxUnavailable: this host cannot isolate converters as strictly as the settings ask.
        ConverterMissing: there is no usable ogr2ogr.
        StorageUnavailable: the file store cannot be opened.
        SettingsError: traces or a fleet are asked for, and this installation or the settings do not allow them.
        QueueUnavailable: the queue that a gateway or worker needs cannot be reached.
    """
    require_fleet(settings, role)
    async with AsyncExitStack() as stack:
        stack.enter_context(sharing_metrics())
        stack.enter_context(tracing(settings.traces_url))
        database = await stack.enter_async_context(make_database(settings))
        storage = await stack.enter_async_context(open_storage(settings, clock))
        uploads = open_work_area(settings.data_path / WORK / UPLOADS, _memory(settings))
        work_area = await stack.enter_async_context(uploads)
        is_shared = role != "all" or bool(settings.nats_url)
        capabilities = await (look_at_gateway(settings) if role == "gateway" else look_at_host(settings))
        offer = Offer(capabilities.formats if role != "gateway" else ())
        pool = await stack.enter_async_context(open_converters(settings, capabilities))
        engine = _engine(settings, capabilities, pool)
        ledger = Ledger(database, Pricing(settings.wallet_base_cents, settings.wallet_cents_per_mib), storage.regions)
        jobs = JobRegister(database)
        lease = timedelta(seconds=settings.lease_seconds)
        told = capabilities.formats if is_shared and role != "gateway" else None
        leases = Leases(
            database,
            ServerId(uuid4()),
            lease,
            told,
            converters=converters_of(settings) if told is not None else None,
            hands_over=is_shared and role != "worker",
        )
        parts = JobParts(
            ledger=ledger,
            jobs=jobs,
            engine=engine,
            pool=pool,
            storage=storage,
            work_area=work_area,
            gives_back=role == "worker",
        )
        handovers = HandOvers(database, leases.server_id, lease)
        workers = KnownWorkers(leases, offer)
        queue = await stack.enter_async_context(_open_queue(settings, role)) if is_shared else None
        promises = Promises(
            converters=converters_of(settings),
            most=converters_of(settings) + settings.waiting_room,
            taken=lambda: pool.queue.places_taken,
            taken_by=pool.queue.places_by_tenant,
            now=time.monotonic,
        )
        ends = EndWatch(most=settings.max_connections // 2, most_each=settings.max_per_account)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        own = partial(JobRunner, pool, tasks=tasks, retry_after=promises.retry_after, ends=ends)
        fleet = (
            None
            if queue is None
            else await _join(settings, role, parts, own, leases, queue=queue, handovers=handovers, workers=workers)
        )

        def note_release() -> None:
            promises.note_end()
            if fleet is not None and fleet.worker is not None:
                fleet.worker.note_release()

        pool.on_released = note_release
        services = Services(
            clock=clock,
            database=database,
            authenticator=Authenticator(database, clock),
            gateway=TrustedGateway(parse_identity_secrets(settings.identity_secret), settings.identity_seconds),
            idempotency=IdempotencyKeys(database, lease),
            ledger=ledger,
            history=History(database, _retention(settings)),
            usage=UsageReports(database),
            jobs=jobs,
            leases=leases,
            engine=engine,
            offer=offer,
            storage=storage,
            promises=promises,
            ends=ends,
            most_wait_seconds=settings.wait_seconds,
            runner=_runner(settings, parts, fleet, own),
            intake=_intake_limits(settings),
            work_area=work_area,
            pool=pool,
            siblings=siblings or no_siblings(),
            fleet=fleet,
            asked=fleet.queue.questions if fleet is not None and role == "gateway" else None,
        )
        metrics.PROCESSES.set(1)
        try:
            await services.leases.beat()
            if fleet is not None and fleet.gateway is not None:
                await workers.look()
            for chore in PERIODIC_TASKS:
                tasks.start_soon(run_periodically, services, chore)
            if fleet is not None:
                _start_fleet(services, fleet, tasks)
            tasks.start_soon(watch_lag)
            yield services
        finally:
            await _close(services, tasks, settings.drain_seconds)


async def _close(services: Services, tasks: TaskGroup, drain_seconds: float) -> None:
    worker = services.fleet.worker if services.fleet else None
    with anyio.CancelScope(shield=True):
        await end_jobs(services, drain_seconds)
        if worker is not None:
            with anyio.move_on_after(GOODBYE_SECONDS):
                await worker.finished()
        with anyio.move_on_after(GOODBYE_SECONDS), suppress(DatabaseUnavailable):
            await services.leases.give_up()
    tasks.cancel_scope.cancel()


_SHARING: Mapping[Role, str] = {
    "all": "A process with GEOMILL_NATS_URL",
    "gateway": "A gateway",
    "worker": "A worker",
}


def require_fleet(settings: Settings, role: Role) -> None:
    """Require what a role shares with processes on other hosts.

    Raises:
        SettingsError: it is missing.
    """
    if role == "all" and not settings.nats_url:
        return
    needed = {
        "GEOMILL_NATS_URL": settings.nats_url,
        "GEOMILL_DATABASE_URL": settings.database_url,
        "GEOMILL_S3_BUCKET": settings.s3_bucket,
    }
    if missing := [name for name, value in needed.items() if not value]:
        raise SettingsError(
            f"{_SHARING[role]} shares its queue, its database and its bucket with other hosts. "
            f"Set {' and '.join(missing)}."
        )


_NEEDS_EXTRA = "GEOMILL_NATS_URL needs the extra `fleet`: pip install 'geomill[fleet]'."


@asynccontextmanager
async def open_queue_contents(settings: Settings) -> AsyncIterator["QueueContents | None"]:
    """Open the queue of a fleet to look at its messages; None if the settings name no queue.

    Raises:
        QueueUnavailable: it cannot be reached.
        SettingsError: this installation lacks its client.
    """
    if not settings.nats_url:
        yield None
        return
    try:
        from service.jobs.queue_contents import open_contents  # noqa: PLC0415 -- it needs an extra
    except ImportError:
        raise SettingsError(_NEEDS_EXTRA) from None
    async with open_contents(settings.nats_url, settings.lease_seconds) as contents:
        yield contents


@asynccontextmanager
async def _open_queue(settings: Settings, role: Role) -> AsyncIterator["WorkQueue"]:
    try:
        from service.jobs.work_queue import open_work_queue  # noqa: PLC0415 -- it needs an extra
    except ImportError:
        raise SettingsError(_NEEDS_EXTRA) from None
    async with open_work_queue(settings.nats_url, settings.lease_seconds, is_needed=role != "all") as queue:
        yield queue


async def _join(
    settings: Settings,
    role: Role,
    parts: JobParts,
    own: Callable[..., JobRunner],
    leases: Leases,
    *,
    queue: "WorkQueue",
    handovers: HandOvers,
    workers: KnownWorkers,
) -> Fleet:
    """Return what a process does for the others of its fleet, and they for it."""
    from service.usecases.hand_over import Converter, Gateway  # noqa: PLC0415 -- it loads the client of the queue
    from service.usecases.take_over import Worker  # noqa: PLC0415 -- it loads the client of the queue

    gateway = worker = None
    if role != "worker":
        again_seconds = settings.lease_seconds / 2
        gateway = Gateway(
            parts,
            handovers,
            queue,
            windows=Windows(lambda: workers.most_each),
            inline_bytes=settings.inline_bytes,
            again_seconds=again_seconds,
            converter=Converter(leases, _run_here(parts)) if role == "all" else None,
        )
        if role == "gateway":
            await queue.hear_ended(handovers.gateway, gateway.hear)
    if role != "gateway":
        giving_back = msgspec.structs.replace(parts, gives_back=True)
        worker = Worker(
            queue,
            converters=converters_of(settings),
            lease_seconds=settings.lease_seconds,
            runner=own(_run_here(giving_back)) if role == "all" else None,
        )
    return Fleet(queue=queue, handovers=handovers, workers=workers, gateway=gateway, worker=worker)


def _run_here(parts: JobParts) -> RunJob:
    async def run_here(spec: JobSpec, directory: Path, ticket: QueueTicket, keep: Callable[[], None]) -> Job:
        keep()
        return await run_job(parts, spec, directory, ticket)

    return run_here


def _runner(settings: Settings, parts: JobParts, fleet: Fleet | None, own: Callable[..., JobRunner]) -> JobRunner:
    here = _run_here(parts)
    if fleet is None or fleet.gateway is None:
        return own(here)
    if fleet.worker is None:
        return own(fleet.gateway.run, require_reachable=fleet.require_reachable)
    most_here = FULL_AT * converters_of(settings)
    return own(Overflow(here, fleet.gateway.run, most_here=most_here, is_reachable=fleet.gateway.may_accept))


def _start_fleet(services: Services, fleet: Fleet, tasks: TaskGroup) -> None:
    from service.usecases.fleet import (  # noqa: PLC0415 -- it loads the client of the queue
        FLEET_TASKS,
        GATEWAY_TASKS,
        WORKER_TASKS,
    )

    of_gateway = GATEWAY_TASKS if fleet.gateway is not None else ()
    of_worker = WORKER_TASKS if fleet.worker is not None else ()
    for chore in (*FLEET_TASKS, *of_gateway, *of_worker):
        tasks.start_soon(run_periodically, services, chore)
    if fleet.worker is not None:
        tasks.start_soon(fleet.worker.work, services)
    if fleet.worker is not None and fleet.gateway is not None:
        tasks.start_soon(_connect, fleet.queue, fleet.handovers, fleet.gateway)


async def _connect(queue: "WorkQueue", handovers: HandOvers, gateway: "Gateway") -> None:
    """Connect a process that converts everything itself until then."""
    await queue.connect()
    await queue.hear_ended(handovers.gateway, gateway.hear)


def open_storage(settings: Settings, clock: Clock = utc_now) -> AbstractAsyncContextManager[Storage]:
    """Open the store of results that the settings name: buckets, or a directory of this host."""
    if places := read_bucket_configs(settings):
        return _open_buckets(places, settings, clock)
    given = settings.link_secrets
    secrets = parse_secrets(given) if given else stored_secrets(settings.data_path / "link-secrets")
    return open_local(settings.data_path / "store", secrets, clock=clock)


async def look_at_host(settings: Settings) -> Capabilities:
    """Look at the GDAL of this host.

    Raises:
        ConverterMissing: there is none that can be used.
    """
    found = shutil.which(settings.ogr2ogr or "ogr2ogr")
    if not found:
        raise ConverterMissing(
            "There is no ogr2ogr. Install GDAL (Debian: apt-get install gdal-bin; macOS: brew install gdal) or "
            "set GEOMILL_OGR2OGR to the program's path."
        )
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
    metrics.CONVERTERS.set(converters)
    metrics.SEATS.set(converters + settings.waiting_room)
    return open_sandbox(
        Config(
            work_root=work_root,
            memory_root=_memory(settings),
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
                rare_modules=RARE_PROGRAMS if capabilities.has_arrow else (),
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
        work_area = await stack.enter_async_context(open_work_area(settings.data_path / WORK / UPLOADS, None))
        capabilities = await look_at_host(settings)
        pool = await stack.enter_async_context(open_converters(settings, capabilities))
        yield LocalParts(
            engine=_engine(settings, capabilities, pool),
            pool=pool,
            work_area=work_area,
            offer=Offer(capabilities.formats),
        )


def _ogr2ogr(capabilities: Capabilities) -> Ogr2ogr:
    return Ogr2ogr(
        program=Path(capabilities.ogr2ogr),
        environment=prepared_environment(capabilities),
        fork_server=forkserver.built(),
    )


def _engine(settings: Settings, capabilities: Capabilities, pool: Pool) -> Engine:
    has_sessions = LauncherName.FORK_SERVER in pool.report().active_launchers
    return Engine(capabilities, _conversion_limits(settings), has_sessions=has_sessions)


def converters_of(settings: Settings) -> int:
    """Return how many files are converted at the same time."""
    return settings.converters or cores()


def _memory(settings: Settings) -> Path | None:
    return memory_root(settings.memory_dir, settings.data_path)


def build_app(settings: Settings) -> Application:
    """Return the ASGI application, which opens its services at its start and closes them at its end.

    Raises:
        SettingsError: a setting has no meaning.
    """
    return Application(partial(open_services, settings), _deployment(settings), _on_main_port(settings))


def application_for(services: Services, settings: Settings) -> Application:
    """Return the application of the service's port, over services that somebody else opens and closes."""
    return Application(lambda: nullcontext(services), _deployment(settings), _on_main_port(settings))


def operations_for(services: Services, settings: Settings) -> Application:
    """Return the application of the private port, over the same services."""
    return Application(lambda: nullcontext(services), _deployment(settings), FOR_OPERATORS)


def _on_main_port(settings: Settings) -> Sequence[Route]:
    routes = ON_ONE_PORT if settings.private_port is None else FOR_CLIENTS
    return routes if settings.page == "on" else [route for route in routes if route.name not in PAGE]


def _deployment(settings: Settings) -> DeploymentConfig:
    return DeploymentConfig(
        public_url=settings.public_url,
        root_path=settings.root_path,
        trusted_proxies=parse_networks(settings.trusted_proxies),
        cors_origins=tuple(settings.cors_origins.replace(",", " ").split()),
        max_header_bytes=settings.max_header_bytes,
    )


def _open_buckets(
    places: Mapping[str, BucketConfig], settings: Settings, clock: Clock
) -> AbstractAsyncContextManager[Storage]:
    # Loading the S3 client takes longer than all the rest of a start, and is of no use without a bucket.
    from service.storage.clients import Effort  # noqa: PLC0415 -- see above
    from service.storage.s3 import open_s3  # noqa: PLC0415 -- see above

    effort = Effort(
        timeout_seconds=settings.s3_timeout_seconds,
        attempts=settings.s3_attempts,
        connections=settings.s3_connections,
    )
    return open_s3(places, effort, clock=clock)


def _retention(settings: Settings) -> Retention:
    return Retention(
        job_days=settings.job_days,
        ledger_months=settings.ledger_months,
        revoked_key_days=settings.revoked_key_days,
    )


def _conversion_limits(settings: Settings) -> Limits:
    return Limits(
        wall_seconds=settings.conversion_seconds,
        cpu_seconds=math.ceil(settings.conversion_seconds),
        memory_bytes=settings.conversion_memory_bytes,
    )


def _intake_limits(settings: Settings) -> IntakeLimits:
    return IntakeLimits(
        max_file_bytes=settings.max_file_bytes,
        max_batch_bytes=settings.max_batch_bytes,
        max_batch_files=settings.max_batch_files,
        idle_seconds=settings.upload_idle_seconds,
        total_seconds=settings.upload_total_seconds,
        min_bytes_per_second=settings.upload_min_bytes_per_second,
    )
