"""How many files per second the ledger admits and settles, on a real PostgreSQL.

    python -m bench.parts.admissions [--rounds 5] [--seconds 2] [--callers 64]

Each caller admits a file, waits until that is on the disk, and settles it, again and again: all of one account, or each
of its own. Beside it the plain way, a transaction that locks the account's row. Both with this disk's commits and with
commits of four milliseconds, as a disk of the cloud has. Goal: one hot account has at least 30 times the rate of the
row lock with such commits. Figures are medians and go to bench/results/admissions.json.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from uuid import uuid4

import anyio

from bench.load.database import make_accounts, open_cluster, open_database
from bench.measure.figures import latency_of
from bench.measure.meter import load_average
from bench.report.goals import ratio
from bench.report.results import DIRECTORY, write_json
from service.db.pool import Database
from service.ids import AccountId, JobId, ServerId
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from tests.support.jobs import application, settlement

RESULTS = DIRECTORY / "admissions.json"
GOAL = 30.0
CLOUD_COMMIT_MICROSECONDS = 4000
SIZE_BYTES = 4000

Job = Callable[[AccountId], Awaitable[object]]

_ROW_LOCK_TABLES = """
CREATE TABLE locked_usage (account_id uuid PRIMARY KEY, conversions int NOT NULL, bytes bigint NOT NULL);
CREATE TABLE locked_job (id uuid PRIMARY KEY, account_id uuid NOT NULL)
"""


class Callers:
    """What callers do with one account's file, in one way or the other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ledger = Ledger(database, Pricing())
        self._server = ServerId(uuid4())

    async def admit(self, account_id: AccountId) -> JobId:
        """Admit a file."""
        file = application(account_id, SIZE_BYTES, server_id=self._server)
        await self._ledger.admit(file)
        return file.job_id

    async def admit_and_settle(self, account_id: AccountId) -> None:
        """Take a file through its life, as if its conversion had lasted until another's settlement took it along."""
        job_id = await self.admit(account_id)
        assert await self._ledger.settle(settlement(job_id)) is not None

    async def admit_record_and_settle(self, account_id: AccountId) -> None:
        """Take a file through its life, as if it were converted in no time: its admission is waited for as well."""
        job_id = await self.admit(account_id)
        assert await self._ledger.is_durable(job_id)
        assert await self._ledger.settle(settlement(job_id)) is not None

    async def lock_row(self, account_id: AccountId) -> None:
        """Count a file in the plain way: lock, look, count, insert."""
        async with self._database.transaction() as connection:
            statement = "SELECT conversions FROM locked_usage WHERE account_id = $1 FOR UPDATE"
            used: int = await connection.fetchval(statement, account_id)
            statement = "UPDATE locked_usage SET conversions = $2, bytes = bytes + $3 WHERE account_id = $1"
            await connection.execute(statement, account_id, used + 1, SIZE_BYTES)
            await connection.execute("INSERT INTO locked_job VALUES ($1, $2)", uuid4(), account_id)


async def measure(job: Job, accounts: Sequence[AccountId], seconds: float, latencies: list[float]) -> float:
    """Let every account's caller do `job` for so long; return how often a second."""
    done = 0
    start = time.perf_counter()

    async def caller(account_id: AccountId) -> None:
        nonlocal done
        while (since := time.perf_counter()) < start + seconds:
            await job(account_id)
            latencies.append(time.perf_counter() - since)
            done += 1

    async with asyncio.TaskGroup() as tasks:
        for account_id in accounts:
            tasks.create_task(caller(account_id))
    return done / (time.perf_counter() - start)


async def compare(options: argparse.Namespace) -> dict[str, object]:
    """Measure everything in turn, round after round."""
    async with open_cluster() as dsn, open_database(dsn) as database:
        async with database.connection() as connection:
            many = await make_accounts(connection, options.callers)
            await connection.execute(_ROW_LOCK_TABLES)
            fill = "INSERT INTO locked_usage SELECT id, 0, 0 FROM unnest($1::uuid[]) AS id"
            await connection.execute(fill, many)
        callers = Callers(database)
        jobs: dict[str, Job] = {
            "admit, settle": callers.admit_and_settle,
            "admit, record, settle": callers.admit_record_and_settle,
            "plain row lock": callers.lock_row,
        }
        ways = [
            (f"{whose}: {what}", job, accounts)
            for whose, accounts in (("hot account", many[:1] * options.callers), ("many accounts", many))
            for what, job in jobs.items()
        ]
        figures: dict[str, object] = {}
        for commits, delay in (("this disk", 0), ("4 ms", CLOUD_COMMIT_MICROSECONDS)):
            await _delay_commits(database, delay)
            figures[commits] = await _rounds(ways, options.rounds, options.seconds)
    return figures


async def _delay_commits(database: Database, microseconds: int) -> None:
    async with database.connection() as connection:
        await connection.execute(f"ALTER SYSTEM SET commit_delay = {microseconds}")
        await connection.execute("ALTER SYSTEM SET commit_siblings = 0")
        await connection.execute("SELECT pg_reload_conf()")
    await asyncio.sleep(0.2)


async def _rounds(
    ways: Sequence[tuple[str, Job, Sequence[AccountId]]], rounds: int, seconds: float
) -> dict[str, object]:
    rates: dict[str, list[float]] = {name: [] for name, _, _ in ways}
    latencies: dict[str, list[float]] = {name: [] for name, _, _ in ways}
    for _ in range(rounds):
        for name, job, accounts in ways:
            rates[name].append(await measure(job, accounts, seconds, latencies[name]))
    figures: dict[str, object] = {
        name: round(ratio(rates[way], rates["hot account: plain row lock"]), 2)
        for name, way in (
            ("hotRatioToRowLock", "hot account: admit, settle"),
            ("hotRatioWithRecord", "hot account: admit, record, settle"),
        )
    }
    for name, found in rates.items():
        latency = latency_of(latencies[name])
        assert latency is not None
        figures[name] = {"rate": round(median(found), 1), "p50Ms": latency.p50, "p99Ms": latency.p99}
    return figures


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(prog="just bench admissions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--callers", type=int, default=64)
    options = parser.parse_args()
    before = load_average()
    figures = {**anyio.run(compare, options), "loadAverage": [before, load_average()], "goal": GOAL}
    print(json.dumps(figures, indent=1))
    write_json(figures, RESULTS)


if __name__ == "__main__":
    main()
