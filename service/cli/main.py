"""The command line: parses the arguments, and imports only what the command needs that they name."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from service.cli.command import CliCommand
from service.system_encoding import names_files_in_utf8
from service.telemetry.build import VERSION

COMMANDS: Mapping[str, str] = {
    "serve": "run the service",
    "worker": "convert files that gateways on other hosts hand over",
    "convert": "convert files on this machine or through a server",
    "migrate": "migrate the database to this version's schema",
    "account": "create, list, change and delete accounts",
    "key": "create, list and revoke API keys",
    "usage": "show what an account has used and has left this month, or export the usage of all accounts by day",
    "audit": "recompute usage and balances from jobs and ledger, and compare jobs with the store and the queue",
    "reconcile": "after a restore, mark jobs whose output is lost as Expired, delete outputs and messages that belong "
    "to no job, and hand over again jobs whose message is lost",
    "doctor": "check this host and everything that the service uses",
    "settings": "list every setting with its default and meaning",
}
"""Each command's name, which is that of its module, and what it does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process; return its exit code: 0 success, 1 failure, 2 invalid usage."""
    _open_closed_streams()
    if arguments is None and not names_files_in_utf8():
        os.environ["PYTHONUTF8"] = "1"  # for the processes that this one starts
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 -- no shell is the point
    gc.disable()  # searching tens of thousands of imported objects for garbage takes a tenth of a command's start
    with _ended_by_interruption():
        chosen = _chosen_by(sys.argv[1:] if arguments is None else arguments)
        from service.cli.running import run  # noqa: PLC0415 -- it loads most of the service
    gc.freeze()
    gc.enable()
    return run(chosen)


def _chosen_by(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="geomill", description="Convert geospatial files over HTTP, with metering.")
    parser.add_argument("--version", action="version", version=f"geomill {VERSION}")
    nouns = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = load(name) if name in given else CliCommand()
        command.add_to(nouns, name, purpose)
    return parser.parse_args(given)


@contextmanager
def _ended_by_interruption() -> Iterator[None]:
    """Let Ctrl-C end the process while it imports: there is nothing to undo, and no traceback helps."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def load(name: str) -> CliCommand:
    """Import one of `COMMANDS`."""
    command: CliCommand = import_module(f".{name}", __package__).COMMAND
    return command


def _open_closed_streams() -> None:
    """Open the standard streams that were closed for this process, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 -- until the process ends
