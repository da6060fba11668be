"""`geomill reconcile`: make the jobs and the store agree after one of them was restored."""

import argparse
from collections.abc import Sequence
from uuid import UUID

import msgspec

from service.app import open_database, open_storage
from service.cli.command import JSON, Command, CommandError, argument
from service.metering.audit import audit_books
from service.settings import Settings
from service.storage.port import ObjectKey
from service.usecases.audit import StoreComparison, compare_store, reconcile


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `reconcile --json`."""

    expired_jobs: Sequence[UUID]
    deleted_outputs: Sequence[ObjectKey]
    differences: Sequence[str]
    """Of the ledger, which is never changed."""


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Mend what differs and print it; return 0 only if the ledger agrees, too."""
    async with open_database(settings) as database, open_storage(settings) as storage:
        compared = await compare_store(database, storage)
        if not arguments.force:
            _require_some_match(compared)
        expired = await reconcile(database, storage, compared)
        differences = await audit_books(database)
    done = Reconciliation(expired_jobs=expired, deleted_outputs=compared.orphans, differences=differences)
    if arguments.json:
        print(msgspec.json.encode(done).decode())
    else:
        print("\n".join(_lines(done)) or "Ledger, jobs and store agree.")
    return 1 if differences else 0


def _require_some_match(compared: StoreComparison) -> None:
    if not compared.known and (compared.orphans or compared.missing):
        raise CommandError(
            f"No stored output belongs to a job: {len(compared.orphans)} outputs have no job, {len(compared.missing)} "
            "jobs have no output. This is probably the store of another database; check the settings of both. "
            "If the outputs really are lost, add --force."
        )


def _lines(done: Reconciliation) -> list[str]:
    return [
        *(f"Job {job_id} is Expired now, because its output is not in the store." for job_id in done.expired_jobs),
        *(f"The stored output {key} belonged to no job and is deleted." for key in done.deleted_outputs),
        *(f"Not changed: {difference}" for difference in done.differences),
    ]


COMMAND = Command(
    name="reconcile",
    help="after a restore, mark jobs whose output is lost as Expired and delete outputs that belong to no job",
    run=run,
    arguments=(
        JSON,
        argument("--force", action="store_true", help="even if no stored output belongs to a job of this database"),
    ),
)
