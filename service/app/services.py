"""Opens everything that a process needs to answer requests and convert files."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from sandbox.pool import Pool
from service.accounts.idempotency import IdempotencyKeys
from service.accounts.identity import TrustedGateway, parse_identity_secrets
from service.accounts.keys import Authenticator
from service.app.converters import (
    converters_of,
    look_at_gateway,
    look_at_host,
    make_engine,
    memory_of,
    open_converters,
    open_uploads,
)
from service.app.database import make_database
from service.app.fleet import join, open_queue, require_fleet, runner_of, start_fleet
from service.app.storage import open_storage
from service.clock import DatabaseClock
from service.db.pool import Database
from service.engine.capabilities import Capabilities
from service.errors import DatabaseUnavailable, StorageUnavailable
from service.formats.offer import Offer
from service.ids import ServerId
from service.intake.form import IntakeLimits
from service.intake.workspace import WorkArea
from service.jobs.dispatch import JobRunner
from service.jobs.ends import EndWatch
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.promises import Promises
from service.jobs.register import JobRegister
from service.jobs.workers import KnownWorkers
from service.metering.history import History, Retention
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.metering.usage import UsageReports
from service.settings import Settings
from service.siblings import Siblings, no_siblings
from service.storage.port import Storage
from service.telemetry import metrics
from service.telemetry.exposition import sharing_metrics
from service.telemetry.lag import watch_lag
from service.telemetry.tracing import tracing
from service.usecases.ending import JobParts
from service.usecases.maintenance import PERIODIC_TASKS, know_store, run_periodically
from service.usecases.own_store import OwnStore
from service.usecases.services import Role, Services
from service.usecases.shutdown import end_jobs

if TYPE_CHECKING:  # it needs an extra
    from service.jobs.work_queue import WorkQueue

GOODBYE_SECONDS = 5.0
STORE_SECONDS = 5.0
"""How long a start waits for a store that is away."""


@asynccontextmanager
async def open_services(
    settings: Settings, clock: DatabaseClock | None = None, siblings: Siblings | None = None, role: Role = "all"
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
        opened = await _open(stack, settings, clock or DatabaseClock(), role)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        services = await _assemble(opened, tasks, siblings or no_siblings())
        opened.pool.on_released = partial(_note_release, services)
        metrics.PROCESSES.set(1)
        try:
            await _start(services, tasks)
            yield services
        finally:
            await _close(services, tasks, settings.drain_seconds)


class _Opened(NamedTuple):
    """What a process has opened, and for which role."""

    settings: Settings
    role: Role
    clock: DatabaseClock
    database: Database
    storage: Storage
    work_area: WorkArea
    capabilities: Capabilities
    pool: Pool
    queue: "WorkQueue | None"
    """Connects it with other hosts, if it shares their jobs."""


async def _open(stack: AsyncExitStack, settings: Settings, clock: DatabaseClock, role: Role) -> _Opened:
    stack.enter_context(sharing_metrics())
    stack.enter_context(tracing(settings.traces_url))
    database = await stack.enter_async_context(make_database(settings))
    storage = await stack.enter_async_context(open_storage(settings, clock))
    work_area = await stack.enter_async_context(open_uploads(settings, memory_of(settings)))
    capabilities = await (look_at_gateway(settings) if role == "gateway" else look_at_host(settings))
    pool = await stack.enter_async_context(open_converters(settings, capabilities))
    is_shared = role != "all" or bool(settings.nats_url)
    queue = await stack.enter_async_context(open_queue(settings, role)) if is_shared else None
    return _Opened(settings, role, clock, database, storage, work_area, capabilities, pool, queue)


async def _assemble(opened: _Opened, tasks: TaskGroup, siblings: Siblings) -> Services:
    settings, role, clock, database, *_ = opened
    leases = _leases(opened)
    parts = _job_parts(opened, leases.server_id)
    formats = opened.capabilities.formats if role != "gateway" else ()
    offer = Offer(formats)
    promises = _promises(settings, opened.pool)
    ends = EndWatch(most=settings.max_connections // 2, most_each=settings.max_per_account)
    own = partial(JobRunner, opened.pool, tasks=tasks, retry_after=promises.retry_after, ends=ends)
    fleet = None
    if opened.queue is not None:
        handovers = HandOvers(database, leases.server_id, _lease(settings))
        workers = KnownWorkers(leases, offer, own=formats)
        fleet = await join(settings, role, parts, own, leases, queue=opened.queue, handovers=handovers, workers=workers)
    return Services(
        **msgspec.structs.asdict(parts),
        clock=clock,
        database=database,
        authenticator=Authenticator(database, clock),
        gateway=TrustedGateway(parse_identity_secrets(settings.identity_secret), settings.identity_seconds),
        idempotency=IdempotencyKeys(database, _lease(settings), clock),
        history=History(database, msgspec.convert(settings, Retention, from_attributes=True), clock.earliest),
        usage=UsageReports(database),
        leases=leases,
        offer=offer,
        promises=promises,
        ends=ends,
        most_wait_seconds=settings.wait_seconds,
        runner=runner_of(settings, parts, fleet, own),
        intake=_intake_limits(settings),
        siblings=siblings,
        fleet=fleet,
        asked=fleet.queue.questions if fleet is not None and role == "gateway" else None,
    )


def _job_parts(opened: _Opened, server_id: ServerId) -> JobParts:
    settings, database, storage = opened.settings, opened.database, opened.storage
    pricing = Pricing(settings.wallet_base_cents, settings.wallet_cents_per_mib)
    return JobParts(
        ledger=Ledger(
            database,
            pricing,
            storage.regions,
            hands_over=opened.role == "gateway",
            worker=server_id,
            confirmed=opened.clock.confirmed,
        ),
        jobs=JobRegister(database),
        engine=make_engine(settings, opened.capabilities, opened.pool),
        pool=opened.pool,
        storage=storage,
        own_store=OwnStore(database, storage),
        work_area=opened.work_area,
        gives_back=opened.role == "worker",
    )


def _leases(opened: _Opened) -> Leases:
    is_shared = opened.queue is not None
    offers = is_shared and opened.role != "gateway"  # to those that hand jobs over
    return Leases(
        opened.database,
        ServerId(uuid4()),
        _lease(opened.settings),
        opened.capabilities.formats if offers else None,
        converters=converters_of(opened.settings) if offers else None,
        hands_over=is_shared and opened.role != "worker",
        clock=opened.clock,
    )


def _lease(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.lease_seconds)


def _promises(settings: Settings, pool: Pool) -> Promises:
    return Promises(
        converters=converters_of(settings),
        most=converters_of(settings) + settings.waiting_room,
        taken=lambda: pool.queue.places_taken,
        taken_by=pool.queue.places_by_tenant,
        now=time.monotonic,
    )


def _note_release(services: Services) -> None:
    services.promises.note_end()
    if services.fleet is not None and services.fleet.worker is not None:
        services.fleet.worker.note_release()


async def _start(services: Services, tasks: TaskGroup) -> None:
    fleet = services.fleet
    await services.leases.beat()
    with anyio.move_on_after(STORE_SECONDS), suppress(StorageUnavailable, DatabaseUnavailable):
        await know_store(services)  # before the first request
    if fleet is not None and fleet.gateway is not None:
        await fleet.workers.look()
    for chore in PERIODIC_TASKS:
        tasks.start_soon(run_periodically, services, chore)
    if fleet is not None:
        start_fleet(services, fleet, tasks)
    tasks.start_soon(watch_lag)


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


def _intake_limits(settings: Settings) -> IntakeLimits:
    return IntakeLimits(
        max_file_bytes=settings.max_file_bytes,
        max_batch_bytes=settings.max_batch_bytes,
        max_batch_files=settings.max_batch_files,
        idle_seconds=settings.upload_idle_seconds,
        total_seconds=settings.upload_total_seconds,
        min_bytes_per_second=settings.upload_min_bytes_per_second,
    )
