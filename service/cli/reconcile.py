"""`geomill reconcile`: make jobs, store and queue agree after one of them was restored."""

import argparse
from contextlib import suppress
from functools import partial

import msgspec

from service.app.database import open_database
from service.app.fleet import open_queue_contents
from service.app.storage import open_storage
from service.cli.command import JSON, CliCommand, CommandError, OutputError, argument, write_out
from service.cli.regions import region_of
from service.metering.audit import audit_books
from service.settings import Settings
from service.usecases import audit


class Reconciliation(audit.Mended, kw_only=True, rename="camel"):
    """The output of `reconcile --json`."""

    differences: list[str] = msgspec.field(default_factory=list)
    """Of the ledger, which is never changed, and of regions and a queue that are away or in doubt."""


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Mend what differs and print it; return 0 only if nothing is left, in the ledger, the store or the queue."""
    regions = arguments.region and [region_of(settings, region) for region in arguments.region]
    open_queue = partial(open_queue_contents, settings)
    async with open_database(settings) as database, open_storage(settings) as storage:
        compared = await audit.compare_store(database, storage, regions, is_forced=arguments.force)
        waiting = audit.QueueComparison() if regions else await audit.compare_queue(database, open_queue)
        if not arguments.force:
            _require_own_messages(waiting)
        done = Reconciliation()
        try:
            done.differences += await audit.reconcile(database, storage, compared, done, is_forced=arguments.force)
            done.differences += await audit.reconcile_queue(database, open_queue, waiting, done)
            done.differences += await audit_books(database)
        except BaseException:  # what is done is told, whatever stops the rest
            with suppress(BrokenPipeError, OutputError):
                _print(done, as_json=arguments.json)
            raise
    agreement = "Ledger, jobs, store and queue agree." if settings.nats_url else "Ledger, jobs and store agree."
    _print(done, as_json=arguments.json, otherwise=agreement)
    return 1 if done.differences else 0


def _print(done: Reconciliation, *, as_json: bool, otherwise: str = "") -> None:
    text = msgspec.json.encode(done).decode() if as_json else "\n".join(_lines(done)) or otherwise
    if text:
        write_out(text)


def _require_own_messages(compared: audit.QueueComparison) -> None:
    if compared.strays and not compared.known:
        raise CommandError(
            f"No message in the queue belongs to a job: {len(compared.strays)} have none. This is probably the queue "
            "of another database; check the settings of both. If the jobs really are lost, add --force."
        )


def _lines(done: Reconciliation) -> list[str]:
    return [
        *(f"Job {job_id} is Expired now, because its output is not in the store." for job_id in done.expired_jobs),
        *(f"The stored output {key} belonged to no job and is deleted." for key in done.deleted_outputs),
        *(f"Job {job_id} had no message in the queue and was handed over again." for job_id in done.handed_over_jobs),
        *(
            f"The message {subject} in the queue belonged to no job and is deleted."
            for subject in done.deleted_messages
        ),
        *(f"Not changed: {difference}" for difference in done.differences),
    ]


COMMAND = CliCommand(
    run=run,
    arguments=(
        JSON,
        argument(
            "--force",
            action="store_true",
            help="change data even if no stored output, or no message, belongs to a job of this database, or the store "
            "is that of another one; also give up the outputs of regions that are not set",
        ),
        argument(
            "--region",
            action="append",
            metavar="R",
            help="compare only this region of the store, or home, and not the queue; may be repeated",
        ),
    ),
)
