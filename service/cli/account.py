"""`geomill account`: create, list, show, change and delete accounts (interface 10)."""

import argparse
import re
from typing import Any

import msgspec

from service.accounts.administration import Account, Administration, Changes, CreatedKey, ListedAccount, Terms
from service.app.database import open_database
from service.app.storage import open_storage
from service.cli.command import (
    ACCOUNT,
    JSON,
    CliCommand,
    CliVerb,
    InvalidCommandError,
    argument,
    hand_out_key,
    print_list,
    print_record,
    record_of,
    write_out,
)
from service.cli.regions import region_of
from service.clock import utc_now
from service.ids import AccountId, KeyId, OrganizationId
from service.jobs.register import JobRegister
from service.metering.ledger import Ledger
from service.metering.plans import BY_ID
from service.metering.pricing import MOST_CREDIT_CENTS, Pricing
from service.settings import Settings
from service.usecases.delete_account import AccountEraser
from service.usecases.own_store import OwnStore

_PLAN = argument("--plan", choices=tuple(BY_ID), help="plan of the account, or of its organization")


class CreatedAccount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `account create`: the account and its first key, which is shown only once."""

    account_id: AccountId
    name: str
    organization_id: OrganizationId | None
    plan: str | None
    wallet_cents: int | None
    key_id: KeyId
    api_key: str


class Accounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `account list`."""

    accounts: tuple[ListedAccount, ...]


class DeletedAccount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `account delete`."""

    account_id: AccountId
    deleted: bool = True
    erased_results: int


async def create(settings: Settings, arguments: argparse.Namespace) -> None:
    """Create an account and its first key."""
    terms = Terms(**_terms(arguments))

    def hand_out(account: Account, key: CreatedKey) -> None:
        hand_out_key(record_of(CreatedAccount, account, key), as_json=arguments.json)

    async with open_database(settings) as database:
        await Administration(database, utc_now).create_account(arguments.name, terms, hand_out)


async def change(settings: Settings, arguments: argparse.Namespace) -> None:
    """Change an account, and report the effects on the current month."""
    changes = Changes(
        **_terms(arguments),
        leave_organization=arguments.no_organization,
        wallet=arguments.wallet,
        past_due=arguments.past_due,
        may_convert=arguments.may_convert,
        storage_region=None if (region := arguments.storage_region) is None else region_of(settings, region),
    )
    async with open_database(settings) as database:
        changed = await Administration(database, utc_now).change_account(arguments.account_id, changes)
    if arguments.json:
        print_record(changed, as_json=True)
    else:
        print_record(record_of(Account, changed), as_json=False)
        write_out("".join(f"\n{effect}" for effect in changed.effects))


async def show_all(settings: Settings, arguments: argparse.Namespace) -> None:
    """List all accounts."""
    async with open_database(settings) as database:
        accounts = await Administration(database, utc_now).list_accounts()
    print_list(Accounts(accounts=tuple(accounts)), accounts, as_json=arguments.json)


async def show(settings: Settings, arguments: argparse.Namespace) -> None:
    """Show one account."""
    async with open_database(settings) as database:
        account = await Administration(database, utc_now).find_account(arguments.account_id)
    print_record(account, as_json=arguments.json)


async def delete(settings: Settings, arguments: argparse.Namespace) -> None:
    """Delete an account: its keys, files and names. The ledger stays."""
    if not arguments.yes:
        raise InvalidCommandError(
            "This permanently erases the account's keys, files and names. Add --yes if you are sure."
        )
    async with open_database(settings) as database, open_storage(settings) as storage:
        administration = Administration(database, utc_now)
        jobs, ledger = JobRegister(database), Ledger(database, Pricing())
        eraser = AccountEraser(administration, jobs, ledger, storage, OwnStore(database, storage))
        erased = await eraser.delete(arguments.account_id, are_results_lost=arguments.force)
    print_record(DeletedAccount(account_id=arguments.account_id, erased_results=erased), as_json=arguments.json)


def _terms(arguments: argparse.Namespace) -> dict[str, Any]:
    owner = BY_ID[arguments.plan].owner if arguments.plan else "user"
    given = {name: getattr(arguments, name) for name in ("plan", "organization", "wallet_cents")}
    return {**given, "plan_owner": owner}


def cents(text: str) -> int:
    """Parse an amount in US cents, from 0 to the largest credit."""
    value = int(text)
    if not 0 <= value <= MOST_CREDIT_CENTS:
        raise argparse.ArgumentTypeError(f"must be from 0 to {MOST_CREDIT_CENTS}")
    return value


def name(text: str) -> str:
    """Parse a name, which terminals and logs show: it must not move their cursors, and must be text."""
    if not text.strip() or _UNSAFE.search(text):
        raise argparse.ArgumentTypeError(
            "give a name in UTF-8 without control characters and marks that change the direction of text"
        )
    return text


_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, ends of lines, marks that turn the direction of what follows, and bytes that are not UTF-8."""
_EFFECTS = (
    "Change an account. A change from one plan to another keeps this month's usage and the amount due; --plan of a "
    "member applies to its whole organization. --wallet keeps the plan's usage for a return to a plan, and --plan "
    "keeps the remaining credit for a return to --wallet; an amount due is due on both. Joining or leaving an "
    "organization affects only later usage, but the founder brings usage and debt with it, and the last member takes "
    "them away. Conversions in progress are charged under the terms on which they were admitted."
)
_WALLET = argument("--wallet-cents", type=cents, metavar="N", help="prepaid credit in US cents, instead of a plan")

COMMAND = CliCommand(
    verbs=(
        CliVerb(name="list", help="list all accounts", run=show_all, arguments=(JSON,)),
        CliVerb(name="show", help="show an account", run=show, arguments=(ACCOUNT, JSON)),
        CliVerb(
            name="delete",
            help="erase an account's keys, files and names; what it was charged stays in the ledger",
            run=delete,
            arguments=(
                ACCOUNT,
                argument("--yes", action="store_true", help="confirm that this is final"),
                argument(
                    "--force", action="store_true", help="give up results that are not in the store of this database"
                ),
                JSON,
            ),
        ),
        CliVerb(
            name="create",
            help="create an account and its first key",
            run=create,
            arguments=(
                argument("--name", required=True, type=name, help="name of the account"),
                _PLAN,
                argument(
                    "--organization",
                    metavar="ORG",
                    type=name,
                    help="name or id of the organization whose plan the account shares",
                ),
                _WALLET,
                JSON,
            ),
        ),
        CliVerb(
            name="set",
            help="change an account",
            description=_EFFECTS,
            run=change,
            arguments=(
                ACCOUNT,
                _PLAN,
                argument(
                    "--organization",
                    metavar="ORG",
                    type=name,
                    help="name or id of the organization to join; with --plan, it is created if it does not exist",
                ),
                argument("--no-organization", action="store_true", help="leave the organization"),
                argument("--wallet", action="store_true", help="use prepaid credit instead of a plan"),
                argument("--wallet-cents", type=cents, metavar="N", help="available prepaid credit in US cents"),
                argument("--past-due", action=argparse.BooleanOptionalAction, help="whether a payment is past due"),
                argument(
                    "--may-convert", action=argparse.BooleanOptionalAction, help="whether the account may convert"
                ),
                argument(
                    "--storage-region",
                    metavar="R",
                    help="region of its outputs, if its plan includes the choice; or home",
                ),
                JSON,
            ),
        ),
    )
)
