"""Creates and changes accounts, organizations and keys, for `geomill account` and `geomill key` (interface 10)."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import anyio
import asyncpg
import msgspec

from service.accounts.keys import hash_key, new_key
from service.accounts.payers import AdministrationError, NewTerms, Terms, change_payer, payer_for
from service.clock import Clock
from service.db.pool import Connection, Database
from service.db.queries import load
from service.ids import AccountId, KeyId, OrganizationId, uuid7

__all__ = ["Account", "Administration", "AdministrationError", "ChangedAccount", "Changes", "CreatedKey", "Terms"]

_SQL = load("accounts")

LOCK_SECONDS = 30
"""How long a change waits for another change, or for an admission that holds the wallet."""
LOOK_SECONDS = 0.05


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A new key; it is shown only this once."""

    account_id: AccountId
    key_id: KeyId
    api_key: str


class Account(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An account and its payer: a plan (its own or its organization's) or a wallet in US cents."""

    account_id: AccountId
    name: str
    organization_id: OrganizationId | None
    plan: str | None
    wallet_cents: int | None
    past_due: bool
    may_convert: bool
    storage_region: str | None
    kept_wallet_cents: int | None
    """Prepaid credit that is unused while the account has a plan."""


class ChangedAccount(Account, frozen=True, kw_only=True, rename="camel"):
    """An account after a change, with sentences about the effects on use, debt and credit."""

    effects: tuple[str, ...]


class ListedAccount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One line of the list of accounts; members of an organization share the use of its plan."""

    account_id: AccountId
    name: str
    organization_id: OrganizationId | None
    organization: str | None
    plan: str | None
    wallet_cents: int | None
    used_conversions: int
    used_bytes: int
    past_due: bool
    may_convert: bool
    created_at: datetime


class ListedKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A key of an account; the key itself is not stored."""

    key_id: KeyId
    created_at: datetime
    revoked_at: datetime | None


class Changes(NewTerms, frozen=True, kw_only=True):
    """Changes to an account, also of its payer; None or false means no change."""

    past_due: bool | None = None
    may_convert: bool | None = None
    storage_region: str | None = None
    """A region of the store; "" is the home region."""


class Administration:
    """Accounts and keys in one database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create_account(
        self, name: str, terms: Terms, hand_out: "Callable[[Account, CreatedKey], None] | None" = None
    ) -> tuple[Account, CreatedKey]:
        """Create an account with its first key.

        With a plan for organizations, the account joins `terms.organization` (an id or a name; created if there is none
        of that name), or a new organization of its own. If `hand_out`, which gives the key to its owner, raises an
        exception, or the process ends meanwhile, nothing is created.

        Raises:
            AdministrationError: the terms contradict each other or the organization's plan.
        """
        now = self._clock()
        async with self._alone() as connection:
            account_id = AccountId(uuid7(now))
            payer_id = await payer_for(connection, account_id, name, terms, now)
            await connection.execute(_SQL["create_account"], account_id, name, payer_id, now)
            key = await _insert_key(connection, account_id, now)
            account = await _find(connection, account_id)
            if hand_out is not None:
                hand_out(account, key)
        return account, key

    async def create_key(
        self, account_id: AccountId, hand_out: Callable[[CreatedKey], None] | None = None
    ) -> CreatedKey:
        """Create another key for an account; `hand_out` as for its first one.

        Raises:
            AdministrationError: there is no such account.
        """
        async with self._database.transaction() as connection:
            key = await _insert_key(connection, account_id, self._clock())
            if hand_out is not None:
                hand_out(key)
        return key

    async def revoke_key(self, key_id: KeyId) -> AccountId:
        """Revoke a key; all processes refuse it within five seconds. Return its account.

        Raises:
            AdministrationError: there is no such key.
        """
        owner: UUID | None = await self._database.fetchval(_SQL["revoke_key"], key_id, self._clock())
        if owner is None:
            raise AdministrationError(f"There is no key {key_id}.")
        return AccountId(owner)

    async def find_account(self, account_id: AccountId) -> Account:
        """Return an account.

        Raises:
            AdministrationError: there is no such account.
        """
        async with self._database.transaction() as connection:
            return await _find(connection, account_id)

    async def list_accounts(self) -> list[ListedAccount]:
        """Return all accounts that were not deleted, the oldest first."""
        return [ListedAccount(**row) for row in await self._database.fetch(_SQL["list_accounts"])]

    async def list_keys(self, account_id: AccountId) -> list[ListedKey]:
        """Return the keys of an account, the oldest first; revoked ones as long as they are kept.

        Raises:
            AdministrationError: there is no such account.
        """
        async with self._database.transaction() as connection:
            await _find(connection, account_id)
            return [ListedKey(**row) for row in await connection.fetch(_SQL["list_keys"], account_id)]

    async def close_account(self, account_id: AccountId) -> None:
        """Permanently remove the name, the keys and the access of an account; what it was charged stays.

        Raises:
            AdministrationError: there has never been such an account.
        """
        async with self._alone() as connection:
            if await connection.fetchval(_SQL["delete_account"], account_id) is None:
                raise AdministrationError(f"There is no account {account_id}.")
            for change in ("revoke_keys", "forget_requests", "rename_alone"):
                await connection.execute(_SQL[change], account_id)

    async def await_admissions(self) -> None:
        """Wait until every transaction has ended that may have read an account before it was closed.

        An admission reads whether its account may convert, and may then wait for the use of its payer.

        Raises:
            AdministrationError: a transaction does not end.
        """
        patience = time.monotonic() + LOCK_SECONDS
        waits_for = await self._transactions()
        while waits_for:
            if time.monotonic() > patience:
                raise AdministrationError(
                    f"A transaction has not ended for {LOCK_SECONDS} seconds, so the deletion is not complete. Repeat "
                    "it, or end that session first (pg_stat_activity shows it)."
                )
            await anyio.sleep(LOOK_SECONDS)
            waits_for &= await self._transactions()

    async def _transactions(self) -> set[str]:
        return {row[0] for row in await self._database.fetch(_SQL["transactions_on_accounts"])}

    async def change_account(self, account_id: AccountId, changes: Changes) -> ChangedAccount:
        """Change an account; changes to plan and past due apply to all members of its organization.

        `wallet_cents` sets the spendable balance. See `service.accounts.payers` for the effects of a change of plan,
        organization or wallet on use, debt and credit.

        Raises:
            AdministrationError: there is no such account, or the changes contradict each other or its payer.
        """
        effects: tuple[str, ...] = ()
        async with self._alone() as connection:
            await _find(connection, account_id)
            if changes.changes_payer:
                effects = await change_payer(connection, account_id, changes, self._clock())
            if changes.past_due is not None:
                await connection.execute(_SQL["set_past_due"], account_id, changes.past_due)
            if changes.may_convert is not None:
                await connection.execute(_SQL["set_may_convert"], account_id, changes.may_convert)
            if changes.storage_region is not None:
                await _choose_region(connection, account_id, changes.storage_region)
            if changes.wallet_cents is not None:
                await _set_wallet(connection, account_id, changes.wallet_cents, self._clock())
            account = await _find(connection, account_id)
        return ChangedAccount(**msgspec.structs.asdict(account), effects=effects)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Connection]:
        """Start a transaction during which no other account or organization is created or changed.

        Raises:
            AdministrationError: another change does not end, or a migration was interrupted.
        """
        async with self._database.transaction() as connection:
            await connection.execute(_SQL["limit_waiting"], f"{LOCK_SECONDS}s")
            try:
                await connection.execute(_SQL["lock_administration"])
                yield connection
            except asyncpg.LockNotAvailableError:
                raise AdministrationError(
                    f"Another change of accounts has not ended for {LOCK_SECONDS} seconds. Nothing was changed; try "
                    "again, or end the other session (pg_stat_activity shows it)."
                ) from None
            except asyncpg.ForeignKeyViolationError as error:
                if error.constraint_name != "payer_plan_id_fkey":
                    raise
                raise AdministrationError(
                    "The database lacks plans of this version, because its migration was interrupted. Run "
                    "`geomill migrate`, then try again."
                ) from error


async def _find(connection: Connection, account_id: AccountId) -> Account:
    row = await connection.fetchrow(_SQL["find_account"], account_id)
    if row is None:
        raise AdministrationError(f"There is no account {account_id}.")
    return Account(**row)


async def _insert_key(connection: Connection, account_id: AccountId, now: datetime) -> CreatedKey:
    key, key_id = new_key(), KeyId(uuid7(now))
    if await connection.fetchval(_SQL["create_key"], key_id, account_id, hash_key(key), now) is None:
        raise AdministrationError(f"There is no account {account_id}.")
    return CreatedKey(account_id=account_id, key_id=key_id, api_key=key)


async def _choose_region(connection: Connection, account_id: AccountId, region: str) -> None:
    if (await _find(connection, account_id)).storage_region is None:
        raise AdministrationError("The plan of this account does not allow choosing a storage region.")
    await connection.execute(_SQL["set_storage_region"], account_id, region)


async def _set_wallet(connection: Connection, account_id: AccountId, cents: int, now: datetime) -> None:
    wallet = await connection.fetchrow(_SQL["lock_wallet"], account_id)
    if wallet is None:
        raise AdministrationError("This account has a plan. With --wallet it spends prepaid credit instead.")
    await connection.execute(_SQL["set_wallet"], wallet["id"], cents)
    await connection.execute(_SQL["credit_wallet"], wallet["id"], cents - wallet["wallet_cents"], now)
