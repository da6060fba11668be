"""`geomill settings`: print all settings with default and meaning, as the table of docs/settings.md."""

import argparse

import msgspec

from service.cli.command import CliCommand, write_out
from service.settings import Settings, meaning_of

_HEAD = "| variable | default | meaning |\n|---|---|---|"


async def run(_settings: Settings, _arguments: argparse.Namespace) -> None:
    """Print the table."""
    write_out(table())


def table() -> str:
    """Return all settings as a Markdown table, in order of declaration."""
    return "\n".join([_HEAD, *(_row(field) for field in msgspec.structs.fields(Settings))])


def _row(field: msgspec.structs.FieldInfo) -> str:
    default = "" if field.default in {"", None, msgspec.NODEFAULT} else f"`{field.default}`"
    return f"| `{field.encode_name}` | {default} | {meaning_of(field)} |"


COMMAND = CliCommand(run=run)
