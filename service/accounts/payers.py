"""The payer of an account: its own plan, its organization's plan, or prepaid credit; and how it changes.

No payer is ever deleted: its use, debt and credit stay with it until the account returns. A change therefore affects
only later use, with two exceptions that keep a plan's use and debt with those they belong to: an account that founds an
organization brings its own payer along, and the last member of a dissolved organization keeps the organization's payer.
"""

from datetime import datetime
from typing import Literal

import msgspec

from service.db.pool import Connection
from service.db.queries import load
from service.ids import AccountId, OrganizationId, PayerId, uuid7

_SQL = load("accounts")

Owner = Literal["user", "organization"]


class AdministrationError(ValueError):
    """The requested change is not possible; the message says why and what to do."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The payer of a new account: a plan owned by a user or an organization, or a wallet."""

    plan: str | None = None
    plan_owner: Owner = "user"
    organization: str | None = None
    wallet_cents: int | None = None


class NewTerms(Terms, frozen=True, kw_only=True):
    """The new payer of an account; members left at their defaults do not change.

    `organization` is an id or a name; one that does not exist is founded and needs a plan for organizations.
    """

    leave_organization: bool = False
    wallet: bool = False

    @property
    def changes_payer(self) -> bool:
        """Whether there is anything to change; an owner alone changes nothing."""
        return bool(self.plan is not None or self.organization is not None or self.leave_organization or self.wallet)


async def payer_for(connection: Connection, account_id: AccountId, name: str, terms: Terms, now: datetime) -> PayerId:
    """Return the payer of a new account; it is created if necessary.

    Raises:
        AdministrationError: the terms contradict each other or the organization's plan.
    """
    if (terms.plan is None) == (terms.wallet_cents is None):
        raise AdministrationError("An account has either a plan or a wallet: give one of the two.")
    if terms.plan is None or terms.plan_owner == "user":
        if terms.organization is not None:
            raise AdministrationError(_NO_ORGANIZATION)
        payer_id = await _insert_payer(connection, now, account_id=account_id, terms=terms)
        if terms.wallet_cents:
            await connection.execute(_SQL["credit_wallet"], payer_id, terms.wallet_cents, now)
        return payer_id
    if terms.organization is not None:
        found = await _find_organization(connection, terms.organization, terms.plan)
        if found is not None:
            return found.payer_id
    organization_id = await _insert_organization(connection, terms.organization or _own_name(name, now), now)
    return await _insert_payer(connection, now, organization_id=organization_id, terms=terms)


async def change_payer(
    connection: Connection, account_id: AccountId, new_terms: NewTerms, now: datetime
) -> tuple[str, ...]:
    """Change the payer of an account; return sentences about the effects on use, debt and credit.

    Raises:
        AdministrationError: the request contradicts itself or lacks a plan.
    """
    state = await _read_state(connection, account_id)
    change = _Change(connection, account_id, now, state)
    await change.apply(new_terms)
    return tuple(change.effects)


class _State(msgspec.Struct, kw_only=True):
    """The state of an account while it changes step by step."""

    name: str
    on_wallet: bool
    wallet_payer_id: PayerId | None
    plan_payer_id: PayerId | None
    organization_id: OrganizationId | None
    organization: str | None
    has_colleagues: bool
    owner: Owner | None
    """The plan of `plan_payer_id`."""
    own_payer_id: PayerId | None
    own_owner: Owner | None
    """The plan of `own_payer_id`."""


