"""Whatever is done to accounts and conversions, in whatever order, the books agree and no allowance is exceeded.

Hypothesis chooses the operations, runs them on a real PostgreSQL, and shrinks a sequence that breaks a rule. A model
beside it says what every payer must have used, and what every account must be told.
"""

import os
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import anyio
import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from service.accounts.administration import Administration, AdministrationError, Changes, Terms
from service.db.pool import Database, open_pool
from service.errors import LimitRefusal
from service.ids import AccountId, JobId, uuid7
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.history import PRUNED, History, Retention
from service.metering.ledger import Ledger, Release, publish_plans
from service.metering.plans import BY_ID
from service.metering.pricing import MIB, Pricing
from tests.database import TestServer
from tests.integration.metering.test_interleavings import START, _remove_nothing
from tests.support.database_time import far_ahead, stop_time
from tests.support.jobs import application, settlement

T = TypeVar("T")
EXAMPLES = int(os.environ.get("WALKS", "10"))
STEPS = 40
KEPT = Retention(job_days=7, ledger_months=2, revoked_key_days=1)
_PAYER = """
SELECT p.id AS payer_id, p.plan_id, p.past_due FROM account a JOIN payer p ON p.id = a.payer_id WHERE a.id = $1
"""
_ALONE = "SELECT FROM payers_alone_of($1) p JOIN account a ON a.payer_id = p WHERE a.id = $1"

SIZES = st.sampled_from([1, 5 * MIB, 5 * MIB + 1, 25 * MIB + 1])
PLANS = st.sampled_from(list(BY_ID))
ORGANIZATIONS = st.sampled_from(["Lakes", "Rivers"])


class Reserved(msgspec.Struct, frozen=True):
    """A job in progress, and where it was admitted."""

    job_id: JobId
    payer_id: UUID
    month: str | None
    size_bytes: int
    cents: int


