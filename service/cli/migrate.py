"""`geomill migrate`: migrate the database to this version's schema (interface 10)."""

import argparse

from service.app.database import make_database
from service.cli.command import Command
from service.settings import Settings


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Apply the missing migrations; safe to run repeatedly and concurrently."""
    async with make_database(settings):
        print("The database is up to date.")
    return 0


COMMAND = Command(name="migrate", help="migrate the database to this version's schema", run=run)
