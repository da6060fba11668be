"""Nothing lost, nothing twice: clients of every kind, while everything is killed in turn."""

import argparse
import asyncio
import os
import time
from contextlib import suppress

from bench.fleet.clients import FleetClients
from bench.fleet.faults import Kills
from bench.fleet.hosts import network
from bench.fleet.site import WholeFleet, whole_fleet
from bench.fleet.spent import spent
from bench.fleet.verdict import differences, is_idle
from tests.fleet.site import GATEWAY, WORKER

GATEWAYS, WORKERS = 2, 2
WORKER_SECONDS, GATEWAY_SECONDS = 2.0, 10.0
"""How long all of them run before one of them is killed."""
CLIENTS = 40
"""So many that converters have something to do while jobs of killed workers wait for the end of a lease."""
AWAY_SECONDS = 2.0
SHOW_SECONDS = 30.0
SHOWN = 40
SETTLE_SECONDS = 300.0
_ATTEMPTS = """
SELECT attempt - 1 AS claims, count(*) AS jobs, percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (
           ORDER BY extract(epoch FROM completed_at - created_at)
       ) AS seconds
  FROM job WHERE completed_at IS NOT NULL GROUP BY 1 ORDER BY 1
"""


def run(options: argparse.Namespace) -> bool:
    """Run the test and print what came of it; return whether nothing was wrong."""
    with network() as net, whole_fleet(net.host, GATEWAYS, WORKERS) as fleet:
        return asyncio.run(_run(fleet, options.jobs, options.seconds, options.seed))


async def _run(fleet: WholeFleet, jobs: int, seconds: float, seed: int) -> bool:
    site, since = fleet.site, time.monotonic()
    kills = Kills(site, fleet.hosts.__getitem__, seed)
    clients = FleetClients(kills.gateways, await asyncio.to_thread(fleet.keys), seed)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(kills.keep_killing(site.workers, WORKER, WORKER_SECONDS))
        tasks.create_task(kills.keep_killing(site.gateways, GATEWAY, GATEWAY_SECONDS))
        tasks.create_task(_break_servers(fleet, clients, jobs, kills))
        tasks.create_task(_show(clients, jobs, kills))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await clients.run(jobs, CLIENTS)
        kills.over.set()
    took, cpu = time.monotonic() - since, spent(os.getpid()).all
    await asyncio.to_thread(_settle, fleet)
    wrong = await asyncio.to_thread(differences, site, clients.memory, kills.suspected)
    _report(fleet, clients, kills, took)
    each = cpu / max(1, clients.memory.done)
    print(
        f"CPU of everything, clients and starts included: {each:.2f} s a request, and so {1 / each:.1f}/s by each core"
    )
    is_whole = clients.memory.done == jobs
    print(*wrong[:SHOWN], sep="\n")
    verdict = "WRONG" if wrong else "right" if is_whole else "NOT SHOWN, the time was over"
    print(f"losses: {len(wrong)} differences after {clients.memory.done} of {jobs} requests: {verdict}", flush=True)
    return is_whole and not wrong


async def _break_servers(fleet: WholeFleet, clients: FleetClients, jobs: int, kills: Kills) -> None:
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


async def _show(clients: FleetClients, jobs: int, kills: Kills) -> None:
    since = time.monotonic()
    while not await kills.is_over_after(SHOW_SECONDS):
        done, passed = clients.memory.done, time.monotonic() - since
        left = f"{(jobs - done) * passed / done / 60:.0f} min to go" if done else "none yet"
        print(f"{passed / 60:.1f} min: {done} of {jobs} requests done, {left}; killed: {dict(kills.count)}", flush=True)


def _settle(fleet: WholeFleet) -> None:
    """Wait until nothing is under way, and remove what the service would remove within a minute."""
    site, give_up_at = fleet.site, time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up_at and not is_idle(site):
        time.sleep(0.5)
    site.sweep()


def _report(fleet: WholeFleet, clients: FleetClients, kills: Kills, took: float) -> None:
    memory = clients.memory
    print(
        f"{memory.done} requests in {took:.0f} s: {len(memory.answered)} jobs answered, {len(memory.promised)} promised"
    )
    print(f"{len(memory.repeated)} files sent again with their key, {memory.refused} requests refused")
    print("killed:", dict(kills.count))
    print("sent again:", dict(memory.troubles.most_common()))
    for row in fleet.site.rows(_ATTEMPTS):
        p50, p99 = row["seconds"]
        print(f"jobs claimed {row['claims']} times: {row['jobs']}; admission to end p50 {p50:.1f} s, p99 {p99:.1f} s")
