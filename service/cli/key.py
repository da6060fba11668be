"""`geomill key`: create, list and revoke API keys (interface 10)."""

import argparse
from functools import partial

import msgspec

from service.accounts.administration import Administration, ListedKey
from service.app.database import open_database
from service.cli.command import (
    ACCOUNT,
    JSON,
    CliCommand,
    CliVerb,
    argument,
    hand_out_key,
    identifier,
    print_list,
    print_record,
)
from service.clock import utc_now
from service.ids import AccountId, KeyId
from service.settings import Settings


class RevokedKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `key revoke`."""

    key_id: KeyId
    account_id: AccountId
    revoked: bool = True


class ListedKeys(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `key list`."""

    account_id: AccountId
    keys: tuple[ListedKey, ...]


async def create(settings: Settings, arguments: argparse.Namespace) -> None:
    """Create an additional key for an account; it is shown only once."""
    hand_out = partial(hand_out_key, as_json=arguments.json)
    async with open_database(settings) as database:
        await Administration(database, utc_now).create_key(arguments.account_id, hand_out)


async def revoke(settings: Settings, arguments: argparse.Namespace) -> None:
    """Revoke a key; it is rejected everywhere within five seconds."""
    async with open_database(settings) as database:
        account_id = await Administration(database, utc_now).revoke_key(arguments.key_id)
    print_record(RevokedKey(key_id=arguments.key_id, account_id=account_id), as_json=arguments.json)


async def show_all(settings: Settings, arguments: argparse.Namespace) -> None:
    """List the keys of an account."""
    async with open_database(settings) as database:
        keys = await Administration(database, utc_now).list_keys(arguments.account_id)
    print_list(ListedKeys(account_id=arguments.account_id, keys=tuple(keys)), keys, as_json=arguments.json)


COMMAND = CliCommand(
    verbs=(
        CliVerb(name="list", help="list the keys of an account", run=show_all, arguments=(ACCOUNT, JSON)),
        CliVerb(
            name="create", help="create an additional key; it is shown only once", run=create, arguments=(ACCOUNT, JSON)
        ),
        CliVerb(
            name="revoke",
            help="revoke a key; it is rejected everywhere within five seconds",
            run=revoke,
            arguments=(argument("key_id", metavar="KEY_ID", type=identifier, help="id of the key"), JSON),
        ),
    )
)
