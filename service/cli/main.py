"""The command line: parses the arguments, runs a command, reports its errors."""

import argparse
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from service.cli import account, audit, convert, doctor, key, migrate, reconcile, serve, usage, worker
from service.cli import settings as settings_command
from service.cli.command import CliCommand, InvalidCommandError
from service.cli.failures import sentence_for
from service.settings import Settings, read_settings
from service.system_encoding import names_files_in_utf8
from service.telemetry.build import VERSION
from service.telemetry.log import configure_log

COMMANDS: tuple[CliCommand, ...] = (
    serve.COMMAND,
    worker.COMMAND,
    convert.COMMAND,
    migrate.COMMAND,
    account.COMMAND,
    key.COMMAND,
    usage.COMMAND,
    audit.COMMAND,
    reconcile.COMMAND,
    doctor.COMMAND,
    settings_command.COMMAND,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process; return its exit code: 0 success, 1 failure, 2 invalid usage."""
    _open_closed_streams()
    if arguments is None and not names_files_in_utf8():
        os.environ["PYTHONUTF8"] = "1"  # for the processes that this one starts
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 -- no shell is the point
    parser = argparse.ArgumentParser(prog="geomill", description="Convert geospatial files over HTTP, with metering.")
    parser.add_argument("--version", action="version", version=f"geomill {VERSION}")
    nouns = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(nouns)
    chosen = parser.parse_args(arguments)
    settings = Settings()
    try:
        settings = read_settings(os.environ)
        configure_log(settings.log_format, "error")  # a command says itself what it does; a server logs more
        code = anyio.run(chosen.run, settings, chosen) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_unread(sys.stdout.fileno()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left of it
            return 1
        sentence = sentence_for(error, settings)
        if sentence is None:
            raise
        print(f"geomill: {sentence}", file=sys.stderr)
        return 2 if isinstance(error, InvalidCommandError) else 1
    else:
        return code


def _is_unread(output: int) -> bool:
    """Whether nobody reads the pipe any more, as after `head`, which reads the first lines of its input."""
    state = select.poll()
    state.register(output, 0)  # errors are told in any case
    return bool(state.poll(0))


def _open_closed_streams() -> None:
    """Open the standard streams that were closed for this process, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 -- until the process ends
