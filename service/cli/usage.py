"""`geomill usage`: show what an account has used and has left this month (interface 10)."""

import argparse

import msgspec

from service.accounts.administration import Administration
from service.app import open_database
from service.cli.command import JSON, Command, argument, identifier, print_record
from service.clock import utc_now
from service.ids import AccountId, OrganizationId
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.settings import Settings


class Usage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `usage`; members of an organization share its figures."""

    account_id: AccountId
    name: str
    organization_id: OrganizationId | None
    plan: str | None
    period: str
    used_conversions: int
    used_bytes: int
    remaining_conversions: int | None
    remaining_bytes: int | None
    wallet_cents: int | None
    past_due: bool
    may_convert: bool


async def show(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show what an account has used and has left."""
    async with open_database(settings) as database:
        account = await Administration(database, utc_now).find_account(arguments.account_id)
        balance = await Ledger(database, Pricing()).balance(arguments.account_id)
    usage = Usage(
        account_id=account.account_id,
        name=account.name,
        organization_id=account.organization_id,
        plan=account.plan,
        period=balance.period.isoformat()[:7],
        used_conversions=balance.used_conversions,
        used_bytes=balance.used_bytes,
        remaining_conversions=balance.remaining_conversions,
        remaining_bytes=balance.remaining_bytes,
        wallet_cents=balance.wallet_cents,
        past_due=account.past_due,
        may_convert=account.may_convert,
    )
    print_record(usage, as_json=arguments.json)
    return 0


COMMAND = Command(
    name="usage",
    help="show what an account has used and has left this month",
    run=show,
    arguments=(argument("account_id", metavar="ACCOUNT_ID", type=identifier, help="id of the account"), JSON),
)
