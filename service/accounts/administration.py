"""Making and changing accounts, organisations and keys: what `geomill account` and `geomill key` do (contract 6)."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from service.accounts.keys import hash_key, new_key
from service.clock import Clock
from service.db.pool import Connection, Database
from service.db.queries import load
from service.identifiers import AccountId, KeyId, OrganizationId, PayerId, uuid7

_SQL = load("accounts")


class AdministrationError(ValueError):
    """What was asked for is not possible; the message says why and what to do."""


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A new key: the only time that it is shown."""

    account_id: AccountId
    key_id: KeyId
    api_key: str


class Account(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An account and what it draws on: a plan (alone or with its organisation) or a wallet in US cents."""

    account_id: AccountId
    name: str
    organization_id: OrganizationId | None
    plan: str | None
    wallet_cents: int | None
    past_due: bool
    may_convert: bool
    storage_region: str | None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a new account draws on: a plan whose owner is a user or an organisation, or a wallet."""

    plan: str | None = None
    plan_owner: Literal["user", "organization"] = "user"
    organization: str | None = None
    wallet_cents: int | None = None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of an account; None leaves it as it is."""

    plan: str | None = None
    plan_owner: Literal["user", "organization"] = "user"
    past_due: bool | None = None
    may_convert: bool | None = None
    wallet_cents: int | None = None
    storage_region: str | None = None
    """A region of the store; "" is home."""


class Administration:
    """Accounts and keys on one database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create_account(self, name: str, terms: Terms) -> tuple[Account, CreatedKey]:
        """Create an account with its first key.

        A plan held by organisations puts the account into `terms.organization` (an id or a name; made if there is
        none of that name), or into a new one of its own.

        Raises:
            AdministrationError: the terms contradict each other or the organisation's plan.
        """
        now = self._clock()
        async with self._database.transaction() as connection:
            payer_id = await _payer_for(connection, name, terms, now)
            account_id = AccountId(uuid7(now))
            await connection.execute(_SQL["create_account"], account_id, name, payer_id, now)
            key = await _insert_key(connection, account_id, now)
            return await _find(connection, account_id), key

    async def create_key(self, account_id: AccountId) -> CreatedKey:
        """Create a further key of an account.

        Raises:
            AdministrationError: there is no such account.
        """
        async with self._database.transaction() as connection:
            return await _insert_key(connection, account_id, self._clock())

    async def revoke_key(self, key_id: KeyId) -> AccountId:
        """Revoke a key; it is refused everywhere within five seconds. Return whose it was.

        Raises:
            AdministrationError: there is no such key.
        """
        async with self._database.connection() as connection:
            owner: UUID | None = await connection.fetchval(_SQL["revoke_key"], key_id, self._clock())
        if owner is None:
            message = f"There is no key {key_id}."
            raise AdministrationError(message)
        return AccountId(owner)

    async def find_account(self, account_id: AccountId) -> Account:
        """Return an account.

        Raises:
            AdministrationError: there is no such account.
        """
        async with self._database.transaction() as connection:
            return await _find(connection, account_id)

    async def account_named(self, name: str) -> AccountId | None:
        """Return the oldest account of this name."""
        async with self._database.connection() as connection:
            found: UUID | None = await connection.fetchval(_SQL["find_account_by_name"], name)
        return AccountId(found) if found is not None else None

    async def change_account(self, account_id: AccountId, changes: Changes) -> Account:
        """Change an account; plan and past due concern all members of its organisation.

        A plan with another kind of owner moves the account to a payer of its own. The balance that `wallet_cents`
        sets is what is free to spend.

        Raises:
            AdministrationError: there is no such account, or a wallet is set on an account with a plan.
        """
        async with self._database.transaction() as connection:
            account = await _find(connection, account_id)
            if changes.plan is not None:
                await _change_plan(connection, account, changes, self._clock())
            payer_id = await _payer_of(connection, account_id)
            if changes.past_due is not None:
                await connection.execute(_SQL["set_past_due"], payer_id, changes.past_due)
            if changes.may_convert is not None:
                await connection.execute(_SQL["set_may_convert"], account_id, changes.may_convert)
            if changes.storage_region is not None:
                await _choose_region(connection, account_id, changes.storage_region)
            if changes.wallet_cents is not None:
                await _set_wallet(connection, payer_id, changes.wallet_cents, self._clock())
            return await _find(connection, account_id)


async def _find(connection: Connection, account_id: AccountId) -> Account:
    row = await connection.fetchrow(_SQL["find_account"], account_id)
    if row is None:
        message = f"There is no account {account_id}."
        raise AdministrationError(message)
    return Account(
        account_id=row["id"],
        name=row["name"],
        organization_id=row["organization_id"],
        plan=row["plan_id"],
        wallet_cents=row["wallet_cents"],
        past_due=row["past_due"],
        may_convert=row["may_convert"],
        storage_region=row["storage_region"] if row["storage_region_choice"] else None,
    )


async def _payer_of(connection: Connection, account_id: AccountId) -> PayerId:
    row = await connection.fetchrow(_SQL["find_account"], account_id)
    if row is None:
        message = f"There is no account {account_id}."
        raise AdministrationError(message)
    return PayerId(row["payer_id"])


async def _payer_for(connection: Connection, name: str, terms: Terms, now: datetime) -> PayerId:
    if (terms.plan is None) == (terms.wallet_cents is None):
        message = "An account has either a plan or a wallet: give one of the two."
        raise AdministrationError(message)
    if terms.plan is None or terms.plan_owner == "user":
        if terms.organization is not None:
            message = "Only the plans team and business are held by an organization."
            raise AdministrationError(message)
        return await _insert_payer(connection, None, terms.plan, terms.wallet_cents, now)
    if terms.organization is None:
        return await _found_organization(connection, f"{name} {uuid7(now)}", terms.plan, now)
    row = await connection.fetchrow(_SQL["find_organization"], terms.organization)
    if row is None:
        return await _found_organization(connection, terms.organization, terms.plan, now)
    if row["plan_id"] != terms.plan:
        message = f"The organization {row['name']} is on plan {row['plan_id']}; its members share it."
        raise AdministrationError(message)
    return PayerId(row["payer_id"])


async def _found_organization(connection: Connection, name: str, plan: str, now: datetime) -> PayerId:
    organization_id = OrganizationId(uuid7(now))
    await connection.execute(_SQL["create_organization"], organization_id, name, now)
    return await _insert_payer(connection, organization_id, plan, None, now)


async def _insert_payer(
    connection: Connection,
    organization_id: OrganizationId | None,
    plan: str | None,
    wallet_cents: int | None,
    now: datetime,
) -> PayerId:
    payer_id = PayerId(uuid7(now))
    await connection.execute(_SQL["create_payer"], payer_id, organization_id, plan, wallet_cents)
    if wallet_cents:
        await connection.execute(_SQL["credit_wallet"], payer_id, wallet_cents, now)
    return payer_id


async def _insert_key(connection: Connection, account_id: AccountId, now: datetime) -> CreatedKey:
    key, key_id = new_key(), KeyId(uuid7(now))
    if await connection.fetchval(_SQL["create_key"], key_id, account_id, hash_key(key), now) is None:
        message = f"There is no account {account_id}."
        raise AdministrationError(message)
    return CreatedKey(account_id=account_id, key_id=key_id, api_key=key)


async def _change_plan(connection: Connection, account: Account, changes: Changes, now: datetime) -> None:
    has_organization = account.organization_id is not None
    if account.plan is not None and has_organization == (changes.plan_owner == "organization"):
        payer_id = await _payer_of(connection, account.account_id)
        await connection.execute(_SQL["set_plan"], payer_id, changes.plan)
        return
    terms = Terms(plan=changes.plan, plan_owner=changes.plan_owner)
    payer_id = await _payer_for(connection, account.name, terms, now)
    await connection.execute(_SQL["move_account"], account.account_id, payer_id)


async def _choose_region(connection: Connection, account_id: AccountId, region: str) -> None:
    if (await _find(connection, account_id)).storage_region is None:
        raise AdministrationError("The plan of this account does not let it choose a storage region.")
    await connection.execute(_SQL["set_storage_region"], account_id, region)


async def _set_wallet(connection: Connection, payer_id: PayerId, cents: int, now: datetime) -> None:
    before: int | None = await connection.fetchval(_SQL["lock_wallet"], payer_id)
    if before is None:
        message = "This account has a plan, no wallet."
        raise AdministrationError(message)
    await connection.execute(_SQL["set_wallet"], payer_id, cents)
    await connection.execute(_SQL["credit_wallet"], payer_id, cents - before, now)
