"""Changing an account's plan, wallet or organization loses neither usage nor debt nor credit."""

from collections.abc import AsyncIterator

import anyio
import asyncpg
import msgspec
import pytest

from service.accounts.administration import Account, Administration, AdministrationError, Changes, Terms
from service.db.connection import open_connection
from service.db.pool import Database
from service.errors import LimitRefusal
from service.ids import JobId, uuid7
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.balance import Balance
from service.metering.ledger import Ledger, Release
from service.metering.plans import BY_ID
from service.metering.pricing import Pricing
from tests.integration.metering.test_interleavings import START, open_ledger
from tests.support.jobs import application, settlement

PRICE = Pricing().price_cents(1)


def to_plan(plan: str, organization: str | None = None) -> Changes:
    """A change to a plan, optionally in an organization."""
    return Changes(plan=plan, plan_owner=BY_ID[plan].owner, organization=organization)


class Office:
    """Accounts and their conversions."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self.database = database
        self.ledger = ledger
        self.jobs = JobRegister(database)
        self.administration = Administration(database, lambda: START)

    async def account(self, **terms: object) -> Account:
        """Create an account."""
        plan = terms.get("plan")
        owner = BY_ID[str(plan)].owner if plan else "user"
        account, _ = await self.administration.create_account(
            "a", msgspec.convert({"plan_owner": owner, **terms}, Terms)
        )
        return account

    async def admit(self, account: Account) -> JobId:
        """Reserve a conversion."""
        job_id = JobId(uuid7(START))
        await self.ledger.admit(application(account.account_id, 1, job_id))
        return job_id

    async def convert(self, account: Account, times: int = 1) -> None:
        """Convert files that must be admitted."""
        for _ in range(times):
            assert await self.ledger.settle(settlement(await self.admit(account))) is not None

    async def release(self, job_id: JobId) -> bool:
        """Release a job."""
        release = Release(job_id=job_id, attempt=1, error_message="no", details={})
        return await self.ledger.release(release) is not None

    async def fail(self, account: Account) -> None:
        """Try to convert a file that cannot be converted."""
        assert await self.release(await self.admit(account))

    async def change(self, account: Account, changes: Changes) -> Account:
        """Change the account."""
        return await self.administration.change_account(account.account_id, changes)

    async def balance(self, account: Account) -> Balance:
        """What the account has left."""
        return await self.ledger.balance(account.account_id)

    async def refusal(self, account: Account) -> LimitRefusal:
        """Why the account cannot convert."""
        with pytest.raises(LimitRefusal) as refused:
            await self.admit(account)
        return refused.value


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    """An office whose books must agree at the end."""
    async with open_ledger(database_url) as (database, ledger):
        yield Office(database, ledger)
        assert await audit_books(database) == []


async def test_another_plan_forgets_neither_use_nor_debt(office: Office) -> None:
    """From free, used up and past due, to team and back: no conversion is left, and the payment is still due."""
    account = await office.account(plan="free")
    await office.convert(account, 10)
    await office.change(account, Changes(past_due=True))
    team = await office.change(account, to_plan("team"))
    assert (team.plan, team.past_due, team.organization_id is not None) == ("team", True, True)
    assert (await office.balance(account)).remaining_conversions == 5000 - 10
    await office.change(account, Changes(past_due=False))
    await office.convert(account)
    await office.change(account, Changes(past_due=True))
    free = await office.change(account, to_plan("free"))
    assert (free.plan, free.past_due, free.organization_id) == ("free", True, None)
    balance = await office.balance(account)
    assert (balance.used_conversions, balance.remaining_conversions) == (11, 0)
    await office.change(account, Changes(past_due=False))
    assert (await office.refusal(account)).limit == "conversions"
    again = await office.change(account, to_plan("business"))
    assert (again.plan, (await office.balance(account)).used_conversions) == ("business", 11)


async def test_wallet_and_plan_wait_for_each_other(office: Office) -> None:
    """Neither credit nor usage nor debt is lost on the way there and back."""
    account = await office.account(wallet_cents=100)
    await office.convert(account)
    on_plan = await office.change(account, to_plan("free"))
    assert (on_plan.plan, on_plan.wallet_cents, on_plan.kept_wallet_cents) == ("free", None, 100 - PRICE)
    await office.convert(account, 3)
    await office.change(account, Changes(past_due=True))
    back = await office.change(account, Changes(wallet=True))
    assert (back.plan, back.wallet_cents, back.past_due) == (None, 100 - PRICE, True)
    assert (await office.refusal(account)).payment_past_due
    await office.change(account, Changes(past_due=False))
    await office.convert(account)
    again = await office.change(account, to_plan("personal"))
    assert (again.past_due, again.kept_wallet_cents) == (False, 100 - 2 * PRICE)
    assert (await office.balance(account)).used_conversions == 3
    assert (await office.change(account, Changes(wallet=True, wallet_cents=7))).wallet_cents == 7


async def test_a_member_that_spends_credit_comes_back_to_its_organization(office: Office) -> None:
    """Its organization's usage applies again; the organization's debt is not the member's."""
    account, colleague = [await office.account(plan="team", organization="Survey") for _ in range(2)]
    await office.convert(account, 2)
    await office.change(colleague, Changes(past_due=True))
    assert not (await office.change(account, Changes(wallet=True))).past_due
    await office.convert(colleague, 0)
    back = await office.change(account, to_plan("team"))
    assert (back.organization_id, back.past_due) == (colleague.organization_id, True)
    assert (await office.balance(account)).used_conversions == 2


