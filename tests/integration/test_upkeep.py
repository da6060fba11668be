"""Maintenance tasks may fail without ending the service, and hold nothing while they wait."""

from datetime import timedelta
from pathlib import Path

import anyio
import asyncpg
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from service.accounts.administration import Administration, Terms
from service.db.connection import open_connection
from service.ids import JobId, uuid7
from service.metering.audit import audit_books
from service.telemetry import events
from service.usecases.maintenance import PeriodicTask, forget, recover, run_periodically, sweep
from tests.support.jobs import application
from tests.support.patience import PATIENCE_SECONDS
from tests.support.world import world

_ENDING = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%release_job%'
"""
_HAS_ENDED = "SELECT completed_at IS NOT NULL FROM job WHERE id = $1"


def failures(chore: str) -> float:
    """How often the task has failed."""
    return REGISTRY.get_sample_value("geomill_upkeep_failures_total", {"chore": chore}) or 0.0


async def test_a_chore_that_fails_of_anything_is_tried_again(database_url: str, tmp_path: Path) -> None:
    """A temporarily missing table stops neither the task nor the others."""
    async with world(database_url, tmp_path) as here, open_connection(database_url) as operator:
        before = failures("forget")
        await operator.execute("ALTER TABLE idempotency_key RENAME TO away")
        with anyio.fail_after(PATIENCE_SECONDS), capture_logs():  # to print tracebacks takes seconds
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    run_periodically, here.services, PeriodicTask(forget, lambda _services: timedelta(milliseconds=10))
                )
                while failures("forget") < before + 2:  # noqa: ASYNC110 -- the chore fails in its own time
                    await anyio.sleep(0.01)
                assert (await here.client.get("/api/geo/pricing/tiers")).status_code == 200
                await operator.execute("ALTER TABLE away RENAME TO idempotency_key")
                await operator.execute(
                    "INSERT INTO idempotency_key VALUES ($1, 'k', '', '{}', $2, $2)",
                    here.account.account_id,
                    here.clock() - timedelta(days=2),
                )
                while await operator.fetchval("SELECT count(*) FROM idempotency_key"):  # noqa: ASYNC110 -- as above
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()


async def test_no_transaction_waits_for_the_store(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While outputs are removed, no lock is held in the database."""
    async with world(database_url, tmp_path) as here, open_connection(database_url) as operator:
        await here.convert()
        await here.advance(timedelta(days=1))
        deleted: list[str] = []
        storage = here.services.storage
        delete = type(storage).delete

        async def transactions() -> set[asyncpg.Record]:
            return set(
                await operator.fetch(
                    "SELECT pid, xact_start FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
                )
            )

        async def slow_delete(self: object, keys: list[str]) -> None:
            going_on = await transactions()  # perhaps of other upkeep, which does not wait for this
            with anyio.fail_after(PATIENCE_SECONDS):
                while going_on & await transactions():  # noqa: ASYNC110 -- nothing announces it
                    await anyio.sleep(0.01)
            await delete(self, keys)  # type: ignore[arg-type]  # it is the store's own
            deleted.extend(keys)

        monkeypatch.setattr(type(storage), "delete", slow_delete)
        await sweep(here.services)
        assert deleted
        assert await here.stored() == 0


async def test_a_job_that_cannot_be_ended_keeps_no_other_open(database_url: str, tmp_path: Path) -> None:
    """Not one whose counter is wrong, nor one whose counter someone has locked; it ends once its counter is mended."""
    async with world(database_url, tmp_path) as here, open_connection(database_url) as operator:
        ledger, administration = here.services.ledger, Administration(here.services.database, here.clock)
        accounts = {}
        for name, terms in {
            "wrong": Terms(plan="free"),
            "locked": Terms(plan="free"),
            "locked wallet": Terms(wallet_cents=100),
            "other": Terms(plan="free"),
        }.items():
            accounts[name] = (await administration.create_account(name, terms))[0].account_id
            await ledger.admit(application(accounts[name], 1, JobId(uuid7(here.clock.now))))

        async def open_jobs() -> set[str]:
            rows = await operator.fetch("SELECT account_id FROM job WHERE completed_at IS NULL")
            return {name for name, account_id in accounts.items() if account_id in {row["account_id"] for row in rows}}

        of_wrong = "UPDATE usage SET conversions = $2 FROM account a WHERE a.id = $1 AND usage.payer_id = a.payer_id"
        await operator.execute(of_wrong, accounts["wrong"], 0)
        async with here.services.database.transaction() as lock:
            locked = [accounts["locked"], accounts["locked wallet"]]
            await lock.execute(
                "SELECT FROM account a JOIN usage u USING (payer_id) WHERE a.id = ANY($1) FOR UPDATE OF u", locked
            )
            await lock.execute(
                "SELECT FROM account a JOIN payer p ON p.id = a.payer_id WHERE a.id = ANY($1) FOR UPDATE OF p", locked
            )
            before = failures("recover")
            with capture_logs() as log:
                await here.advance(timedelta(minutes=1))  # since the clock jumped to the beginning of the test
                await recover(here.services)  # as the process itself may do now
            assert await open_jobs() == {"wrong", "locked", "locked wallet"}
        assert {entry["event"] for entry in log} >= {events.JOB_LEFT, events.JOBS_RECOVERED}
        assert failures("recover") > before
        await operator.execute(of_wrong, accounts["wrong"], 1)
        await recover(here.services)
        assert await open_jobs() == set()
        assert await audit_books(here.services.database) == []


async def test_a_job_that_is_just_being_handed_over_is_not_ended(database_url: str, tmp_path: Path) -> None:
    """Its process was silent for so long that it counts as dead, goes on, and promises the job."""
    async with world(database_url, tmp_path) as here, anyio.create_task_group() as tasks:
        database, promised, other = here.services.database, JobId(uuid7(here.clock.now)), JobId(uuid7(here.clock.now))
        for job_id in (promised, other):
            await here.services.ledger.admit(application(here.account.account_id, 1, job_id))
        async with database.transaction() as gateway:
            await gateway.execute("UPDATE job SET handover = '' WHERE id = $1", promised)
            await here.advance(timedelta(minutes=1))
            tasks.start_soon(recover, here.services)
            with anyio.fail_after(PATIENCE_SECONDS):
                while not await database.fetchval(_ENDING):  # noqa: ASYNC110 -- nothing announces it
                    await anyio.sleep(0.01)
        with anyio.fail_after(PATIENCE_SECONDS):
            while not await database.fetchval(_HAS_ENDED, other):  # noqa: ASYNC110 -- the process itself may end it
                await anyio.sleep(0.01)
        await recover(here.services)
        assert not await database.fetchval(_HAS_ENDED, promised)
        assert await here.services.ledger.reservations() == 1


async def test_one_process_leads_a_chore_until_its_lease_ends(database_url: str, tmp_path: Path) -> None:
    """Then another one does."""
    async with world(database_url, tmp_path / "a") as one, world(database_url, tmp_path / "b") as other:
        leases = one.services.leases, other.services.leases
        assert [await lease.lead("x") for lease in (*leases, leases[0])] == [True, False, True]
        await one.advance(timedelta(seconds=31))
        assert [await lease.lead("x") for lease in reversed(leases)] == [True, False]
