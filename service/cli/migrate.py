"""`geomill migrate`: migrate the database to this version's schema (interface 10)."""

import argparse

import msgspec

from service.app.database import make_database
from service.cli.command import JSON, CliCommand, write_out
from service.db.migrate import Schema
from service.settings import Settings


async def run(settings: Settings, arguments: argparse.Namespace) -> None:
    """Apply the missing migrations and say which; safe to run repeatedly and concurrently."""
    found: list[Schema] = []
    async with make_database(settings, found.append):
        pass
    for schema in found:  # told when everything is done, which a full output must not prevent
        write_out(msgspec.json.encode(schema).decode() if arguments.json else "\n".join(_lines(schema)))


def _lines(schema: Schema) -> list[str]:
    applied = [f"Applied {name}." for name in schema.applied]
    newer = [
        f"The database also has {name}, which this version does not know but can serve with." for name in schema.newer
    ]
    return [*applied, *(newer or ["The schema is current."])]


COMMAND = CliCommand(
    description="Apply the migrations that the database lacks, create it if there is none, and print what was applied. "
    "Servers of the previous version keep serving meanwhile. Exits with 0 if this version can serve afterwards.",
    run=run,
    arguments=(JSON,),
)