async def test_only_what_is_used_from_then_on_is_the_organizations(office: Office) -> None:
    """An account joins an organization later, and leaves it again."""
    account, founder = await office.account(plan="free"), await office.account(plan="team", organization="Survey")
    await office.convert(account, 4)
    await office.change(account, Changes(past_due=True))
    joined = await office.change(account, Changes(organization="Survey"))
    assert (joined.organization_id, joined.plan, joined.past_due) == (founder.organization_id, "team", False)
    await office.convert(account, 2)
    assert (await office.balance(founder)).used_conversions == 2
    left = await office.change(account, Changes(leave_organization=True))
    assert (left.organization_id, left.plan, left.past_due) == (None, "free", True)
    assert (await office.balance(account)).used_conversions == 4
    assert (await office.balance(founder)).used_conversions == 2


async def test_a_founder_brings_its_use_and_debt_along(office: Office) -> None:
    """A second member shares them; a member that leaves others behind starts anew."""
    founder, second = [await office.account(plan="free") for _ in range(2)]
    await office.convert(founder, 5)
    await office.change(founder, to_plan("team", "Survey"))
    await office.change(second, Changes(organization="Survey"))
    await office.convert(second)
    assert (await office.balance(founder)).used_conversions == 6
    await office.change(founder, to_plan("personal"))
    assert (await office.balance(founder)).used_conversions == 0
    assert (await office.balance(second)).used_conversions == 6
    await office.change(second, Changes(leave_organization=True))
    assert (await office.balance(second)).used_conversions == 0


async def test_no_way_round_gives_the_last_member_a_fresh_month(office: Office) -> None:
    """Into another organization and out again: its usage applies again."""
    await office.account(plan="team", organization="Others")
    account = await office.account(plan="free")
    await office.convert(account, 10)
    await office.change(account, to_plan("team"))
    await office.change(account, Changes(organization="Others"))
    with pytest.raises(AdministrationError, match="no plan of its own"):
        await office.change(account, Changes(leave_organization=True))
    free = await office.change(account, msgspec.structs.replace(to_plan("free"), leave_organization=True))
    assert (free.plan, (await office.balance(account)).remaining_conversions) == ("free", 0)


