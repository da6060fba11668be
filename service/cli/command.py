"""The structure of a `geomill` command."""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

import msgspec

from service.settings import Settings

Run = Callable[[Settings, argparse.Namespace], Awaitable[int | None]]
"""Runs a command; returns its exit code, if there are several."""

Record = TypeVar("Record", bound=msgspec.Struct)
Subparsers = argparse._SubParsersAction  # noqa: SLF001 -- argparse gives its own return type no public name


class CommandError(Exception):
    """A command cannot do what was requested; the message says why and what to do."""


class OutputError(CommandError):
    """The output of a command that has succeeded cannot be written."""


class InvalidCommandError(CommandError):
    """The arguments of a command are invalid; nothing has been done."""


class CliArgument(msgspec.Struct, frozen=True):
    """One argument, in the form of `ArgumentParser.add_argument`."""

    names: tuple[str, ...]
    options: dict[str, object]


def argument(*names: str, **options: object) -> CliArgument:
    """Describe an argument."""
    return CliArgument(names, options)


def identifier(text: str) -> UUID:
    """Parse an id; argparse reports the error."""
    return UUID(text)


identifier.__name__ = "id"

JSON = argument("--json", action="store_true", help="print one JSON object")
_NOT_HANDED_OUT = (
    "Nothing was created, because the key cannot be written to standard output. Try again with an output that can be "
    "written."
)
ACCOUNT = argument("account_id", metavar="ACCOUNT_ID", type=identifier, help="id of the account")


class CliCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a command runs, or its subcommands."""

    description: str = ""
    run: Run | None = None
    arguments: tuple[CliArgument, ...] = ()
    verbs: tuple["CliVerb", ...] = ()

    def add_to(self, parsers: "Subparsers[argparse.ArgumentParser]", name: str, purpose: str) -> None:
        """Add this command to its parent's parser, which lists it with its purpose."""
        description = self.description or f"{purpose[:1].upper()}{purpose[1:]}."
        parser = parsers.add_parser(name, help=purpose, description=description)
        for one in self.arguments:
            parser.add_argument(*one.names, **one.options)  # type: ignore[arg-type]  # argparse checks them itself
        if self.run is not None:
            parser.set_defaults(run=self.run)
        if self.verbs:
            below = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
            for verb in self.verbs:
                verb.add_to(below, verb.name, verb.help)


class CliVerb(CliCommand, frozen=True, kw_only=True):
    """A subcommand."""

    name: str
    help: str


def record_of(kind: type[Record], *sources: msgspec.Struct, **members: object) -> Record:
    """Return a record with `members`; the others come from the last of `sources` that has one of that name."""
    found = {name: value for source in sources for name, value in msgspec.structs.asdict(source).items()} | members
    return kind(**{name: found[name] for name in kind.__struct_fields__})


def write_out(text: str, end: str = "\n") -> None:
    """Write a text and a line end to standard output, at once.

    Raises:
        BrokenPipeError: nobody reads it.
        OutputError: it cannot be written.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up_output()
        raise OutputError(f"The command is done, but its output cannot be written ({error.strerror}).") from error


def give_up_output() -> None:
    """Discard what is printed and not written, which would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_record(record: msgspec.Struct, *, as_json: bool) -> None:
    """Print a record as one JSON object, or as readable lines; raises what `write_out` raises."""
    if as_json:
        write_out(msgspec.json.encode(record).decode())
        return
    members = msgspec.to_builtins(record)
    width = max(len(name) for name in members)
    write_out("\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in members.items()))


def hand_out_key(record: msgspec.Struct, *, as_json: bool) -> None:
    """Print a record with a key that nobody can see again, before the key is valid.

    Raises:
        CommandError: it cannot be printed, and the key must not become valid.
    """
    if sys.__stdout__ is None:  # it was closed, and main has replaced it
        raise CommandError(_NOT_HANDED_OUT)
    try:
        print_record(record, as_json=as_json)
    except (BrokenPipeError, OutputError) as error:
        give_up_output()
        raise CommandError(_NOT_HANDED_OUT) from error


def print_list(whole: msgspec.Struct, rows: Sequence[msgspec.Struct], *, as_json: bool) -> None:
    """Print `whole` as one JSON object, or its records, which are of one kind, as a table with a header.

    Raises what `write_out` raises.
    """
    if as_json:
        print_record(whole, as_json=True)
        return
    if not rows:
        return
    lines = [
        list(rows[0].__struct_encode_fields__),
        *(list(map(_shown, msgspec.to_builtins(row).values())) for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(f"{value:<{width}}" for value, width in zip(line, widths, strict=True)) for line in lines)
    write_out("\n".join(line.rstrip() for line in padded))


def _shown(value: object) -> str:
    """Return a value as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
