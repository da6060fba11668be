"""Clients of every kind while the fleet is being broken: the short form of `just fleet-test losses`."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bench.fleet.clients import FleetClients, Keys
from bench.fleet.faults import Kills
from bench.fleet.hosts import LOOPBACK
from bench.fleet.verdict import differences, is_idle
from service.accounts.administration import Terms
from service.metering.plans import BY_ID
from tests.fleet.site import GATEWAY, WORKER, Site
from tests.support.patience import wait_until
from tests.support.server import create_account

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(900)]  # two processes start while requests wait

REQUESTS_EACH = 10
"""Clients send so many, all at once, while one thing breaks."""
SEED = 1
"""With it, clients send files of all kinds."""
_DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def make_keys(fleet: Site) -> Keys:
    """Make an account that may convert much, and one without credit."""
    plan = BY_ID["business"]
    rich = create_account(fleet.gateway, Terms(plan=plan.id, plan_owner=plan.owner))
    poor = create_account(fleet.gateway, Terms(wallet_cents=0))
    with rich, poor:
        return Keys((rich.key.api_key,), poor.key.api_key)


async def storm(fleet: Site, keys: Keys) -> tuple[FleetClients, Kills]:
    """Break one thing after the other, each while requests are being answered."""
    kills = Kills(fleet, lambda _: LOOPBACK, SEED)
    clients = FleetClients(kills.gateways, keys, SEED)

    async def lose_queue() -> None:
        fleet.nats.kill()
        fleet.nats.lose_data()
        await asyncio.to_thread(fleet.nats.start)

    async def once_one_is_answered(done: int, strike: Callable[[], Awaitable[object]]) -> None:
        while clients.memory.done == done:  # noqa: ASYNC110 -- a count
            await asyncio.sleep(0.02)
        await strike()

    for strike in (
        lambda: kills.kill_one(fleet.workers, WORKER),
        lose_queue,
        lambda: kills.kill_one(fleet.gateways, GATEWAY),
        lambda: asyncio.to_thread(fleet.rows, _DISCONNECT),
    ):
        done = clients.memory.done
        await asyncio.gather(clients.run(REQUESTS_EACH, REQUESTS_EACH), once_one_is_answered(done, strike))
    return clients, kills


def test_nothing_is_lost_and_nothing_happens_twice(fleet: Site) -> None:
    """What clients were told agrees with jobs, ledger and store, and nothing is left behind."""
    clients, kills = asyncio.run(storm(fleet, make_keys(fleet)))
    wait_until(lambda: is_idle(fleet), longest_pause=0.5)
    fleet.sweep()
    assert differences(fleet, clients.memory, kills.suspected) == []
    memory = clients.memory
    assert memory.answered
    assert memory.promised
    assert memory.repeated
    assert memory.refused