class Bookkeeping(RuleBasedStateMachine):
    """The operations, on a database of their own, and the totals that must follow."""

    server: TestServer
    accounts: Bundle[AccountId] = Bundle("accounts")
    jobs: Bundle[Reserved] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self._dsn = self.server.create_database(self.server.migrated_template())
        self._context = start_blocking_portal()
        self._portal: BlockingPortal = self._context.__enter__()
        self._pool = self._portal.wrap_async_context_manager(open_pool(self._dsn, max_size=4))
        self._database: Database = self._pool.__enter__()
        self._run(publish_plans(self._database))
        self._now = START
        self._run(stop_time(self._database, START))
        self._books = Ledger(self._database, Pricing())
        self._administration = Administration(self._database, lambda: self._now)
        self._used: dict[tuple[UUID, str], tuple[int, int]] = {}
        self._credit: dict[UUID, int] = {}

    def teardown(self) -> None:
        """Leave nothing behind."""
        self._pool.__exit__(None, None, None)
        self._context.__exit__(None, None, None)
        self.server.drop_database(self._dsn)

    @rule(target=accounts, plan=PLANS)
    def open_account(self, plan: str) -> AccountId:
        """Create an account on a plan."""
        terms = Terms(plan=plan, plan_owner=BY_ID[plan].owner)
        return self._run(self._administration.create_account("a", terms))[0].account_id

    @rule(target=accounts, cents=st.sampled_from([0, 6, 40]))
    def open_wallet(self, cents: int) -> AccountId:
        """Create an account with prepaid credit."""
        account = self._run(self._administration.create_account("w", Terms(wallet_cents=cents)))[0]
        self._credit[self._payer(account.account_id)["payer_id"]] = cents
        return account.account_id

    @rule(account=accounts, plan=PLANS)
    def change_plan(self, account: AccountId, plan: str) -> None:
        """Move the account to a plan, whatever it had before."""
        self._change(account, Changes(plan=plan, plan_owner=BY_ID[plan].owner))

    @rule(account=accounts)
    def spend_credit(self, account: AccountId) -> None:
        """Move the account from its plan to prepaid credit."""
        self._change(account, Changes(wallet=True))

    @rule(account=accounts, cents=st.sampled_from([0, 5, 30]))
    def set_credit(self, account: AccountId, cents: int) -> None:
        """Set the credit that is free to spend, if it has a wallet."""
        if self._change(account, Changes(wallet_cents=cents)):
            self._credit[self._payer(account)["payer_id"]] = cents

    @rule(account=accounts, organization=ORGANIZATIONS, plan=st.sampled_from([None, "team", "business"]))
    def join(self, account: AccountId, organization: str, plan: str | None) -> None:
        """Join an organization, or found one."""
        self._change(account, Changes(organization=organization, plan=plan, plan_owner="organization"))

    @rule(account=accounts, plan=st.sampled_from([None, "free", "team"]))
    def leave(self, account: AccountId, plan: str | None) -> None:
        """Leave an organization, optionally for another plan."""
        owner = BY_ID[plan].owner if plan else "user"
        self._change(account, Changes(leave_organization=True, plan=plan, plan_owner=owner))

    @rule(account=accounts, past_due=st.booleans())
    def bill(self, account: AccountId, past_due: bool) -> None:
        """Mark the payment as past due, or as paid."""
        self._change(account, Changes(past_due=past_due))
        assert self._payer(account)["past_due"] is past_due

    @rule(target=jobs, account=accounts, size_bytes=SIZES, files=st.integers(1, 6))
    def admit(self, account: AccountId, size_bytes: int, files: int) -> Any:
        """Request several files at once: exactly as many are admitted as the model predicts."""
        payer = self._payer(account)
        expected = self._fitting(payer, size_bytes, files)
        admitted: list[JobId] = []

        async def ask() -> None:
            job_id = JobId(uuid7(self._now))
            try:
                await self._books.admit(application(account, size_bytes, job_id))
            except LimitRefusal:
                return
            admitted.append(job_id)

        async def ask_all() -> None:
            async with anyio.create_task_group() as tasks:
                for _ in range(files):
                    tasks.start_soon(ask)

        self._run(ask_all())
        assert len(admitted) == expected
        on_plan = payer["plan_id"] is not None
        reserved = [
            Reserved(
                job_id,
                payer["payer_id"],
                self._month if on_plan else None,
                size_bytes,
                0 if on_plan else Pricing().price_cents(size_bytes),
            )
            for job_id in admitted
        ]
        for each in reserved:
            self._count(each, 1)
        return multiple(*reserved)

    @rule(job=jobs, attempt=st.sampled_from([1, 1, 1, 2]))
    def settle(self, job: Reserved, attempt: int) -> None:
        """Charge a job: once, and only in its attempt."""
        self._run(self._books.settle(settlement(job.job_id, attempt)))

    @rule(job=jobs, attempt=st.sampled_from([1, 1, 1, 2]))
    def release(self, job: Reserved, attempt: int) -> None:
        """Release a job: its reservation goes back to where it was taken, unless the job has ended."""
        release = Release(job_id=job.job_id, attempt=attempt, error_message="no", details={})
        if self._run(self._books.release(release)) is not None:
            self._count(job, -1)

    @rule(job=jobs)
    def settle_and_release(self, job: Reserved) -> None:
        """Settle and release concurrently: one of them wins."""
        given_back: list[datetime | None] = []

        async def release() -> None:
            release = Release(job_id=job.job_id, attempt=1, error_message="no", details={})
            given_back.append(await self._books.release(release))

        async def both() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(release)
                tasks.start_soon(self._books.settle, settlement(job.job_id))

        self._run(both())
        if given_back != [None]:
            self._count(job, -1)

    @rule(days=st.sampled_from([1, 10, 31, 100]))
    def pass_time(self, days: int) -> None:
        """Advance time by days or months; outputs are removed on time."""
        self._now += timedelta(days=days)
        self._run(stop_time(self._database, self._now))
        self._run(JobRegister(self._database).dispose(_remove_nothing, timedelta(), far_ahead, 1000))

    @rule(at_once=st.sampled_from([1, 3, 500]), batches=st.integers(1, 3))
    def prune(self, at_once: int, batches: int) -> None:
        """Prune some of what is past its time."""
        history = History(self._database, KEPT, far_ahead)
        for table in PRUNED:
            for _ in range(batches):
                self._run(history.prune(table, at_once))

    @invariant()
    def books_agree(self) -> None:
        """Counters equal ledger plus reservations; credit equals the model's; no allowance is exceeded."""
        assert self._run(audit_books(self._database)) == []

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        """For every month whose counter is kept, and for every wallet."""
        for row in self._fetch("SELECT payer_id, period::text AS month, conversions, bytes FROM usage"):
            assert self._used.get((row["payer_id"], row["month"]), (0, 0)) == (row["conversions"], row["bytes"])
        for row in self._fetch("SELECT id, wallet_cents FROM payer WHERE wallet_cents IS NOT NULL"):
            assert self._credit.get(row["id"], 0) == row["wallet_cents"]

    def _change(self, account: AccountId, changes: Changes) -> bool:
        """Change an account: the usage, debt and credit of its old and new payer are kept."""
        before, due = self._payer(account), self._is_due_alone(account)
        try:
            self._run(self._administration.change_account(account, changes))
        except AdministrationError:
            assert self._payer(account) == before
            return False
        after = self._payer(account)
        if changes.past_due is None:
            same_kind = (before["plan_id"] is None) == (after["plan_id"] is None)
            if due and self._is_alone(account) and (not same_kind or before["payer_id"] == after["payer_id"]):
                assert after["past_due"]
        return True

    def _is_alone(self, account: AccountId) -> bool:
        return bool(self._fetch(_ALONE, account))

    def _is_due_alone(self, account: AccountId) -> bool:
        """Whether the account's payer serves no other account, and is past due."""
        return self._is_alone(account) and bool(self._payer(account)["past_due"])

    def _fitting(self, payer: dict[str, Any], size_bytes: int, files: int) -> int:
        """How many of several equal files are admitted."""
        if payer["past_due"]:
            return 0
        if payer["plan_id"] is None:
            return min(files, self._credit.get(payer["payer_id"], 0) // Pricing().price_cents(size_bytes))
        plan = BY_ID[payer["plan_id"]]
        conversions, size = self._used.get((payer["payer_id"], self._month), (0, 0))
        if size_bytes > plan.max_file_bytes:
            return 0
        room = (plan.monthly_conversions - conversions, (plan.monthly_data_bytes - size) // size_bytes)
        return max(0, min(files, *room))

    def _count(self, job: Reserved, times: int) -> None:
        if job.month is None:
            self._credit[job.payer_id] -= times * job.cents
            return
        conversions, size = self._used.get((job.payer_id, job.month), (0, 0))
        self._used[job.payer_id, job.month] = conversions + times, size + times * job.size_bytes

    def _payer(self, account: AccountId) -> dict[str, Any]:
        """The account's payer."""
        return self._fetch(_PAYER, account)[0]

    def _fetch(self, statement: str, *values: object) -> list[dict[str, Any]]:
        async def fetch() -> list[dict[str, Any]]:
            async with self._database.connection() as connection:
                return [dict(row) for row in await connection.fetch(statement, *values)]

        return self._run(fetch())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        async def run() -> T:
            return await work

        return self._portal.call(run)

    @property
    def _month(self) -> str:
        return f"{self._now.astimezone(UTC):%Y-%m}-01"


@pytest.mark.timeout(900)
def test_no_sequence_of_operations_breaks_the_books(postgres: TestServer) -> None:
    """As many walks as WALKS says, of up to 40 operations each."""
    Bookkeeping.server = postgres
    run_state_machine_as_test(
        Bookkeeping,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