class _Change:
    def __init__(self, connection: Connection, account_id: AccountId, now: datetime, state: _State) -> None:
        self.effects: list[str] = []
        self._connection = connection
        self._account_id = account_id
        self._now = now
        self._state = state

    async def apply(self, new_terms: NewTerms) -> None:
        if new_terms.wallet and (new_terms.plan or new_terms.organization):
            raise AdministrationError("An account has either a plan or a wallet: give one of the two.")
        if new_terms.organization and new_terms.leave_organization:
            raise AdministrationError("An account joins an organization or leaves one: give one of the two.")
        was_on_wallet = self._state.on_wallet
        if new_terms.leave_organization:
            await self._leave()
        if new_terms.organization is not None:
            await self._join(new_terms.organization, new_terms)
        elif new_terms.plan is not None:
            await self._take_plan(new_terms.plan, new_terms.plan_owner)
        if new_terms.wallet:
            await self._spend_wallet()
        await self._draw()
        if was_on_wallet and not self._state.on_wallet:
            self.effects.append("The prepaid credit that is left is kept for when the account returns to it.")

    async def _join(self, name: str, new_terms: NewTerms) -> None:
        if new_terms.plan is not None and new_terms.plan_owner == "user":
            raise AdministrationError(_NO_ORGANIZATION)
        found = await _find_organization(self._connection, name, new_terms.plan)
        if found is None and new_terms.plan is None:
            raise AdministrationError(
                f"There is no organization {name}. To found it, give it a plan: team or business."
            )
        state = self._state
        state.on_wallet = False
        if found is not None and found.payer_id == state.plan_payer_id:
            return
        if state.organization is not None:
            await self._leave()
        if found is None:
            await self._found(name, new_terms.plan)
            return
        state.plan_payer_id, state.organization = found.payer_id, found.name
        self.effects.append(
            f"From now on conversions count for the organization {found.name}. Earlier usage, and any amount due for "
            "it, stays with the account."
        )

    async def _leave(self) -> None:
        state = self._state
        if state.organization is None:
            raise AdministrationError("This account belongs to no organization.")
        if state.own_payer_id is None and not state.has_colleagues:
            await self._connection.execute(_SQL["give_to_account"], state.plan_payer_id, self._account_id)
            await self._connection.execute(_SQL["delete_organization"], state.organization_id)
            state.own_payer_id, state.own_owner = state.plan_payer_id, state.owner
            self.effects.append(
                f"The organization {state.organization} had no other member and is dissolved; its usage of this month, "
                "and any amount due for it, now belongs to the account."
            )
        else:
            self.effects.append(
                f"Usage in the organization {state.organization}, and any amount due for it, stays there; from now on "
                "conversions count for the account alone."
            )
        state.plan_payer_id, state.organization, state.organization_id = state.own_payer_id, None, None

    async def _take_plan(self, plan: str, owner: Owner) -> None:
        state = self._state
        state.on_wallet = False
        if owner == "organization" and state.organization is not None:
            await self._connection.execute(_SQL["set_plan"], state.plan_payer_id, plan)
            self.effects.append(f"{_KEPT} This concerns all members of the organization {state.organization}.")
            return
        if owner == "organization":
            await self._found(_own_name(state.name, self._now), plan)
            return
        if state.organization is not None:
            await self._leave()
        had_plan = state.own_payer_id is not None
        state.plan_payer_id = await self._own_payer(plan, owner)
        if had_plan:
            self.effects.append(_KEPT)

    async def _found(self, name: str, plan: str | None) -> None:
        state = self._state
        had_plan = state.own_payer_id is not None
        payer_id = await self._own_payer(plan, "organization")
        organization_id = await _insert_organization(self._connection, name, self._now)
        await self._connection.execute(_SQL["give_to_organization"], payer_id, organization_id)
        state.plan_payer_id, state.own_payer_id, state.own_owner = payer_id, None, None
        state.organization, state.organization_id, state.has_colleagues = name, organization_id, False
        if had_plan:
            self.effects.append(f"{_KEPT} Both belong to the organization {name} now and stay with it.")

    async def _own_payer(self, plan: str | None, owner: Owner) -> PayerId:
        state = self._state
        if state.own_payer_id is None:
            terms = Terms(plan=plan, plan_owner=owner)
            state.own_payer_id = await _insert_payer(
                self._connection, self._now, account_id=self._account_id, terms=terms
            )
        else:
            await self._connection.execute(_SQL["set_plan"], state.own_payer_id, plan)
        state.own_owner = owner
        return state.own_payer_id

    async def _spend_wallet(self) -> None:
        state = self._state
        if state.wallet_payer_id is None:
            terms = Terms(wallet_cents=0)
            state.wallet_payer_id = await _insert_payer(
                self._connection, self._now, account_id=self._account_id, terms=terms
            )
        if not state.on_wallet:
            self.effects.append(
                "Conversions are paid from prepaid credit from now on. What the plan has used this month is kept for "
                "when the account returns to a plan."
            )
        state.on_wallet = True

    async def _draw(self) -> None:
        state = self._state
        lacks_plan = state.plan_payer_id is None or (state.organization is None and state.own_owner == "organization")
        payer_id = state.wallet_payer_id if state.on_wallet else state.plan_payer_id
        if payer_id is None or (lacks_plan and not state.on_wallet):
            raise AdministrationError("The account would have no plan of its own: give it one, free or personal.")
        await self._connection.execute(_SQL["draw_on"], self._account_id, payer_id, state.plan_payer_id)
        await self._connection.execute(_SQL["carry_debt"], self._account_id)


class _Organization(msgspec.Struct, frozen=True):
    name: str
    payer_id: PayerId


async def _read_state(connection: Connection, account_id: AccountId) -> _State:
    row = await connection.fetchrow(_SQL["find_payers"], account_id)
    if row is None:
        raise AdministrationError(f"There is no account {account_id}.")
    return _State(**row)


async def _find_organization(connection: Connection, name_or_id: str, plan: str | None) -> _Organization | None:
    row = await connection.fetchrow(_SQL["find_organization"], name_or_id)
    if row is None:
        return None
    if plan not in {None, row["plan_id"]}:
        raise AdministrationError(f"The organization {row['name']} is on plan {row['plan_id']}; its members share it.")
    return _Organization(row["name"], PayerId(row["payer_id"]))


async def _insert_organization(connection: Connection, name: str, now: datetime) -> OrganizationId:
    organization_id = OrganizationId(uuid7(now))
    await connection.execute(_SQL["create_organization"], organization_id, name, now)
    return organization_id


async def _insert_payer(
    connection: Connection,
    now: datetime,
    *,
    account_id: AccountId | None = None,
    organization_id: OrganizationId | None = None,
    terms: Terms,
) -> PayerId:
    payer_id = PayerId(uuid7(now))
    await connection.execute(
        _SQL["create_payer"], payer_id, account_id, organization_id, terms.plan, terms.wallet_cents
    )
    return payer_id


def _own_name(account_name: str, now: datetime) -> str:
    """Generate a name for an organization without one."""
    return f"{account_name} {uuid7(now)}"


_NO_ORGANIZATION = "Only the plans team and business are held by an organization."
_KEPT = "This month's usage, and any amount due, is kept and counts against the new plan."
