"""Nothing lost, nothing twice: clients of every kind, while everything is killed in turn."""

import argparse
import asyncio
import time
from contextlib import suppress

from bench.fleet.clients import Clients
from bench.fleet.faults import Kills
from bench.fleet.hosts import network
from bench.fleet.site import WholeFleet, whole_fleet
from bench.fleet.verdict import differences, is_idle
from tests.fleet.site import GATEWAY, WORKER

GATEWAYS, WORKERS = 2, 2
WORKER_SECONDS, GATEWAY_SECONDS = 2.0, 10.0
"""How long all of them run before one of them is killed."""
CLIENTS = 24
AWAY_SECONDS = 2.0
SHOW_SECONDS = 30.0
SETTLE_SECONDS = 300.0


def run(options: argparse.Namespace) -> bool:
    """Run the test and print what came of it; return whether nothing was wrong."""
    with network() as net, whole_fleet(net.host, GATEWAYS, WORKERS) as fleet:
        return asyncio.run(_run(fleet, options.jobs, options.seconds, options.seed))


async def _run(fleet: WholeFleet, jobs: int, seconds: float, seed: int) -> bool:
    site, since = fleet.site, time.monotonic()
    kills = Kills(site, fleet.hosts.__getitem__, seed)
    clients = Clients(kills.gateways, await asyncio.to_thread(fleet.keys), seed)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(kills.keep_killing(site.workers, WORKER, WORKER_SECONDS))
        tasks.create_task(kills.keep_killing(site.gateways, GATEWAY, GATEWAY_SECONDS))
        tasks.create_task(_break_servers(fleet, clients, jobs, kills))
        tasks.create_task(_show(clients, kills))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds or None):
                await clients.run(jobs, CLIENTS)
        kills.over.set()
    took = time.monotonic() - since
    await asyncio.to_thread(_settle, fleet)
    wrong = await asyncio.to_thread(differences, site, clients.memory, kills.suspected)
    _report(clients, kills, took, wrong)
    return not wrong


async def _break_servers(fleet: WholeFleet, clients: Clients, jobs: int, kills: Kills) -> None:
    """Restart PostgreSQL in order, then after a crash; kill NATS, the second time with its data."""
    postgres, nats = fleet.postgres, fleet.site.nats

    def lose() -> None:
        nats.kill()
        nats.lose_data()

    for share, name, end in (
        (0.2, "PostgreSQL restarted", postgres.stop),
        (0.4, "NATS killed", nats.kill),
        (0.6, "PostgreSQL killed", postgres.kill),
        (0.8, "NATS killed and its data removed", lose),
    ):
        while clients.memory.done < share * jobs:
            if await kills.is_over_after(0.1):
                return
        await asyncio.to_thread(end)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(nats.start if "NATS" in name else postgres.start)
        kills.count[name] += 1


async def _show(clients: Clients, kills: Kills) -> None:
    while not await kills.is_over_after(SHOW_SECONDS):
        print(f"{clients.memory.done} requests done; killed: {dict(kills.count)}", flush=True)


def _settle(fleet: WholeFleet) -> None:
    """Wait until nothing is under way, and remove what the service would remove within a minute."""
    site, give_up_at = fleet.site, time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up_at and not is_idle(site):
        time.sleep(0.5)
    site.sweep()


def _report(clients: Clients, kills: Kills, took: float, wrong: list[str]) -> None:
    memory = clients.memory
    print(
        f"{memory.done} requests in {took:.0f} s: {len(memory.answered)} jobs answered, {len(memory.promised)} promised"
    )
    print(f"{len(memory.repeated)} files sent again with their key, {memory.refused} requests refused")
    print("killed:", dict(kills.count))
    print("sent again:", dict(memory.troubles.most_common()))
    print(*wrong[:40], f"{len(wrong)} differences", sep="\n", flush=True)
