"""Pruned books can still be audited, and what differs is never pruned."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from service.metering.audit import audit_books
from service.metering.history import PRUNED, History, Retention
from tests.integration.accounts.test_changes import PRICE, Office
from tests.integration.metering.test_interleavings import START, _remove_nothing, open_ledger
from tests.support.database_time import far_ahead, reach_time

KEPT = Retention(job_days=30, ledger_months=2, revoked_key_days=10)
COUNTS = (
    "SELECT count(*) FROM job",
    "SELECT count(*) FROM ledger",
    "SELECT count(*) FROM usage",
    "SELECT count(*) FROM ledger_sum",
)


class Archive(Office):
    """An office whose past is pruned."""

    async def pass_days(self, days: int) -> None:
        """Advance the clock by days, with outputs removed on time."""
        await reach_time(self.database, START + timedelta(days=days))
        await self.jobs.dispose(_remove_nothing, timedelta(), far_ahead, 1000)

    async def prune(self) -> None:
        """Prune everything past its time, a row or two at a time, and audit after each step."""
        history = History(self.database, KEPT, far_ahead)
        for table in PRUNED:
            while await history.prune(table, 2):
                assert await audit_books(self.database) == []

    async def rows(self) -> tuple[int, ...]:
        """How many jobs, charges, counters and totals exist."""
        async with self.database.connection() as connection:
            return tuple([await connection.fetchval(statement) for statement in COUNTS])


@pytest.fixture
async def here(database_url: str) -> AsyncIterator[Archive]:
    """One whose books must agree at the end."""
    async with open_ledger(database_url) as (database, ledger):
        yield Archive(database, ledger)
        assert await audit_books(database) == []


async def test_jobs_go_first_then_charges_then_months(here: Archive) -> None:
    """Each after its own time; what was paid is kept forever."""
    plan, wallet = await here.account(plan="free"), await here.account(wallet_cents=100)
    for account in (plan, wallet):
        await here.convert(account, 3)
        await here.fail(account)
    await here.pass_days(29)
    await here.prune()
    assert await here.rows() == (8, 6, 1, 0)
    await here.pass_days(31)
    await here.prune()
    assert await here.rows() == (0, 6, 1, 0)
    await here.pass_days(70)  # in April; January is more than two months before it
    await here.convert(wallet)
    await here.prune()
    assert await here.rows() == (1, 1, 0, 2)
    assert (await here.balance(wallet)).wallet_cents == 100 - 4 * PRICE
    await here.pass_days(170)
    await here.prune()
    assert await here.rows() == (0, 0, 0, 2)
    assert (await here.balance(wallet)).wallet_cents == 100 - 4 * PRICE


async def test_an_open_job_keeps_its_month(here: Archive) -> None:
    """However old; once it has ended, it is pruned like others."""
    account = await here.account(plan="free")
    await here.convert(account)
    job_id = await here.admit(account)
    await here.pass_days(100)
    await here.prune()
    assert await here.rows() == (1, 0, 1, 1)
    assert await here.release(job_id)
    await here.pass_days(140)
    await here.prune()
    assert await here.rows() == (0, 0, 0, 1)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM job WHERE id = (SELECT min(job_id::text)::uuid FROM ledger)",
        "UPDATE job SET status = 'Failed', error_message = 'no'",
        "UPDATE usage SET conversions = conversions - 1",
        "UPDATE payer SET wallet_cents = wallet_cents + 1 WHERE wallet_cents > 0",
        "DELETE FROM usage",
    ],
)
async def test_what_differs_is_found_before_and_after(database_url: str, damage: str) -> None:
    """The audit reports a job, counter or balance that was changed by hand, before and after pruning."""
    async with open_ledger(database_url) as (database, ledger):
        here = Archive(database, ledger)
        for account in (await here.account(plan="free"), await here.account(wallet_cents=100)):
            await here.convert(account, 2)
        await here.pass_days(1)
        async with database.connection() as connection:
            await connection.execute(damage)
        assert len(await audit_books(database)) >= 1
        history = History(database, KEPT, far_ahead)
        await here.pass_days(170)
        for table in PRUNED:
            while await history.prune(table, 100):
                pass
        assert len(await audit_books(database)) >= 1


async def test_only_pruning_changes_the_ledger(here: Archive) -> None:
    """Even right after pruning, on the same connection."""
    account = await here.account(plan="free")
    await here.convert(account, 2)
    await here.pass_days(100)
    async with here.database.connection() as connection:
        await connection.fetchval("SELECT prune_jobs(service_time(), 1)")
        for statement in ("DELETE FROM ledger", "UPDATE ledger SET bytes = 0"):
            with pytest.raises(asyncpg.RaiseError, match="append-only"):
                await connection.execute(statement)


async def test_revoked_keys_are_forgotten_and_others_are_not(here: Archive) -> None:
    """Ten days later."""
    account = await here.account(plan="free")
    key = await here.administration.create_key(account.account_id)
    await here.administration.revoke_key(key.key_id)
    for days, left in ((9, 2), (11, 1), (1000, 1)):
        await here.pass_days(days)
        await here.prune()
        async with here.database.connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM api_key") == left
