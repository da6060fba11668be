"""In whatever order files are admitted, settled and released, no allowance is exceeded and the books agree."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import anyio
import asyncpg
import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.pool import Database, Watch, open_pool
from service.errors import LimitRefusal
from service.ids import AccountId, JobId, uuid7
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.ledger import Ledger, Release, Settlement, publish_plans
from service.metering.plans import BY_ID
from service.metering.pricing import Pricing
from tests.support.database_time import far_ahead, reach_time, stop_time
from tests.support.jobs import application, settlement
from tests.support.locks import until_one_waits

FREE = BY_ID["free"]
START = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
CENTS = 40


class Step(msgspec.Struct, frozen=True):
    """One file: its size, how it ends, and the minute after the start at which it is admitted."""

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
async def open_ledger(dsn: str, watch: Watch | None = None) -> AsyncIterator[tuple[Database, Ledger]]:
    """The ledger on a database with the plans."""
    async with open_pool(dsn, max_size=8, watch=watch) as database:
        await publish_plans(database)
        await stop_time(database, START)
        yield database, Ledger(database, Pricing())


async def go(database: Database, ledger: Ledger, account_id: AccountId, step: Step) -> None:
    """Take one file through its life; every change may be repeated, and ends compete."""
    jobs = JobRegister(database)
    await reach_time(database, START + timedelta(minutes=step.minutes))
    job_id = JobId(uuid7(START))
    try:
        await ledger.admit(application(account_id, step.size_bytes, job_id))
    except LimitRefusal:
        return
    assert await ledger.is_durable(job_id)
    settle, release = (
        settlement(job_id),
        Release(job_id=job_id, attempt=1, error_message="no", details={}),
    )
    if step.end == "both":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.settle, settle)
            tasks.start_soon(ledger.release, release)
        return
    if step.end.startswith(("settle", "expire")):
        assert await ledger.settle(settle) is not None
    if step.end == "settle twice":
        assert await ledger.settle(settle) is None
        assert not await ledger.release(release)
    if step.end.startswith("release"):
        assert await ledger.release(release)
    if step.end == "release twice":
        assert not await ledger.release(release)
        assert await ledger.settle(settle) is None
    if step.end == "expire":
        await jobs.dispose(_remove_nothing, timedelta(hours=-5), far_ahead, 1000)


async def _remove_nothing(_keys: list[str]) -> None:
    """The store is irrelevant here."""


class Books(NamedTuple):
    """A ledger that all examples of a test share, each with an account of its own, and what calls it."""

    portal: BlockingPortal
    database: Database
    ledger: Ledger

    async def go_all(self, terms: Terms, steps: Sequence[Step]) -> AccountId:
        """Take files through their lives at once, in two processes, at the expense of a new account; return it."""
        await stop_time(self.database, START)
        account, _ = await Administration(self.database, utc_now).create_account("a", terms)
        processes = [self.ledger, Ledger(self.database, Pricing())]
        async with anyio.create_task_group() as tasks:
            for number, step in enumerate(steps):
                tasks.start_soon(go, self.database, processes[number % 2], account.account_id, step)
        assert await audit_books(self.database) == []
        return account.account_id


@pytest.fixture
def books(database_url: str) -> Iterator[Books]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_ledger(database_url)) as (database, ledger),
    ):
        yield Books(portal, database, ledger)


@given(steps=STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_exceeds_a_plan(books: Books, steps: list[Step]) -> None:
    """On plan free, across the end of a month: both months keep their caps, and the counters match the ledger."""

    async def run() -> None:
        account_id = await books.go_all(Terms(plan="free"), steps)
        async with books.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT u.* FROM usage u JOIN account a USING (payer_id) WHERE a.id = $1", account_id
            )
        assert len(rows) <= 2
        assert all(row["conversions"] <= FREE.monthly_conversions for row in rows)
        assert all(row["bytes"] <= FREE.monthly_data_bytes for row in rows)

    books.portal.call(run)


@given(steps=STEPS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_overdraws_a_wallet(books: Books, steps: list[Step]) -> None:
    """The balance is never negative, and equals the credit less the charges."""

    async def run() -> None:
        balance = await books.ledger.balance(await books.go_all(Terms(wallet_cents=CENTS), steps))
        assert 0 <= (balance.wallet_cents or 0) <= CENTS

    books.portal.call(run)


@pytest.mark.parametrize(
    ("terms", "taken", "limit"),
    [
        (Terms(plan="free"), "UPDATE usage SET conversions = conversions_allowed", "conversions"),
        (Terms(plan="free"), "UPDATE usage SET bytes = bytes_allowed", "data"),
        (Terms(wallet_cents=CENTS), "UPDATE payer SET wallet_cents = 0", "wallet"),
        (Terms(wallet_cents=CENTS), "UPDATE payer SET wallet_cents = wallet_cents - 6", None),
    ],
)
async def test_what_another_process_takes_in_between_is_seen(
    database_url: str, terms: Terms, taken: str, limit: str | None
) -> None:
    """An admission that saw enough, but finds less when it reserves, checks again and reports the current limit."""
    async with open_ledger(database_url) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", terms)
        await ledger.admit(application(account.account_id, 1))
        limits: list[str | None] = []

        async def admit() -> None:
            try:
                await ledger.admit(application(account.account_id, 1))
            except LimitRefusal as refusal:
                limits.append(refusal.limit)
            else:
                limits.append(None)

        async with (
            database.connection() as third,
            anyio.create_task_group() as tasks,
            database.transaction() as other,
        ):
            await other.execute(taken)
            tasks.start_soon(admit)
            await until_one_waits(third)
        assert limits == [limit]


@pytest.mark.parametrize("terms", [Terms(plan="free"), Terms(wallet_cents=CENTS)])
async def test_files_that_are_admitted_together_are_told_apart(database_url: str, terms: Terms) -> None:
    """The first ones get what is left; each refusal names the limit that its own file exceeds."""
    sizes = [1, FREE.max_file_bytes + 1, *[FREE.max_file_bytes] * 12]
    async with open_ledger(database_url) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", terms)
        told: dict[int, str | None] = {}

        async def admit(number: int) -> None:
            try:
                await ledger.admit(application(account.account_id, sizes[number]))
            except LimitRefusal as refusal:
                told[number] = refusal.limit
            else:
                told[number] = None

        async with anyio.create_task_group() as tasks:
            for number in range(len(sizes)):
                tasks.start_soon(admit, number)
        in_order = [told[number] for number in range(len(sizes))]
        if terms.plan:
            assert in_order == [None, "fileSize", *[None] * 9, *["conversions"] * 3]
        else:  # 6 cents for the first, 11 for the second; of the 23 that are left the others take 10 each
            assert in_order == [None, None, None, None, *["wallet"] * 10]
        assert len(await statements_of(database)) < len(sizes)
        assert await audit_books(database) == []


async def statements_of(database: Database) -> list[int]:
    """The transactions that inserted jobs."""
    async with database.connection() as connection:
        return [row["x"] for row in await connection.fetch("SELECT DISTINCT xmin::text::bigint AS x FROM job")]


async def test_jobs_are_settled_together_and_one_that_cannot_be_spoils_nothing(database_url: str) -> None:
    """If the database refuses one of the jobs, each of the others is still settled once."""
    async with open_ledger(database_url) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        jobs = [JobId(uuid7(START)) for _ in range(6)]
        for job_id in jobs:
            await ledger.admit(application(account.account_id, 1, job_id))
        outcomes: dict[JobId, object] = {}

        async def settle(change: Settlement) -> None:
            try:
                outcomes[change.job_id] = await ledger.settle(change)
            except asyncpg.PostgresError as error:
                outcomes[change.job_id] = error

        changes = [settlement(job_id) for job_id in jobs[:4]]
        broken = msgspec.structs.replace(settlement(jobs[4]), geometry_type="\0")
        stale = settlement(jobs[5], attempt=2)
        async with anyio.create_task_group() as tasks:
            for change in (*changes, broken, stale):
                tasks.start_soon(settle, change)
        assert [outcomes[job_id] is not None for job_id in jobs] == [True, True, True, True, True, False]
        assert isinstance(outcomes[jobs[4]], asyncpg.PostgresError)
        async with database.connection() as connection:
            settled = await connection.fetch("SELECT job_id FROM ledger")
        assert {row["job_id"] for row in settled} == set(jobs[:4])
        assert await audit_books(database) == []


async def test_a_settlement_puts_admissions_on_record(database_url: str) -> None:
    """They need no check of their own then; one that was undone or has ended never counts as durable."""
    async with open_ledger(database_url) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        first, second, undone, ended = (JobId(uuid7(START)) for _ in range(4))
        for job_id in (first, second, undone, ended):
            await ledger.admit(application(account.account_id, 1, job_id))
        async with database.connection() as connection:
            await connection.execute("DELETE FROM job WHERE id = $1", undone)  # as if the database had lost it
        other = Ledger(database, Pricing())
        await other.release(Release(job_id=ended, attempt=1, error_message="no", details={}))
        assert await ledger.settle(settlement(first)) is not None
        async with database.connection() as connection:
            await connection.execute("ALTER TABLE job RENAME TO hidden")  # now nobody can be asked any more
            assert await ledger.is_durable(second)
            await connection.execute("ALTER TABLE hidden RENAME TO job")
        assert not await ledger.is_durable(undone)
        assert not await ledger.is_durable(ended)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_job_waits_for_the_settlement_under_way_that_puts_it_on_record(
    database_url: str, *, is_lost: bool
) -> None:
    """It asks the database itself only if that has settled nothing."""
    asked = list[str]()
    async with open_ledger(database_url, lambda name, _: asked.append(name)) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        ending, waiting = (JobId(uuid7(START)) for _ in range(2))
        for job_id in (ending, waiting):
            await ledger.admit(application(account.account_id, 1, job_id))
        answers = list[bool]()

        async def ask() -> None:
            answers.append(await ledger.is_durable(waiting))

        async with anyio.create_task_group() as tasks, database.transaction() as holder:
            await holder.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", ending)
            tasks.start_soon(ledger.settle, settlement(ending))
            await until_one_waits(holder)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            if is_lost:
                await holder.execute("DELETE FROM job WHERE id = $1", ending)
        assert answers == [True]
        assert asked.count("flush_attempts") == is_lost


async def test_the_schema_refuses_what_a_wrong_program_might_do(database_url: str) -> None:
    """Overspending, settling twice and changing the ledger violate constraints of the database."""
    async with open_ledger(database_url) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        await go(database, ledger, account.account_id, Step(1, "settle", 0))
        assert (await ledger.balance(account.account_id)).used_conversions == 1
        for statement in (
            "UPDATE usage SET conversions = conversions_allowed + 1",
            "UPDATE usage SET bytes = -1",
            "UPDATE ledger SET bytes = 0",
            "DELETE FROM ledger",
            "INSERT INTO ledger SELECT * FROM ledger",
            "UPDATE job SET status = 'Done'",
            "UPDATE job SET status = 'Pending'",
            "UPDATE payer SET wallet_cents = -1",
            "DELETE FROM account",
            "DELETE FROM payer",
            "UPDATE payer SET id = gen_random_uuid()",
        ):
            async with database.connection() as connection:
                with pytest.raises(Exception, match=r"violates|append-only|never"):
                    await connection.execute(statement)


async def test_a_difference_in_the_books_is_found(database_url: str) -> None:
    """A counter, charge or balance that was changed by hand is named."""
    async with open_ledger(database_url) as (database, ledger):
        administration = Administration(database, utc_now)
        account, _ = await administration.create_account("a", Terms(plan="free"))
        await administration.create_account("w", Terms(wallet_cents=CENTS))
        await go(database, ledger, account.account_id, Step(7, "settle", 0))
        assert await audit_books(database) == []
        async with database.connection() as connection:
            await connection.execute("UPDATE usage SET conversions = 2")
            await connection.execute("UPDATE payer SET wallet_cents = 1 WHERE wallet_cents IS NOT NULL")
            await connection.execute("ALTER TABLE ledger DISABLE TRIGGER ledger_append_only; DELETE FROM ledger")
        found = await audit_books(database)
    assert [sum(word in line for line in found) for word in ("2026-01", "wallet", "not charged")] == [1, 1, 1]
