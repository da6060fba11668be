"""Which converter the arguments of `geomill convert` name: this machine, or a server with a key."""

import argparse
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from service.cli.client.http import split_url
from service.cli.client.local import LocalConverter, open_local
from service.cli.client.options import as_fields
from service.cli.client.outputs import Outputs
from service.cli.client.remote import Remote
from service.cli.command import InvalidCommandError
from service.formats.request import ConversionRequest
from service.http.api.inputs import MAX_IDEMPOTENCY_KEY
from service.settings import Settings
from service.telemetry.log import configure_log


@asynccontextmanager
async def open_converter(
    settings: Settings, arguments: argparse.Namespace, members: Mapping[str, Any], outputs: Outputs
) -> AsyncIterator[LocalConverter | Remote]:
    """Open the converter, which writes into `outputs`; `members` are those of `members_of`.

    Raises:
        InvalidCommandError: the arguments contradict each other, or name no valid address or key.
    """
    if arguments.url is None:
        if arguments.idempotency_key is not None:
            raise InvalidCommandError("An idempotency key is for a server. Name the server with --url.")
        if arguments.key or arguments.key_file:
            raise InvalidCommandError("A key is for a server. Name the server with --url.")
        configure_log(settings.log_format, "error")
        async with open_local(settings, ConversionRequest(**members), outputs) as local:
            yield local
        return
    split_url(arguments.url)
    yield Remote(arguments.url, _key(arguments), as_fields(members), outputs, _idempotency_keys(arguments))


def _idempotency_keys(arguments: argparse.Namespace) -> dict[Path, str]:
    """Return the key of each file; that of one among several ends with a digest of its path, as it was given."""
    key, files = arguments.idempotency_key, set(arguments.files)
    if key is None:
        return {}
    keys = {path: key if len(files) == 1 else f"{key}-{sha256(os.fsencode(path)).hexdigest()[:16]}" for path in files}
    if not key.isascii() or not key.isprintable() or not key or key != key.strip():
        raise InvalidCommandError(
            "An idempotency key consists of printable ASCII characters, without blanks at its ends."
        )
    if (excess := max(map(len, keys.values())) - MAX_IDEMPOTENCY_KEY) > 0:
        raise InvalidCommandError(
            f"The idempotency key is too long. Give one of at most {len(key) - excess} characters."
        )
    return keys


def _key(arguments: argparse.Namespace) -> str:
    key = _given_key(arguments)
    if not (key.isascii() and key.isprintable()):
        raise InvalidCommandError("The API key has characters that an API key cannot have. Copy it again.")
    return key


def _given_key(arguments: argparse.Namespace) -> str:
    if arguments.key_file is not None:
        try:
            return str(arguments.key_file.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            raise InvalidCommandError(f"{arguments.key_file} is not a file with a key.") from None
    if not arguments.key:
        raise InvalidCommandError("A server needs an API key: give it with --key-file, or with --key.")
    return str(arguments.key)
