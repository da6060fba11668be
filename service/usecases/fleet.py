"""The periodic tasks of the processes of a fleet, in addition to those of `maintenance`."""

from datetime import timedelta

import anyio
import structlog

from service.telemetry import events, metrics
from service.usecases.hand_over_again import hand_over_again, hand_over_dropped
from service.usecases.maintenance import DOUBT_AFTER, PeriodicTask
from service.usecases.services import Services

_log = structlog.get_logger()

QUEUE_SECONDS = 5.0
"""How long after its start a process may be without its queue before that counts as a failure."""


async def hand_over_lost(services: Services) -> None:
    """Hand over again jobs that no worker has and that are no longer in the queue."""
    fleet = services.fleet
    if fleet is None:
        return
    with anyio.move_on_after(QUEUE_SECONDS):  # a process that can do without the queue starts before it is connected
        await fleet.queue.connected()
    await fleet.queue.check()  # which creates it if it is gone
    if fleet.gateway is not None:
        fleet.gateway.require_acceptance()
    jobs = await hand_over_dropped(fleet.handovers, fleet.queue, services.active)
    if await services.leases.lead("hand over"):
        jobs += await hand_over_again(fleet.handovers, fleet.queue, services.leases.heartbeat.total_seconds())
    if jobs:
        metrics.FLEET_HANDED_OVER_AGAIN.inc(jobs)
        _log.warning(events.JOBS_HANDED_OVER_AGAIN, jobs=jobs)


async def measure_backlog(services: Services) -> None:
    """Update the metrics of what waits for workers, from which operators start more of them."""
    if services.fleet is None or not services.siblings.leads:
        return
    backlog = await services.fleet.handovers.backlog()
    metrics.FLEET_JOBS_WAITING.set(backlog.jobs)
    metrics.FLEET_QUEUE_AGE_SECONDS.set(backlog.age_seconds)
    metrics.FLEET_CONVERTER_SECONDS_WAITING.set(backlog.converter_seconds)


async def know_workers(services: Services) -> None:
    """Learn which formats the workers have, and how many jobs they can take."""
    if (fleet := services.fleet) is None:
        return
    await fleet.workers.look()
    metrics.FLEET_WORKERS_PAUSED.set(fleet.workers.paused)
    if fleet.gateway is not None:
        fleet.gateway.note_workers()


async def give_back_lost(services: Services) -> None:
    """Release claimed jobs that this process does not run, and end runs of jobs that it no longer claims."""
    runner, before = services.runners[-1], services.active
    claimed = {job.id: job.attempt for job in await services.leases.claimed()}
    given_back = 0
    for job_id in claimed.keys() - before - services.active:
        given_back += await services.leases.give_back(job_id, claimed[job_id])
    for job_id in await services.leases.superseded(runner.held_for(DOUBT_AFTER.total_seconds())):
        await runner.withdraw(job_id)
    if given_back:
        _log.warning(events.JOBS_GIVEN_BACK, jobs=given_back)


FLEET_TASKS: tuple[PeriodicTask, ...] = (PeriodicTask(hand_over_lost, lambda services: 2 * services.leases.heartbeat),)
"""The tasks of every process of a fleet."""
GATEWAY_TASKS: tuple[PeriodicTask, ...] = (
    PeriodicTask(know_workers, lambda services: services.leases.heartbeat),
    PeriodicTask(measure_backlog, lambda _services: timedelta(seconds=5)),
)
"""The additional tasks of gateways."""
WORKER_TASKS: tuple[PeriodicTask, ...] = (PeriodicTask(give_back_lost, lambda services: 2 * services.leases.heartbeat),)
"""The additional tasks of workers."""

metrics.start_at_zero(
    metrics.UPKEEP_FAILURES, (task.work.__name__ for task in (*FLEET_TASKS, *GATEWAY_TASKS, *WORKER_TASKS))
)
