"""`geomill audit`: check that ledger, jobs, store and queue agree."""

import argparse
from functools import partial

import msgspec

from service.app.database import open_database
from service.app.fleet import open_queue_contents
from service.app.storage import open_storage
from service.cli.command import JSON, CliCommand, print_record, write_out
from service.settings import Settings
from service.usecases.audit import audit


class Audit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `audit --json`."""

    differences: list[str]


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print every difference; return 0 only if there is none."""
    async with open_database(settings) as database, open_storage(settings) as storage:
        differences = await audit(database, storage, partial(open_queue_contents, settings))
    if arguments.json:
        print_record(Audit(differences=differences), as_json=True)
    else:
        parts = "Ledger, jobs, store and queue" if settings.nats_url else "Ledger, jobs and store"
        write_out("\n".join(differences) or f"{parts} agree.")
    return 1 if differences else 0


COMMAND = CliCommand(run=run, arguments=(JSON,))