@pytest.mark.parametrize("end", ["settle", "release"])
@pytest.mark.parametrize(
    ("terms", "change", "way_back"),
    [
        ({"wallet_cents": 100}, to_plan("free"), Changes(wallet=True)),
        ({"plan": "free"}, Changes(wallet=True), to_plan("free")),
        ({"plan": "free"}, to_plan("team"), to_plan("free")),
        ({"plan": "free"}, Changes(organization="Survey"), Changes(leave_organization=True)),
    ],
    ids=["wallet to plan", "plan to wallet", "plan to plan", "joining"],
)
async def test_what_was_reserved_ends_where_it_was_admitted(
    office: Office, terms: dict[str, object], change: Changes, way_back: Changes, end: str
) -> None:
    """A job in progress while its account changes is charged or released under the terms it was admitted with."""
    await office.account(plan="team", organization="Survey")
    account = await office.account(**terms)
    job_id = await office.admit(account)
    await office.change(account, change)
    if end == "settle":
        assert await office.ledger.settle(settlement(job_id)) is not None
    else:
        assert await office.ledger.release(Release(job_id=job_id, attempt=1, error_message="no", details={}))
    assert await audit_books(office.database) == []
    await office.change(account, way_back)
    balance = await office.balance(account)
    paid = end == "settle"
    assert (balance.used_conversions, balance.wallet_cents) == (
        (0, 100 - PRICE * paid) if "wallet_cents" in terms else (int(paid), None)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (Changes(wallet=True, plan="free"), "either"),
        (Changes(leave_organization=True), "belongs to no organization"),
        (Changes(organization="Nobody"), "There is no organization Nobody"),
        (to_plan("personal", "Survey"), "held by an organization"),
        (to_plan("business", "Survey"), "on plan team"),
        (Changes(organization="Survey", leave_organization=True), "joins an organization or leaves"),
        (Changes(wallet_cents=5), "--wallet"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(office: Office, changes: Changes, words: str) -> None:
    """With a message."""
    await office.account(plan="team", organization="Survey")
    account = await office.account(plan="free")
    with pytest.raises(AdministrationError, match=words):
        await office.change(account, changes)
    assert await office.administration.find_account(account.account_id) == account


async def test_changes_at_the_same_time_follow_each_other(office: Office) -> None:
    """Members leave, join and found organizations at once: each ends up somewhere, and no payer has two owners."""
    accounts = [await office.account(plan="team", organization="Survey") for _ in range(6)]
    ways = [to_plan("free"), Changes(wallet=True), to_plan("business", "Other"), to_plan("personal")]
    async with anyio.create_task_group() as tasks:
        for number, account in enumerate(accounts):
            tasks.start_soon(office.change, account, ways[number % len(ways)])
    for number, account in enumerate(accounts):
        found = await office.administration.find_account(account.account_id)
        assert found.plan == [None, "free", "business", "personal"][[1, 0, 2, 3][number % len(ways)]]


async def test_a_change_that_never_ends_does_not_block_the_next_for_ever(
    office: Office, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to look for."""
    monkeypatch.setattr("service.accounts.administration.LOCK_SECONDS", 1)
    account = await office.account(plan="free")
    async with open_connection(database_url) as other, other.transaction():
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('geomill.administration', 0))")
        with pytest.raises(AdministrationError, match="has not ended for 1 seconds"):
            await office.change(account, Changes(past_due=True))


async def test_the_schema_knows_whose_a_payer_is(office: Office) -> None:
    """Each account has one payer for plans and one for credit; an organization's payer belongs to no account."""
    account = await office.account(plan="free")
    for statement in (
        "INSERT INTO payer (id, account_id, plan_id) VALUES (gen_random_uuid(), $1, 'free')",
        "UPDATE payer SET organization_id = gen_random_uuid() WHERE account_id = $1",
    ):
        async with office.database.connection() as connection:
            with pytest.raises(asyncpg.IntegrityConstraintViolationError):
                await connection.execute(statement, account.account_id)


async def test_a_deleted_colleague_does_not_keep_the_organization(office: Office) -> None:
    """The last remaining member takes the organization's usage and debt along."""
    first = await office.account(plan="team", organization="Survey")
    second = await office.account(plan="team", organization="Survey")
    await office.convert(first)
    await office.change(second, Changes(past_due=True))
    await office.administration.close_account(first.account_id)
    assert (await office.change(second, Changes(wallet=True))).past_due
    alone = await office.change(second, msgspec.structs.replace(to_plan("free"), leave_organization=True))
    assert (alone.past_due, alone.organization_id) == (True, None)
    assert (await office.balance(second)).used_conversions == 1
