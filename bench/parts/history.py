"""Measures whether a long history or many accounts slow anything down.

    python -m bench.parts.history [--sizes 10,1000,1000000] [--calls 300]

For each size there is a database with so many accounts and so many ended and charged jobs, a tenth of them the
caller's own, made by SQL. A job's status, the list of the newest jobs and an admission are asked of all of them in
turn, so that a slow moment falls on all alike. Goal: the 99th percentiles of status and list with a million rows stay
within twice those of the smallest. Then the books are audited: how long in all, how long at most one statement holds
its snapshot, and which large tables a plan reads whole. Figures go to bench/results/history.json.
"""

import argparse
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import cycle

import anyio

from bench.load.database import make_accounts, open_cluster, open_database
from bench.measure.figures import latency_of
from bench.measure.meter import load_average
from bench.parts.admissions import Callers
from bench.report.results import DIRECTORY, write_json
from service.db.pool import Connection, Database
from service.db.queries import load
from service.ids import AccountId
from service.jobs.register import JobRegister
from service.metering.audit import CHECKS, audit_books

RESULTS = DIRECTORY / "history.json"
GOAL = 2.0
LISTED = 20
LARGE = ("ledger", "job", "usage")
OWN_SHARE = 10

_ENDED_JOBS = """
INSERT INTO job (id, account_id, payer_id, status, server_id, attempt, original_file_name, input_format, output_format,
                 input_size_bytes, period, created_at, completed_at, feature_count, geometry_type,
                 processing_time_ms, output_size_bytes, object_key, download_name, media_type, expires_at, details)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid,
       owner, owner, 'Completed', gen_random_uuid(), 1, 'places.geojson', 'geojson', 'shapefile', 4000,
       date_trunc('month', at)::date, at, at, 20, 'Point', 20, 4000, md5(n::text), 'places.zip',
       'application/zip', at + interval '2 days', '{"output_epsg": 4326}'
  FROM (SELECT n, now() - n * interval '1 second' AS at,
               CASE WHEN n % $4 = 0 THEN $1::uuid ELSE ($2::uuid[])[1 + n % cardinality($2::uuid[])] END AS owner
          FROM generate_series(1, $3::int) AS n) AS made
"""

_CHARGES = """
INSERT INTO ledger (job_id, account_id, payer_id, period, conversions, bytes, cents, settled_at)
SELECT id, account_id, payer_id, period, 1, input_size_bytes, 0, completed_at FROM job
"""
_COUNTERS = """
INSERT INTO usage (payer_id, period, conversions, bytes, conversions_allowed, bytes_allowed)
SELECT payer_id, period, count(*), sum(bytes), count(*), sum(bytes) FROM ledger GROUP BY payer_id, period
"""

_AUDIT = load("audit")

Call = Callable[[], Awaitable[object]]


async def fill(connection: Connection, size: int) -> AccountId:
    """Make `size` accounts and `size` ended jobs, and return the account that a tenth of the jobs belong to."""
    await connection.execute("SET session_replication_role = replica")  # no foreign key is checked, as nothing is wrong
    accounts = await make_accounts(connection, size)
    await connection.execute(_ENDED_JOBS, accounts[0], accounts[: min(size, 100_000)], size, OWN_SHARE)
    await connection.execute(_CHARGES)
    await connection.execute(_COUNTERS)
    await connection.execute("RESET session_replication_role")
    await connection.execute("VACUUM ANALYZE")
    return accounts[0]


async def calls_on(database: Database, caller: AccountId) -> dict[str, Call]:
    """What is measured; the status is asked of jobs of every age."""
    register, ledger = JobRegister(database), Callers(database)
    rows = await database.fetch("SELECT id FROM job WHERE account_id = $1 ORDER BY random() LIMIT 500", caller)
    ids = cycle([row["id"] for row in rows])
    return {
        "status": lambda: register.find(next(ids), caller),
        "list": lambda: register.recent(caller, LISTED),
        "admission": lambda: ledger.admit(caller),
    }


async def measure(calls: dict[tuple[str, int], Call], count: int) -> dict[tuple[str, int], list[float]]:
    """Seconds of each call, all in turn, after some that warm up."""
    taken: dict[tuple[str, int], list[float]] = {name: [] for name in calls}
    for number in range(-count // 5, count):
        for name, call in calls.items():
            since = time.perf_counter()
            await call()
            if number >= 0:
                taken[name].append(time.perf_counter() - since)
    return taken


async def audit(database: Database, statements: Sequence[float]) -> dict[str, object]:
    """Audit the ledger, which must agree, and look at the plans; `statements` takes how long each statement was."""
    plans = [
        await database.fetch(f"EXPLAIN {_AUDIT[check.statement]}", *check.after.values(), check.at_once)
        for check in CHECKS
    ]
    lines = [row[0] for plan in plans for row in plan]
    before, began = len(statements), time.perf_counter()
    assert await audit_books(database) == []
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "statements": len(statements) - before,
        "longestStatementMs": round(max(statements[before:]) * 1000, 1),
        "readWhole": [table for table in LARGE if any(f"Seq Scan on {table} " in line for line in lines)],
    }


async def compare(sizes: Sequence[int], count: int) -> dict[str, object]:
    """Fill a database of each size, measure, and set each beside the smallest."""
    calls: dict[tuple[str, int], Call] = {}
    opened: dict[int, tuple[Database, list[float]]] = {}
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(open_cluster())
        for size in sizes:
            statements: list[float] = []
            watch = partial(_note, statements)
            database = await stack.enter_async_context(open_database(dsn, f"rows{size}", watch))
            opened[size] = database, statements
            async with database.connection() as connection:
                caller = await fill(connection, size)
            calls |= {(name, size): call for name, call in (await calls_on(database, caller)).items()}
        taken = await measure(calls, count)
        audits = {size: await audit(*opened[size]) for size in sizes}
    return {name: _beside_smallest(name, sizes, taken) for name in ("status", "list", "admission")} | {"audit": audits}


def _note(statements: list[float], _name: str, seconds: float) -> None:
    statements.append(seconds)


def _beside_smallest(
    name: str, sizes: Sequence[int], taken: dict[tuple[str, int], list[float]]
) -> dict[int, dict[str, float]]:
    found = {size: latency_of(taken[name, size]) for size in sizes}
    least = found[sizes[0]]
    return {
        size: {"p50Ms": each.p50, "p99Ms": each.p99, "p99Ratio": round(each.p99 / least.p99, 2)}
        for size, each in found.items()
        if each is not None and least is not None
    }


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(prog="just bench history")
    parser.add_argument("--sizes", default="10,1000,1000000", help="numbers of accounts and jobs, the smallest first")
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    before = load_average()
    figures = {**anyio.run(compare, sizes, options.calls), "loadAverage": [before, load_average()], "goal": GOAL}
    print(json.dumps(figures, indent=1))
    write_json(figures, RESULTS)


if __name__ == "__main__":
    main()
