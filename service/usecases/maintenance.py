"""The periodic tasks of a serving process: keep its lease, end abandoned jobs, remove expired outputs.

Every serving process runs all of them, but what one process suffices for is done by one of the processes behind a port.
Several services on a database may do it concurrently: ending a job requires that it is still open, and removing an
output that no longer exists is not an error.
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial

import anyio
import msgspec
import structlog

from service.accounts.idempotency import INTERRUPTED
from service.cadence import until_next
from service.errors import DatabaseUnavailable, ForeignStore, QueueUnavailable, StorageUnavailable
from service.ids import JobId
from service.jobs.leases import HeldJob
from service.jobs.lifecycle import Status
from service.metering.history import PRUNED
from service.metering.ledger import Release
from service.storage.bucket_config import HOME
from service.telemetry import events, metrics
from service.usecases.services import Services

_log = structlog.get_logger()

GRACE = timedelta(minutes=1)
"""How long an output outlives its link, for downloads that start at the last moment."""
PAUSE = timedelta(milliseconds=50)
"""The pause between pruned batches, so that other statements do not wait."""
DOUBT_AFTER = timedelta(seconds=2)
"""How long this process runs a job before it checks whether another one has ended it."""
_AT_ONCE = 500


class PeriodicTask(msgspec.Struct, frozen=True):
    """A task that runs periodically."""

    work: Callable[[Services], Awaitable[None]]
    every: Callable[[Services], timedelta]
    needs_agreement: bool = False
    """Whether it deletes what is old, and so waits while the clocks of host and database contradict each other.

    So it does after a jump of the database's clock: on a single host, both are one clock, and agree.
    """


async def show_alive(services: Services) -> None:
    """Show the other processes of the service that this one is alive, and whether it accepts work."""
    runner, promises = services.runner, services.promises
    services.siblings.beat(accepts=services.pool.is_up and not runner.is_shutting_down and not promises.is_full)


async def beat(services: Services) -> None:
    """Renew the lease of this process and of the requests that it is admitting."""
    await services.leases.beat()
    metrics.CLOCK_AHEAD_SECONDS.set(services.clock.host_ahead.total_seconds())
    await services.idempotency.prolong()


async def recover(services: Services) -> None:
    """End jobs that no living process works on: nothing is charged, no output is kept (interface 3)."""
    if not await _may_judge(services):
        return
    before = services.runner.active
    held = await services.leases.held()
    jobs = [job for job in held if job.id not in before | services.runner.active]
    if services.siblings.leads:
        await services.leases.bring_back()
        jobs += await services.leases.abandoned()
    if jobs and not await _may_judge(services):  # the clock may have jumped before the database was asked who is dead
        return
    if ended := await _end(services, jobs):
        _log.warning(events.JOBS_RECOVERED, jobs=ended)
    if services.siblings.leads and (lost := await services.leases.forget_silent()):
        metrics.FLEET_WORKERS_LOST.inc(lost)
        _log.warning(events.WORKERS_LOST, workers=lost)


async def sweep(services: Services) -> None:
    """Remove expired outputs, outputs of failed jobs, inputs of ended ones, and objects that appeared too late.

    What cannot be removed, as the bucket of its region is away or another database's, keeps nothing else.
    """
    services.own_store.require_known()  # rather than to lead in the place of those that can remove something
    jobs, remove = services.jobs, services.own_store.delete
    failures: list[StorageUnavailable] = []

    async def clear(some: Callable[[int], Awaitable[int]]) -> int:
        """Clear away some after others, and return how many there were."""
        cleared = 0
        try:
            while await services.leases.lead("sweep") and (count := await some(_AT_ONCE)):
                cleared += count
        except StorageUnavailable as failure:
            _log.warning(events.STORAGE_FAILED, fault=failure.fault, detail=failure.detail)
            failures.append(failure)
        return cleared

    if outputs := await clear(partial(jobs.dispose, remove, GRACE, services.clock.earliest)):
        _log.info(events.OUTPUTS_REMOVED, outputs=outputs)
    await clear(partial(jobs.remove_inputs, remove))
    await clear(partial(jobs.remove_late, remove))
    if failures:
        raise failures[0]


async def know_store(services: Services) -> None:
    """Notice if a region of the store belongs to another database, or to the original of this one; mark new ones.

    A region that is away, or that cannot be written, is left to those who need it.
    """
    found: ForeignStore | None = None
    for region in (HOME, *services.storage.regions):
        try:
            await services.own_store.keep(region)
            await services.own_store.require_original(region)
        except ForeignStore as foreign:
            _log.warning(events.STORAGE_FAILED, fault=foreign.fault, detail=foreign.detail)
            found = foreign
        except StorageUnavailable:
            continue
    if found is not None:
        raise found


async def sweep_work_area(services: Services) -> None:
    """Remove the uploads that could not be removed, and those of services that were killed and not started again."""
    await services.work_area.remove_left()
    if services.siblings.leads:
        await services.work_area.sweep()


async def forget(services: Services) -> None:
    """Remove idempotency keys that are old by all clocks."""
    if services.siblings.leads:
        await services.idempotency.forget_old()


async def notice_usage(services: Services) -> None:
    """Tell operators once a month which accounts and organizations have nearly used up an allowance."""
    if not await services.leases.lead("usage"):
        return
    for nearly in await services.usage.notice_nearly_used():
        metrics.ALLOWANCES_NEARLY_USED.labels(nearly.allowance).inc()
        _log.warning(
            events.ALLOWANCE_NEARLY_USED,
            account_id=nearly.account_id,
            organization_id=nearly.organization_id,
            allowance=nearly.allowance,
            used=nearly.used,
            allowed=nearly.allowed,
        )


async def prune(services: Services) -> None:
    """Remove jobs, charges, counters and revoked keys past the operator's retention, in small batches."""
    pruned: dict[str, int] = {}
    for table in PRUNED:
        while await services.leases.lead("prune") and (count := await services.history.prune(table, _AT_ONCE)):
            pruned[table] = pruned.get(table, 0) + count
            await anyio.sleep(PAUSE.total_seconds())
    if pruned:
        _log.info(events.HISTORY_PRUNED, **pruned)


