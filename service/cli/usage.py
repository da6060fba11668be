"""`geomill usage`: show what an account has used and has left this month, or export usage by day (interface 10)."""

import argparse
from datetime import date

import msgspec

from service.accounts.administration import Administration
from service.app.database import open_database
from service.cli.command import (
    JSON,
    CliCommand,
    InvalidCommandError,
    argument,
    identifier,
    print_record,
    record_of,
    write_out,
)
from service.clock import utc_now
from service.ids import AccountId, OrganizationId
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.metering.usage import UsageReports, as_csv
from service.settings import Settings


class UsageReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
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


async def show(settings: Settings, arguments: argparse.Namespace) -> None:
    """Show what an account has used and has left."""
    async with open_database(settings) as database:
        account = await Administration(database, utc_now).find_account(arguments.account_id)
        balance = await Ledger(database, Pricing()).balance(arguments.account_id)
    month = balance.period.isoformat()[:7]
    print_record(record_of(UsageReport, account, balance, period=month), as_json=arguments.json)


async def export(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print what each account, or one, was charged on each day, as CSV."""
    last = arguments.to or utc_now().date()
    first = getattr(arguments, "from") or last.replace(day=1)
    if first > last:
        raise InvalidCommandError("--from must not be after --to.")
    async with open_database(settings) as database:
        usage = await UsageReports(database).by_day(first, last, arguments.account_id)
    write_out(as_csv(usage), end="")


async def run(settings: Settings, arguments: argparse.Namespace) -> None:
    """Show the month of an account, or export days."""
    if arguments.csv:
        await export(settings, arguments)
    elif arguments.account_id is None:
        raise InvalidCommandError("Name an account, or export the usage of all accounts with --csv.")
    elif getattr(arguments, "from") or arguments.to:
        raise InvalidCommandError("--from and --to are for --csv. Without it, the current month is shown.")
    else:
        await show(settings, arguments)


def day(text: str) -> date:
    """Parse a day; argparse reports the error."""
    return date.fromisoformat(text)


COMMAND = CliCommand(
    run=run,
    arguments=(
        argument("account_id", metavar="ACCOUNT_ID", type=identifier, nargs="?", help="id of the account"),
        argument("--csv", action="store_true", help="print what was charged per account and day (UTC), as CSV"),
        argument("--from", metavar="DAY", type=day, help="first day to export; default: the first of the month"),
        argument("--to", metavar="DAY", type=day, help="last day to export, such as 2026-05-31; default: today"),
        JSON,
    ),
)
