"""The command line: parses the arguments, runs a command, reports its errors."""

import argparse
import os
import sys
from collections.abc import Sequence

import anyio

from service.accounts.administration import AdministrationError
from service.cli import account, audit, doctor, key, migrate, reconcile, serve, settings, usage
from service.cli.command import Command, CommandError
from service.db.migrate import MigrationError
from service.errors import GeomillError
from service.postgres_embedded import EmbeddedPostgresError
from service.settings import SettingsError, read_settings
from service.telemetry.build import VERSION

COMMANDS: tuple[Command, ...] = (
    serve.COMMAND,
    migrate.COMMAND,
    account.COMMAND,
    key.COMMAND,
    usage.COMMAND,
    audit.COMMAND,
    reconcile.COMMAND,
    doctor.COMMAND,
    settings.COMMAND,
)

EXPECTED = (AdministrationError, CommandError, EmbeddedPostgresError, MigrationError, SettingsError)
"""Errors whose message is sufficient without a traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 success, 1 failure, 2 invalid usage."""
    parser = argparse.ArgumentParser(prog="geomill", description="Convert geospatial files, metered, over HTTP.")
    parser.add_argument("--version", action="version", version=f"geomill {VERSION}")
    nouns = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(nouns)
    chosen = parser.parse_args(arguments)
    try:
        code: int = anyio.run(chosen.run, read_settings(os.environ), chosen)
    except EXPECTED as error:
        print(f"geomill: {error}", file=sys.stderr)
    except GeomillError as error:
        print(f"geomill: {error.message}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    else:
        return code
    return 1
