"""In whatever order files are admitted, settled and released, no allowance is exceeded and the books agree."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.pool import Connection, Database, open_pool
from service.errors import LimitRefusal
from service.identifiers import AccountId, JobId, ServerId, uuid7
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.books import Application, Books, Release, Settlement, publish_plans
from service.metering.plans import BY_ID
from service.metering.pricing import Pricing

FREE = BY_ID["free"]
START = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
CENTS = 40
# Stops an admission where it inserts its job, and where it takes it back, until the lock of that number is free.
STOP_AT_INSERT, STOP_AT_DELETE = 1, 2
STOPS = f"""
    CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(CASE TG_OP WHEN 'INSERT' THEN {STOP_AT_INSERT} ELSE {STOP_AT_DELETE} END);
        RETURN coalesce(NEW, OLD);
    END $$;
    CREATE TRIGGER stop BEFORE INSERT OR DELETE ON job FOR EACH ROW EXECUTE FUNCTION stop();
    SELECT pg_advisory_lock({STOP_AT_INSERT}), pg_advisory_lock({STOP_AT_DELETE})
"""


class Step(msgspec.Struct, frozen=True):
    """One file's way: its size, how it ends, and how many minutes after the start it is admitted."""

    size_bytes: int
    end: str
    minutes: int


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(1, FREE.max_file_bytes + 1),
        st.sampled_from(["settle", "settle twice", "release", "release twice", "both", "expire", "stay"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)


@asynccontextmanager
async def ledger(dsn: str) -> AsyncIterator[tuple[Database, Books]]:
    """The books on a database that has the plans."""
    async with open_pool(dsn, max_size=8) as database:
        await publish_plans(database)
        yield database, Books(database, Pricing())


def settlement(job_id: JobId, attempt: int, now: datetime) -> Settlement:
    """A success."""
    return Settlement(
        job_id=job_id,
        attempt=attempt,
        completed_at=now,
        expires_at=now + timedelta(hours=4),
        processing_time_ms=1,
        feature_count=1,
        geometry_type="Point",
        output_size_bytes=1,
        object_key=uuid4().hex,
        download_name="a.zip",
        media_type="application/zip",
        details={},
    )


def application(account_id: AccountId, size_bytes: int, now: datetime, job_id: JobId | None = None) -> Application:
    """A file that asks."""
    return Application(
        job_id=job_id or JobId(uuid7(now)),
        account_id=account_id,
        server_id=ServerId(uuid4()),
        file_name="a.geojson",
        input_format="geojson",
        output_format="csv",
        size_bytes=size_bytes,
        at=now,
    )


async def until_stopped(connection: Connection, stop: int) -> None:
    """Wait until an admission has come to a stop."""
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
    while not await connection.fetchval(query, stop):  # noqa: ASYNC110 -- another comes there
        await anyio.sleep(0.01)


async def go(database: Database, account_id: AccountId, step: Step) -> None:
    """Take one file through its life; every change may come twice, and ends compete."""
    books, jobs = Books(database, Pricing()), JobRegister(database)
    now = START + timedelta(minutes=step.minutes)
    job_id = JobId(uuid7(now))
    try:
        await books.admit(application(account_id, step.size_bytes, now, job_id))
    except LimitRefusal:
        return
    attempt = await jobs.start(job_id, now, uuid4().hex)
    assert attempt == 1
    settle, release = (
        settlement(job_id, attempt, now),
        Release(job_id=job_id, attempt=None, completed_at=now, error_message="no", details={}),
    )
    if step.end == "both":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(books.settle, settle)
            tasks.start_soon(books.release, release)
        return
    if step.end.startswith(("settle", "expire")):
        assert await books.settle(settle) is not None
    if step.end == "settle twice":
        assert await books.settle(settle) is None
        assert not await books.release(release)
    if step.end.startswith("release"):
        assert await books.release(release)
    if step.end == "release twice":
        assert not await books.release(release)
        assert await books.settle(settle) is None
    if step.end == "expire":
        await jobs.dispose(_remove_nothing, now + timedelta(hours=5), 1000)


async def _remove_nothing(_keys: list[str]) -> None:
    """The store is not what this is about."""


@given(steps=STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_exceeds_a_plan(database_url: str, steps: list[Step]) -> None:
    """On plan free, over the end of a month: both months keep their caps, and the counters are the ledger's."""

    async def run() -> None:
        async with ledger(database_url) as (database, _books):
            account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
            async with anyio.create_task_group() as tasks:
                for step in steps:
                    tasks.start_soon(go, database, account.account_id, step)
            async with database.connection() as connection:
                rows = await connection.fetch(
                    "SELECT u.* FROM usage u JOIN account a USING (payer_id) WHERE a.id = $1", account.account_id
                )
            assert len(rows) <= 2
            assert all(row["conversions"] <= FREE.monthly_conversions for row in rows)
            assert all(row["bytes"] <= FREE.monthly_data_bytes for row in rows)
            assert await audit_books(database) == []

    anyio.run(run)


@given(steps=STEPS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_overdraws_a_wallet(database_url: str, steps: list[Step]) -> None:
    """The balance is never below zero, and is the credit less the ledger."""

    async def run() -> None:
        async with ledger(database_url) as (database, books):
            account, _ = await Administration(database, utc_now).create_account("w", Terms(wallet_cents=CENTS))
            async with anyio.create_task_group() as tasks:
                for step in steps:
                    tasks.start_soon(go, database, account.account_id, step)
            balance = await books.balance(account.account_id, START)
            assert 0 <= (balance.wallet_cents or 0) <= CENTS
            assert await audit_books(database) == []

    anyio.run(run)


async def test_a_refusal_says_what_refused_even_if_credit_comes_back_at_that_moment(database_url: str) -> None:
    """The balance that was too low is the one told, not the one that another file's failure has just made."""
    async with ledger(database_url) as (database, books):
        account, _ = await Administration(database, utc_now).create_account("w", Terms(wallet_cents=CENTS))
        refusals: list[LimitRefusal] = []

        async def admit() -> None:
            with pytest.raises(LimitRefusal) as refusal:
                await books.admit(application(account.account_id, 1, START))
            refusals.append(refusal.value)

        async with database.connection() as other, anyio.create_task_group() as tasks:
            await other.execute(STOPS)
            tasks.start_soon(admit)
            await until_stopped(other, STOP_AT_INSERT)
            await other.execute("UPDATE payer SET wallet_cents = 0")
            await other.execute("SELECT pg_advisory_unlock($1)", STOP_AT_INSERT)
            await until_stopped(other, STOP_AT_DELETE)
            with anyio.move_on_after(1):  # it waits, where the balance that refused is held
                async with database.connection() as third:
                    await third.execute("UPDATE payer SET wallet_cents = $1", CENTS)
            await other.execute("SELECT pg_advisory_unlock($1)", STOP_AT_DELETE)
        assert [(refusal.limit, "has 0 cents left" in str(refusal)) for refusal in refusals] == [("wallet", True)]


async def test_the_schema_refuses_what_a_wrong_program_might_do(database_url: str) -> None:
    """Overspending, settling twice and changing the ledger are errors of the database itself."""
    async with ledger(database_url) as (database, books):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        await go(database, account.account_id, Step(1, "settle", 0))
        assert (await books.balance(account.account_id, START)).used_conversions == 1
        for statement in (
            "UPDATE usage SET conversions = conversions_allowed + 1",
            "UPDATE usage SET bytes = -1",
            "UPDATE ledger SET bytes = 0",
            "DELETE FROM ledger",
            "INSERT INTO ledger SELECT * FROM ledger",
            "UPDATE job SET status = 'Done'",
            "UPDATE job SET status = 'Pending'",
            "UPDATE payer SET wallet_cents = -1",
        ):
            async with database.connection() as connection:
                with pytest.raises(Exception, match=r"violates|append-only"):
                    await connection.execute(statement)


async def test_a_difference_in_the_books_is_found(database_url: str) -> None:
    """A counter, a charge or a balance that was changed by hand is named."""
    async with ledger(database_url) as (database, _books):
        administration = Administration(database, utc_now)
        account, _ = await administration.create_account("a", Terms(plan="free"))
        await administration.create_account("w", Terms(wallet_cents=CENTS))
        await go(database, account.account_id, Step(7, "settle", 0))
        assert await audit_books(database) == []
        async with database.connection() as connection:
            await connection.execute("UPDATE usage SET conversions = 2")
            await connection.execute("UPDATE payer SET wallet_cents = 1 WHERE wallet_cents IS NOT NULL")
            await connection.execute("ALTER TABLE ledger DISABLE TRIGGER ledger_append_only; DELETE FROM ledger")
        found = await audit_books(database)
    assert [sum(word in line for line in found) for word in ("2026-01", "wallet", "not charged")] == [1, 1, 1]
