"""The audit runs beside everything else: in pages, by indexes, and without false alarms."""

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import anyio
import msgspec
import pytest

from service.db.connection import open_connection
from service.db.queries import load
from service.ids import JobId, uuid7
from service.metering.audit import CHECKS, audit_books
from service.metering.history import PRUNED, History, Retention
from service.usecases.audit import audit
from service.usecases.maintenance import sweep
from tests.integration.accounts.test_changes import Office
from tests.integration.metering.test_interleavings import START, _remove_nothing, open_ledger
from tests.support.database_time import far_ahead, reach_time
from tests.support.jobs import application, settlement
from tests.support.world import world

_HISTORY = """
INSERT INTO job (id, account_id, payer_id, status, original_file_name, input_size_bytes, period, created_at,
                 completed_at, feature_count, details)
SELECT gen_random_uuid(), a.id, a.payer_id, 'Expired', 'a', 1, '2025-12-01', now(), now(), 1, '{}'
  FROM account a, generate_series(1, 2000);
INSERT INTO ledger (job_id, account_id, payer_id, period, conversions, bytes, cents, settled_at)
SELECT id, account_id, payer_id, period, 1, 1, 0, now() FROM job;
INSERT INTO usage (payer_id, period, conversions, bytes, conversions_allowed, bytes_allowed)
SELECT payer_id, period, count(*), count(*), count(*), count(*) FROM ledger GROUP BY payer_id, period;
ANALYZE
"""


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages so small that a little data fills several."""
    monkeypatch.setattr(
        "service.metering.audit.CHECKS", tuple(msgspec.structs.replace(check, at_once=3) for check in CHECKS)
    )


@pytest.mark.usefixtures("small_pages")
async def test_every_page_is_looked_at(database_url: str) -> None:
    """A difference is found wherever it is, and only there."""
    async with open_ledger(database_url) as (database, ledger):
        office = Office(database, ledger)
        for _ in range(4):
            await office.convert(await office.account(plan="free"), 2)
            await office.convert(await office.account(wallet_cents=100), 2)
        assert await audit_books(database) == []
        async with database.connection() as connection:
            counted = [row["payer_id"] for row in await connection.fetch("SELECT payer_id FROM usage")]
            charged = [row["job_id"] for row in await connection.fetch("SELECT job_id FROM ledger")]
        for payer_id in counted:
            async with database.connection() as connection:
                await connection.execute("UPDATE usage SET bytes = bytes + 1 WHERE payer_id = $1", payer_id)
                (told,) = await audit_books(database)
                assert str(payer_id) in told
                await connection.execute("UPDATE usage SET bytes = bytes - 1 WHERE payer_id = $1", payer_id)
        for job_id in charged:
            async with database.connection() as connection:
                await connection.execute("UPDATE job SET id = gen_random_uuid() WHERE id = $1", job_id)
                assert len(await audit_books(database)) == 2
                await connection.execute(
                    "UPDATE job SET id = $1 WHERE NOT EXISTS (SELECT FROM ledger WHERE job_id = id)", job_id
                )
        assert await audit_books(database) == []


async def test_no_page_reads_a_large_table_whole(database_url: str) -> None:
    """Each statement finds its rows by an index, with every plan that the server caches."""
    async with open_ledger(database_url) as (database, ledger):
        office = Office(database, ledger)
        for _ in range(20):
            await office.account(plan="free")
        async with open_connection(database_url) as connection:
            await connection.execute(_HISTORY)
            for check in CHECKS:
                statement = f"EXPLAIN {load('audit')[check.statement]}"
                plan = "\n".join(row[0] for row in await connection.fetch(statement, *check.after.values(), 100))
                for table in ("ledger", "job"):
                    assert f"Seq Scan on {table} " not in plan, f"{check.statement}:\n{plan}"
        assert await audit_books(database) == []


@pytest.mark.usefixtures("small_pages")
async def test_no_alarm_is_false_while_everything_changes(database_url: str) -> None:
    """Files are admitted, settled and released, credit is spent, months are pruned, audit after audit."""
    async with open_ledger(database_url) as (database, ledger):
        office = Office(database, ledger)
        accounts = [await office.account(plan="business"), await office.account(wallet_cents=10**6)]
        history = History(database, Retention(job_days=7, ledger_months=2, revoked_key_days=1), far_ahead)
        busy = 4

        async def convert(number: int) -> None:
            nonlocal busy
            for turn in range(40):
                job_id = JobId(uuid7(START))
                await ledger.admit(application(accounts[number % len(accounts)].account_id, 1, job_id))
                if turn % 3:
                    await ledger.settle(settlement(job_id))
                else:
                    await office.release(job_id)
            busy -= 1

        async def age() -> None:
            for days in count(10, 10):
                await reach_time(database, START + timedelta(days=days))
                await office.jobs.dispose(_remove_nothing, timedelta(), far_ahead, 1000)
                for table in PRUNED:
                    await history.prune(table, 20)

        async with anyio.create_task_group() as tasks:
            for number in range(busy):
                tasks.start_soon(convert, number)
            tasks.start_soon(age)
            while busy:
                assert await audit_books(database) == []
            tasks.cancel_scope.cancel()
        assert await audit_books(database) == []


async def test_an_output_that_is_removed_meanwhile_is_no_orphan(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed and then swept, and its job no longer has it."""
    async with world(database_url, tmp_path) as here:
        await here.convert()
        await here.advance(timedelta(days=1))
        storage, listed = here.services.storage, type(here.services.storage).objects

        async def list_then_sweep(self: object, region: str = "") -> AsyncIterator[object]:
            for entry in [entry async for entry in listed(self, region)]:  # type: ignore[arg-type]  # it is the store's own
                yield entry
            await sweep(here.services)

        monkeypatch.setattr(type(storage), "objects", list_then_sweep)
        assert await audit(here.services.database, storage) == []
        assert await here.stored() == 0
