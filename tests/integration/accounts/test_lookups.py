"""How callers are looked up in the database."""

from collections import Counter

import anyio
import pytest

from service.accounts.administration import Administration, AdministrationError, Terms
from service.accounts.keys import Authenticator, Caller, new_key
from service.clock import utc_now
from service.db.pool import open_pool
from service.errors import InvalidApiKey, InvalidIdentity
from service.ids import AccountId, uuid7
from service.metering.ledger import publish_plans

MANY = 20
UNKNOWN = 300


async def test_callers_that_come_at_once_share_a_statement(database_url: str) -> None:
    """A flood of many accounts asks the database once or twice, and each caller still gets its own account."""
    asked: Counter[str] = Counter()

    def watch(name: str, _seconds: float) -> None:
        asked[name] += 1

    found: dict[str, Caller] = {}
    async with open_pool(database_url, watch=watch) as database:
        await publish_plans(database)
        administration = Administration(database, utc_now)
        created = [await administration.create_account(f"a {number}", Terms(plan="free")) for number in range(MANY)]
        authenticator = Authenticator(database, utc_now)

        async def ask(key: str) -> None:
            found[key] = await authenticator.authenticate(key)

        async def guess() -> None:
            with pytest.raises(InvalidApiKey):
                await authenticator.authenticate(new_key())

        async with anyio.create_task_group() as tasks:
            for _, key in created:
                tasks.start_soon(ask, key.api_key)
            for _ in range(UNKNOWN):
                tasks.start_soon(guess)
    assert {key: caller.account_id for key, caller in found.items()} == {
        key.api_key: account.account_id for account, key in created
    }
    assert asked["find_keys"] <= 2  # the second for those that came while the first was under way


async def test_a_wrong_caller_beside_right_ones_is_refused_alone(database_url: str) -> None:
    """Unknown and revoked keys, and accounts that do not exist, change nothing for those that they came with."""
    verdicts: dict[str, AccountId | None] = {}
    async with open_pool(database_url) as database:
        await publish_plans(database)
        administration = Administration(database, utc_now)
        (first, right), (_, revoked) = [
            await administration.create_account(name, Terms(plan="free")) for name in ("right", "revoked")
        ]
        await administration.revoke_key(revoked.key_id)
        authenticator = Authenticator(database, utc_now)

        async def ask(name: str, key: str) -> None:
            try:
                verdicts[name] = (await authenticator.authenticate(key)).account_id
            except InvalidApiKey:
                verdicts[name] = None

        async def name_account(name: str, account_id: AccountId) -> None:
            try:
                verdicts[name] = (await authenticator.identify(account_id)).account_id
            except InvalidIdentity:
                verdicts[name] = None

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "unknown", new_key())
            tasks.start_soon(ask, "right", right.api_key)
            tasks.start_soon(ask, "revoked", revoked.api_key)
            tasks.start_soon(name_account, "named", first.account_id)
            tasks.start_soon(name_account, "invented", AccountId(uuid7(utc_now())))
    assert verdicts == {
        "unknown": None, "right": first.account_id, "revoked": None, "named": first.account_id, "invented": None,
    }  # fmt: skip


async def test_a_migration_that_was_interrupted_is_told(database_url: str) -> None:
    """Before the plans of this version were published, an account cannot have one."""
    async with open_pool(database_url) as database:
        administration = Administration(database, utc_now)
        with pytest.raises(AdministrationError, match="geomill migrate"):
            await administration.create_account("early", Terms(plan="free"))
        await publish_plans(database)
        account, _ = await administration.create_account("in time", Terms(plan="free"))
        assert account.plan == "free"
