"""Connects a process with the other processes of its fleet."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from anyio.abc import TaskGroup

from service.app.converters import converters_of
from service.jobs.dispatch import JobRunner
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.windows import Windows
from service.jobs.workers import KnownWorkers
from service.settings import Settings, SettingsError
from service.usecases.ending import JobParts
from service.usecases.maintenance import run_periodically
from service.usecases.overflow import FULL_AT, Overflow
from service.usecases.run_job import run_job
from service.usecases.services import Fleet, Role, Services

if TYPE_CHECKING:  # it needs an extra
    from service.jobs.queue_contents import QueueContents
    from service.jobs.work_queue import WorkQueue
    from service.usecases.hand_over import Gateway

_SHARING: Mapping[Role, str] = {"all": "A process with GEOMILL_NATS_URL", "gateway": "A gateway", "worker": "A worker"}


_NEEDS_EXTRA = "GEOMILL_NATS_URL needs the extra `fleet`: pip install 'geomill[fleet]'."


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
async def open_queue(settings: Settings, role: Role) -> AsyncIterator["WorkQueue"]:
    """Open the queue of a fleet; a process of the role `all` starts without it, too.

    Raises:
        QueueUnavailable: it cannot be reached.
        SettingsError: this installation lacks its client.
    """
    try:
        from service.jobs.work_queue import open_work_queue  # noqa: PLC0415 -- it needs an extra
    except ImportError:
        raise SettingsError(_NEEDS_EXTRA) from None
    async with open_work_queue(settings.nats_url, settings.lease_seconds, is_needed=role != "all") as queue:
        yield queue


async def join(
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
    giving_back = msgspec.structs.replace(parts, gives_back=True)
    run, run_or_give_back = partial(run_job, parts), partial(run_job, giving_back)
    if role != "worker":
        again_seconds = settings.lease_seconds / 2
        gateway = Gateway(
            parts,
            handovers,
            queue,
            windows=Windows(lambda: workers.most_each),
            inline_bytes=settings.inline_bytes,
            again_seconds=again_seconds,
            converter=Converter(leases, run, run_or_give_back) if role == "all" else None,
        )
        if role == "gateway":
            await queue.subscribe_to_ends(handovers.gateway, gateway.on_notice)
    if role != "gateway":
        worker = Worker(
            giving_back,
            leases,
            queue,
            converters=converters_of(settings),
            lease_seconds=settings.lease_seconds,
            runner=own(run_or_give_back) if role == "all" else None,
        )
    return Fleet(queue=queue, handovers=handovers, workers=workers, gateway=gateway, worker=worker)


def runner_of(settings: Settings, parts: JobParts, fleet: Fleet | None, own: Callable[..., JobRunner]) -> JobRunner:
    """Return what runs jobs: here, elsewhere in the fleet, or elsewhere once there are enough here."""
    here = partial(run_job, parts)
    if fleet is None or fleet.gateway is None:
        return own(here)
    if fleet.worker is None:
        return own(fleet.gateway.run, require_reachable=fleet.require_reachable)
    most_here = FULL_AT * converters_of(settings)
    return own(Overflow(here, fleet.gateway.run, most_here=most_here, is_reachable=fleet.gateway.may_accept))


def start_fleet(services: Services, fleet: Fleet, tasks: TaskGroup) -> None:
    """Start what a process of a fleet does at all times, as tasks of the group."""
    from service.usecases.answers import answer_questions  # noqa: PLC0415 -- it loads the client of the queue
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
        tasks.start_soon(fleet.worker.work, services.runner, partial(answer_questions, services))
    if fleet.worker is not None and fleet.gateway is not None:
        tasks.start_soon(_connect, fleet.queue, fleet.handovers, fleet.gateway)


async def _connect(queue: "WorkQueue", handovers: HandOvers, gateway: "Gateway") -> None:
    """Connect a process that converts everything itself until then."""
    await queue.connect()
    await queue.subscribe_to_ends(handovers.gateway, gateway.on_notice)
