"""Checks whether the service can accept work: database, storage, work directory, sandbox, queue (interface 10).

The queue of a fleet and its workers count for processes that can do nothing without them.

Load balancers ask often, and most under overload, so database and storage are asked at most twice a second while they
respond, and an object is stored and read at most every half a minute: a server may accept credentials and deny that.

Of several processes behind one port, one that can accept work suffices, because it takes the connections of the others.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
import msgspec

from service.errors import DatabaseUnavailable, ForeignStore, Overloaded, QueueUnavailable, StorageUnavailable
from service.storage.observed import observed
from service.usecases.services import Services

PATIENCE_SECONDS = 5.0
WITHOUT_SECONDS = 0.3
"""How long to wait for a part that the process can do without: some load balancers give a check only a second."""
OBJECTS_SECONDS = 2.0
"""How long to wait for an object to be stored and read: a store that answers and is slow still works."""
_FULL = "its disk is full"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The state of each part: "ok", or a sentence that names the problem."""

    ready: bool
    checks: dict[str, str]


async def check_readiness(services: Services) -> Readiness:
    """Check all parts, each within `PATIENCE_SECONDS`, or `WITHOUT_SECONDS` if readiness does not depend on it."""
    checks = {name: await _verdict(check, services) for name, check in _CHECKS.items()}
    fleet, queue = services.fleet, {}
    if fleet is not None:
        is_needed = fleet.gateway is None or fleet.worker is None
        patience = PATIENCE_SECONDS if is_needed else WITHOUT_SECONDS
        queue = {"queue": await _verdict(_check_queue, services, patience)}
        if is_needed:
            checks |= {**queue, "workers": await _verdict(_check_workers, services)}
    return Readiness(ready=all(verdict == "ok" for verdict in checks.values()), checks=checks | queue)


async def _verdict(
    check: Callable[[Services], Awaitable[str]], services: Services, patience: float = PATIENCE_SECONDS
) -> str:
    try:
        with anyio.fail_after(patience):
            return await check(services)
    except TimeoutError:
        return f"no answer within {patience:g} seconds"


async def _check_database(services: Services) -> str:
    try:
        await services.database_works.ensure(services.leases.beat)
    except DatabaseUnavailable:
        return "not reachable"
    return _FULL if services.database.is_full else "ok"


async def _check_storage(services: Services) -> str:
    try:
        await services.storage_works.ensure(partial(_observed, services.storage.check))
    except StorageUnavailable as unavailable:
        only_works = services.fleet is not None and services.fleet.gateway is None
        if not only_works or unavailable.fault != "denied":  # a worker may lack the right to list; see `fitness`
            return unavailable.fault
    try:
        with anyio.move_on_after(OBJECTS_SECONDS):
            await services.objects_work.ensure(partial(_observed, partial(_check_objects, services)))
    except ForeignStore as foreign:
        return f"{foreign.fault}: this is not the store in which the database has its results"
    except StorageUnavailable as unavailable:
        if unavailable.fault != "slow":
            return f"{unavailable.fault}: objects cannot be stored or read"
    return "ok"


async def _check_objects(services: Services) -> None:
    await services.storage.check_objects()
    with suppress(DatabaseUnavailable):  # which its own check tells
        await services.own_store.keep()


async def _observed(check: Callable[[], Awaitable[None]]) -> None:
    with observed("check"):
        await check()


async def _check_work(services: Services) -> str:
    try:
        return _FULL if await services.work_area.is_full() else "ok"
    except OSError as error:
        return f"cannot be used: {error.strerror}"


async def _check_sandbox(services: Services) -> str:
    return "ok" if services.pool.is_up or services.siblings.another_accepts else "not up"


async def _check_queue(services: Services) -> str:
    if services.fleet is None:
        return "ok"
    try:
        await services.fleet.queue.check()
    except QueueUnavailable:
        return services.fleet.queue.refusal or "not reachable"
    gateway = services.fleet.gateway
    return f"accepts no jobs: {gateway.refusal}" if gateway is not None and gateway.is_refused else "ok"


async def _check_workers(services: Services) -> str:
    fleet = services.fleet
    if fleet is not None and fleet.worker is not None and not fleet.worker.fitness.is_fit:
        return "this worker takes no jobs until its database, store and disk work"
    try:
        services.offer.require()
    except Overloaded:
        is_paused = fleet is not None and fleet.workers.paused
        return "none takes jobs: all have paused until their database, store and disk work" if is_paused else "none"
    return "ok"


async def _check_intake(services: Services) -> str:
    if services.siblings.another_accepts:
        return "ok"
    if services.runner.is_shutting_down:
        return "draining"
    return "full" if services.promises.is_full else "ok"


_CHECKS: dict[str, Callable[[Services], Awaitable[str]]] = {
    "database": _check_database,
    "storage": _check_storage,
    "work": _check_work,
    "sandbox": _check_sandbox,
    "intake": _check_intake,
}
