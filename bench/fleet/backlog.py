"""A hundred thousand jobs that wait: claims stay quick, memory stays flat, and workers that convert nothing drain them.

What is measured is the queue's layer: the real queue, the seals and the real statements that check, claim and settle,
in two processes, and nothing else.
"""

import argparse
import asyncio
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from statistics import median
from uuid import uuid4

import anyio
import asyncpg
import msgspec
import psutil

from bench.fleet.site import ACCOUNTS, Bare, bare_site
from bench.fleet.spent import spent
from bench.load.site import make_accounts
from service.clock import utc_now
from service.db.pool import open_pool
from service.formats.request import ConversionRequest
from service.ids import AccountId, JobId, ServerId, uuid7
from service.jobs.handover import HandOver, message_of, proof_of, read_handover, sealed
from service.jobs.leases import Leases
from service.jobs.lifecycle import Status
from service.jobs.notices import Notice
from service.jobs.records import Job
from service.jobs.work_queue import open_work_queue
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.storage.port import new_key
from tests.support.jobs import settlement

PROCESSES, EACH = 2, 32
"""As many jobs under way in each process as in a worker with half as many converters."""
CONVERSION_SECONDS = 0.01
"""How long a job has a converter that does nothing: less than the smallest file takes."""
LEASE_SECONDS = 600
CLAIM_P99_MS, LEAST_PER_SECOND = 10.0, 1000.0
OFFERED_AT_ONCE = 256
CONTENT = bytes(200)
_INSERT = """
INSERT INTO job (id, account_id, payer_id, status, original_file_name, input_format, output_format, input_size_bytes,
                 created_at, server_id, period, object_key)
SELECT i.id, a.id, a.payer_id, 'Pending', 'a.geojson', 'geojson', 'csv', 200, service_time(), $2, service_month(), k
  FROM unnest($1::uuid[], $3::text[]) AS i(id, k), account a WHERE a.id = $4
"""
_COUNT = """
INSERT INTO usage (payer_id, period, conversions, bytes, conversions_allowed, bytes_allowed)
SELECT payer_id, service_month(), $2::int, 200 * $2::bigint, $2::int, 200 * $2::bigint FROM account WHERE id = $1
"""


class Drained(msgspec.Struct, frozen=True):
    """What one process did: the milliseconds of its claims, and its memory in MB at the beginning and the end.

    `times` are those of its first and last claim, by a clock that all processes share.
    """

    claims: list[float]
    times: tuple[float, float]
    memory: tuple[float, float]
    cpu_seconds: float


def run(options: argparse.Namespace) -> bool:
    """Run the test and print what came of it; return whether everything was settled once."""
    count = options.backlog
    with bare_site() as site:
        gateway = ServerId(uuid4())
        anyio.run(_fill, site, gateway, count)
        before = {name: (_memory(pid), spent(pid).all) for name, pid in site.pids.items()}
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as processes:
            drained = list(processes.map(_drain, [site] * PROCESSES))
        took = max(one.times[1] for one in drained) - min(one.times[0] for one in drained)
        after = {name: (_memory(pid), spent(pid).all) for name, pid in site.pids.items()}
        completed, charged = anyio.run(_count, site.dsn)
    claims = sorted(claim for one in drained for claim in one.claims)
    p99 = claims[int(len(claims) * 0.99)]
    print(f"{count} jobs drained in {took:.1f} s: {count / took:.0f}/s (goal {LEAST_PER_SECOND:.0f})")
    print(f"claims: p50 {median(claims):.1f} ms, p99 {p99:.1f} ms (goal {CLAIM_P99_MS:.0f})")
    print(f"CPU of workers: {sum(one.cpu_seconds for one in drained) / count * 1000:.2f} ms a job")
    for number, one in enumerate(drained, 1):
        print(f"memory of worker {number}: {one.memory[0]:.0f} MB at the beginning, {one.memory[1]:.0f} MB at the end")
    for name, (megabytes, seconds) in before.items():
        print(f"memory of {name}: {megabytes:.0f} MB before, {after[name][0]:.0f} MB after")
        print(f"CPU of {name}: {(after[name][1] - seconds) / count * 1000:.2f} ms a job")
    print(f"{completed} completed, {charged} charged", flush=True)
    return (completed, charged) == (count, count)