async def show_begun(services: Services) -> None:
    """Show jobs that have a converter as Processing, and wait until there are some again."""
    await services.jobs.show_begun()
    await services.jobs.any_begun()


async def notice_ends(services: Services) -> None:
    """Wake callers that wait for jobs of other processes, and end runs of jobs that other processes have failed."""
    held: frozenset[JobId] = frozenset().union(*(runner.active for runner in services.runners))
    doubted = [runner.held_for(DOUBT_AFTER.total_seconds()) for runner in services.runners]
    asked = (services.ends.watched - held).union(*doubted)
    for job in await services.jobs.ended(asked) if asked else ():
        is_elsewhere = services.fleet is not None and services.fleet.tell_ended(job)
        if job.status is Status.FAILED:
            for runner in services.runners[is_elsewhere:]:
                await runner.cancel(job)
        services.ends.wake(job.id)


async def measure(services: Services) -> None:
    """Update metrics that no other code updates: tasks, the queue and open reservations."""
    metrics.TASKS.set(len(anyio.get_running_tasks()))
    queue = services.pool.queue
    metrics.SEATS_TAKEN.set(queue.places_taken)
    metrics.JOBS_WAITING.set(queue.waiting)
    metrics.JOBS_RUNNING.set(queue.running)
    metrics.JOBS_SUSPENDED.set(queue.suspended)
    metrics.QUEUE_AGE_SECONDS.set(queue.age(anyio.current_time()))
    if services.siblings.leads:
        metrics.RESERVATIONS.set(await services.ledger.reservations())


async def _may_judge(services: Services) -> bool:
    await services.leases.beat()  # which notices if the clock has just jumped, so that all others seem to be dead
    return services.leases.may_judge


async def _may_delete(services: Services) -> bool:
    await services.leases.beat()  # which notices if the clock has just jumped, so that everything seems to be old
    return services.leases.may_delete


async def _end(services: Services, jobs: Iterable[HeldJob]) -> int:
    """Fail jobs, each on its own: one that cannot be ended, as its counter is wrong, keeps no other open."""
    ended = 0
    for job in jobs:
        release = Release(
            job_id=job.id,
            attempt=job.attempt,
            error_message=INTERRUPTED,
            object_key=job.object_key,  # no attempt can settle the job any more, so the sweep may remove it
            interrupted=True,
            spares_handed_over=True,  # its process was alive after all, and may have promised it since
        )
        try:
            ended += await services.ledger.release(release) is not None
        except DatabaseUnavailable:
            raise
        except Exception:  # noqa: BLE001 - see above
            _log.exception(events.JOB_LEFT, job_id=job.id)
            metrics.UPKEEP_FAILURES.labels(recover.__name__).inc()
    return ended


PERIODIC_TASKS: tuple[PeriodicTask, ...] = (
    PeriodicTask(show_alive, lambda _services: timedelta(seconds=0.5)),
    PeriodicTask(beat, lambda services: services.leases.heartbeat),
    PeriodicTask(show_begun, lambda _services: timedelta(seconds=0.25)),
    PeriodicTask(notice_ends, lambda _services: timedelta(seconds=1)),
    PeriodicTask(recover, lambda services: 2 * services.leases.heartbeat),
    PeriodicTask(know_store, lambda _services: timedelta(seconds=60)),
    PeriodicTask(sweep, lambda _services: timedelta(seconds=60), needs_agreement=True),
    PeriodicTask(sweep_work_area, lambda _services: timedelta(minutes=1)),
    PeriodicTask(notice_usage, lambda _services: timedelta(seconds=60)),
    PeriodicTask(forget, lambda _services: timedelta(hours=1), needs_agreement=True),
    PeriodicTask(prune, lambda _services: timedelta(hours=1), needs_agreement=True),
    PeriodicTask(measure, lambda _services: timedelta(seconds=2)),
)

metrics.start_at_zero(metrics.UPKEEP_FAILURES, (task.work.__name__ for task in PERIODIC_TASKS))


async def run_periodically(services: Services, task: PeriodicTask) -> None:
    """Run a task periodically, forever. A failure is logged and affects neither later runs nor other tasks."""
    while True:
        try:
            if task.needs_agreement and not await _may_delete(services):
                ahead = round(services.clock.host_ahead.total_seconds())
                _log.warning(events.UPKEEP_POSTPONED, task=task.work.__name__, host_ahead_seconds=ahead)
            else:
                await task.work(services)
        except Exception as error:  # noqa: BLE001 - see above
            is_expected = isinstance(error, DatabaseUnavailable | QueueUnavailable | StorageUnavailable)
            tell = _log.warning if is_expected else _log.exception
            tell(events.UPKEEP_FAILED, task=task.work.__name__, reason=type(error).__name__)
            metrics.UPKEEP_FAILURES.labels(task.work.__name__).inc()
        await until_next(task.every(services))
