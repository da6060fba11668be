"""All that answers requests and converts files."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

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
from service.errors import DatabaseUnavailable
from service.formats.offer import Offer
from service.ids import ServerId
from service.intake.form import IntakeLimits
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
from service.telemetry import metrics
from service.telemetry.exposition import sharing_metrics
from service.telemetry.lag import watch_lag
from service.telemetry.tracing import tracing
from service.usecases.ending import JobParts
from service.usecases.maintenance import PERIODIC_TASKS, run_periodically
from service.usecases.services import Role, Services
from service.usecases.shutdown import end_jobs

GOODBYE_SECONDS = 5.0


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
    clock = clock or DatabaseClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(sharing_metrics())
        stack.enter_context(tracing(settings.traces_url))
        database = await stack.enter_async_context(make_database(settings))
        storage = await stack.enter_async_context(open_storage(settings, clock))
        work_area = await stack.enter_async_context(open_uploads(settings, memory_of(settings)))
        is_shared = role != "all" or bool(settings.nats_url)
        capabilities = await (look_at_gateway(settings) if role == "gateway" else look_at_host(settings))
        offer = Offer(capabilities.formats if role != "gateway" else ())
        pool = await stack.enter_async_context(open_converters(settings, capabilities))
        engine = make_engine(settings, capabilities, pool)
        pricing = Pricing(settings.wallet_base_cents, settings.wallet_cents_per_mib)
        ledger = Ledger(database, pricing, storage.regions, hands_over=role == "gateway")
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
            clock=clock,
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
        queue = await stack.enter_async_context(open_queue(settings, role)) if is_shared else None
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
            else await join(settings, role, parts, own, leases, queue=queue, handovers=handovers, workers=workers)
        )

        def note_release() -> None:
            promises.note_end()
            if fleet is not None and fleet.worker is not None:
                fleet.worker.note_release()

        pool.on_released = note_release
        services = Services(
            **msgspec.structs.asdict(parts),
            clock=clock,
            database=database,
            authenticator=Authenticator(database, clock),
            gateway=TrustedGateway(parse_identity_secrets(settings.identity_secret), settings.identity_seconds),
            idempotency=IdempotencyKeys(database, lease, clock.earliest),
            history=History(database, msgspec.convert(settings, Retention, from_attributes=True)),
            usage=UsageReports(database),
            leases=leases,
            offer=offer,
            promises=promises,
            ends=ends,
            most_wait_seconds=settings.wait_seconds,
            runner=runner_of(settings, parts, fleet, own),
            intake=_intake_limits(settings),
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
                start_fleet(services, fleet, tasks)
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


def _intake_limits(settings: Settings) -> IntakeLimits:
    return IntakeLimits(
        max_file_bytes=settings.max_file_bytes,
        max_batch_bytes=settings.max_batch_bytes,
        max_batch_files=settings.max_batch_files,
        idle_seconds=settings.upload_idle_seconds,
        total_seconds=settings.upload_total_seconds,
        min_bytes_per_second=settings.upload_min_bytes_per_second,
    )