async def _fill(site: Bare, gateway: ServerId, count: int) -> None:
    """Insert the jobs as admitted, and hand them over."""
    accounts = [key.account_id for key in (await make_accounts(site.dsn, ACCOUNTS))[:-1]]
    now = utc_now()
    jobs = [(JobId(uuid7(now)), accounts[number % len(accounts)], new_key()) for number in range(count)]
    connection = await asyncpg.connect(site.dsn)
    for account in accounts:
        some = [(job_id, key) for job_id, owner, key in jobs if owner == account]
        await connection.execute(_INSERT, [one[0] for one in some], gateway, [one[1] for one in some], account)
        await connection.execute(_COUNT, account, len(some))
    heartbeat = "INSERT INTO server (id, started_at, heartbeat_at) VALUES ($1, now(), now())"
    await connection.execute(heartbeat, gateway)
    await connection.close()
    since = time.monotonic()
    async with open_work_queue(site.nats, LEASE_SECONDS) as queue:
        for start in range(0, count, OFFERED_AT_ONCE):
            some_jobs = jobs[start : start + OFFERED_AT_ONCE]
            await asyncio.gather(
                *(
                    queue.offer(message_of(sealed(_handover(job_id, owner, gateway), key)))
                    for job_id, owner, key in some_jobs
                )
            )
        assert await queue.check() == count
    print(f"{count} jobs handed over in {time.monotonic() - since:.1f} s", flush=True)


def _handover(job_id: JobId, owner: AccountId, gateway: ServerId) -> HandOver:
    job = Job(
        id=job_id,
        status=Status.PENDING,
        original_file_name="a.geojson",
        input_format="geojson",
        output_format="csv",
        input_size_bytes=len(CONTENT),
        created_at=utc_now(),
    )
    return HandOver(
        job=job,
        account_id=owner,
        request=ConversionRequest(output="csv"),
        target="csv",
        retention_hours=4,
        gateway=gateway,
        content=CONTENT,
    )


def _drain(site: Bare) -> Drained:
    """Take, claim, settle and acknowledge until nothing is left, in this process."""
    return asyncio.run(_drain_all(site))


async def _drain_all(site: Bare) -> Drained:
    claims: list[float] = []
    ended: list[float] = []
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_pool(site.dsn))
        queue = await stack.enter_async_context(open_work_queue(site.nats, LEASE_SECONDS))
        leases = Leases(database, ServerId(uuid4()), timedelta(seconds=LEASE_SECONDS))
        ledger = Ledger(database, Pricing(1, 1), worker=leases.server_id)
        await leases.beat()
        before, started = _memory(psutil.Process().pid), time.process_time()

        async def take_one_after_the_other() -> None:
            while delivery := await queue.deliveries.take(lambda: True):
                handover = read_handover(delivery.data)
                assert handover is not None
                began = time.perf_counter()
                claim = await leases.claim(
                    handover.job.id,
                    handover.account_id,
                    handover.gateway,
                    new_key(),
                    proof_of(delivery.data, handover.seal),
                    durable=not ledger.will_flush,
                )
                ended.append(time.perf_counter())
                claims.append((ended[-1] - began) * 1000)
                if claim.attempt is not None:
                    ledger.note_claim(handover.job.id, claim.attempt, is_durable=claim.is_durable)
                    await asyncio.sleep(CONVERSION_SECONDS)
                    assert await ledger.is_durable(handover.job.id, claim.attempt)
                    assert await ledger.settle(settlement(handover.job.id, claim.attempt))
                await queue.publish_end(handover.gateway, Notice(handover.job.id))
                await delivery.acknowledge()

        async def leave_when_empty() -> None:
            while await queue.check():  # noqa: ASYNC110 -- the server does not tell
                await asyncio.sleep(1.0)
            queue.leave()

        await asyncio.gather(leave_when_empty(), *(take_one_after_the_other() for _ in range(EACH)))
        used = time.process_time() - started
        return Drained(claims, (ended[0], ended[-1]), (before, _memory(psutil.Process().pid)), used)


async def _count(dsn: str) -> tuple[int, int]:
    connection = await asyncpg.connect(dsn)
    completed: int = await connection.fetchval("SELECT count(*) FROM job WHERE status = 'Completed'")
    charged: int = await connection.fetchval("SELECT count(*) FROM ledger")
    await connection.close()
    return completed, charged


def _memory(pid: int) -> float:
    """Memory that a process and those below it have asked for, in MB; what is shared among them counts once."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return sum(one.memory_full_info().uss for one in family) / 1e6
    except psutil.Error:
        return 0.0
