"""How soon a worker that stops returns what no converter has begun: from SIGTERM until another worker can have it.

A worker has as many conversions under way as it has converters, and as many that wait. It announces each that it
returns, once the queue has it back; what is shown is when the last one was.
"""

import argparse
import asyncio
import os
import signal
import time
from statistics import median

import nats
from nats.aio.msg import Msg

from bench.fleet.conversions import verdict
from bench.fleet.hosts import LOOPBACK
from bench.fleet.site import WholeFleet, whole_fleet
from bench.load.paths import JOBS
from service.jobs.stream import STIRRED
from service.usecases.take_over import PLACES_EACH
from tests.fleet.site import WORKER
from tests.support.data import lengthy
from tests.support.patience import wait_until
from tests.support.server import Client

CONVERTERS = 2
ROUNDS_OF_A_JOB = 50
GOAL_MS = 100.0
LEASE_SECONDS = 30
LONG = lengthy(40_000)
"""A file that takes so long, as a workbook, that none has ended when the worker is stopped."""
_HELD = """
SELECT count(*) FILTER (WHERE worker_id IS NOT NULL) AS claimed, count(*) FILTER (WHERE status = 'Processing') AS begun
  FROM job WHERE id = ANY($1) AND completed_at IS NULL
"""


def run(options: argparse.Namespace) -> bool:
    """Stop a worker again and again; print what came of it, and return whether the goal was reached."""
    settings = {"GEOMILL_CONVERTERS": str(CONVERTERS), "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS)}
    with whole_fleet(lambda _: LOOPBACK, 1, 1, settings) as fleet, fleet.site.client("business") as client:
        taken = sorted(_stop_once(fleet, client) * 1000 for _ in range(max(3, options.jobs // ROUNDS_OF_A_JOB)))
        found = fleet.site.audit()
    print(
        f"stopped {len(taken)} times: the last of {CONVERTERS * (PLACES_EACH - 1)} waiting jobs was returned after "
        f"p50 {median(taken):.0f} ms, at most {taken[-1]:.0f} ms; {verdict(taken[-1], GOAL_MS, is_least=False)}"
    )
    print("all, in ms:", ", ".join(f"{one:.0f}" for one in taken))
    print(*found, sep="\n", flush=True)
    return not found and taken[-1] <= GOAL_MS


def _stop_once(fleet: WholeFleet, client: Client) -> float:
    """Return how long the worker takes; another one has taken its place after that."""
    site = fleet.site
    jobs = [
        client.convert("a.geojson", LONG, outputFormat="ods", headers={"Prefer": "respond-async"})["jobId"]
        for _ in range(CONVERTERS * PLACES_EACH)
    ]
    wait_until(lambda: site.rows(_HELD, jobs) == [{"claimed": len(jobs), "begun": CONVERTERS}])
    seconds = asyncio.run(_stop(site.nats.url, site.workers[0].process.pid, len(jobs) - CONVERTERS))
    for job in jobs:  # and not wait for the conversions
        client.delete(f"{JOBS}/{job}").raise_for_status()
    site.workers[0].process.wait()
    site.workers[0] = site.start(site.workers[0].data_dir.name, WORKER)
    wait_until(lambda: not site.messages())
    return seconds


async def _stop(url: str, pid: int, returned: int) -> float:
    """Send SIGTERM to a worker; return the seconds until it has announced so many jobs."""
    announced, last = asyncio.Semaphore(0), [0.0]

    async def note(_message: Msg) -> None:
        last[0] = time.perf_counter()
        announced.release()

    async with await nats.connect(url) as connection:
        await connection.subscribe(f"{STIRRED}.>", cb=note)
        await connection.flush()
        since = time.perf_counter()
        os.kill(pid, signal.SIGTERM)
        for _ in range(returned):
            await announced.acquire()
    return last[0] - since
