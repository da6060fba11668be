"""Clients of every kind while the fleet is being broken: the short form of `just fleet-test losses`."""

import asyncio

import pytest

from bench.fleet.clients import Clients, Keys
from bench.fleet.faults import Kills
from bench.fleet.hosts import LOOPBACK
from bench.fleet.verdict import differences
from service.accounts.administration import Terms
from service.metering.plans import BY_ID
from tests.fleet.site import WORKER, Site, wait_until
from tests.support.server import create_account

pytestmark = pytest.mark.xdist_group("fleet")

REQUESTS, AT_ONCE = 30, 8
_DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def keys_of(fleet: Site) -> Keys:
    """An account that may convert much, and one without credit."""
    plan = BY_ID["business"]
    rich = create_account(fleet.gateway, Terms(plan=plan.id, plan_owner=plan.owner))
    poor = create_account(fleet.gateway, Terms(wallet_cents=0))
    with rich, poor:
        return Keys((rich.key.api_key,), poor.key.api_key)


async def storm(fleet: Site, keys: Keys) -> tuple[Clients, Kills]:
    """Kill a worker, lose the queue with its data and every connection to the database, while clients convert."""
    kills = Kills(fleet, lambda _: LOOPBACK, seed=1)
    clients = Clients(kills.gateways, keys, seed=1)

    async def reach(requests: int) -> None:
        while clients.memory.done < requests:  # noqa: ASYNC110 -- a count
            await asyncio.sleep(0.02)

    async def strike() -> None:
        await reach(REQUESTS // 5)
        await kills.kill_one(fleet.workers, WORKER)
        await reach(2 * REQUESTS // 5)
        fleet.nats.kill()
        fleet.nats.lose_data()
        await asyncio.to_thread(fleet.nats.start)
        await reach(3 * REQUESTS // 5)
        await asyncio.to_thread(fleet.rows, _DISCONNECT)

    await asyncio.gather(clients.run(REQUESTS, AT_ONCE), strike())
    return clients, kills


def test_nothing_is_lost_and_nothing_happens_twice(fleet: Site) -> None:
    """What clients were told agrees with jobs, ledger and store, and nothing is left behind."""
    clients, kills = asyncio.run(storm(fleet, keys_of(fleet)))
    wait_until(lambda: not fleet.rows("SELECT FROM job WHERE completed_at IS NULL"))
    wait_until(lambda: not fleet.messages())
    wait_until(lambda: not any(server.work_files() for server in (*fleet.gateways, *fleet.workers)))
    fleet.sweep()
    assert differences(fleet, clients.memory, kills.suspected) == []
    assert clients.memory.done == REQUESTS
