"""`geomill convert`: convert files, on this machine or through a server (interface 10)."""

import argparse
import asyncio
import os
import signal
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio

from service.cli.client.bundling import upload_name
from service.cli.client.here import Here, open_here
from service.cli.client.http import split_url
from service.cli.client.outputs import Outputs
from service.cli.client.remote import Remote
from service.cli.client.reporting import FileOutcome, ProgressBar, Reporter
from service.cli.command import JSON, Command, CommandError, argument
from service.cli.failures import sentence_for
from service.formats.format import SHARED_EXTENSION, Format
from service.formats.registry import by_extension, default_output, find_output
from service.formats.request import ConversionRequest
from service.http.api.inputs import MAX_IDEMPOTENCY_KEY
from service.settings import Settings
from service.storage.names import download_name
from service.telemetry.build import VERSION
from service.telemetry.log import configure_log

AT_ONCE = 4
_AMBIGUOUS = frozenset({SHARED_EXTENSION, ".json"})
"""Extensions of several formats."""

_WISHES = {
    "output": "outputFormat",
    "target_epsg": "targetEpsg",
    "source_epsg": "sourceEpsg",
    "layer": "layer",
    "x_field": "xField",
    "y_field": "yField",
    "z_field": "zField",
    "wkt_field": "wktField",
    "keep_coordinates": "keepCoordinates",
}
"""The arguments that are members of a `ConversionRequest`, and the fields of the form that they are."""


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Convert all files; return 0 if every file was converted, 1 otherwise.

    Raises:
        CancelledError: the command was interrupted; its files have been reported.
    """
    wishes = {name: value for name in _WISHES if (value := getattr(arguments, name)) not in {None, False}}
    if "output" in wishes:
        find_output(wishes["output"])
    if not arguments.output_directory.is_dir():
        raise CommandError(f"There is no directory {arguments.output_directory} for the results.")
    _interrupt_on_signals()
    files = list(dict.fromkeys(arguments.files))
    outputs = Outputs(arguments.output_directory, force=arguments.force)
    report = Reporter(files, as_json=arguments.json)
    words = partial(_reason, settings=settings)
    try:
        async with _open_converter(settings, arguments, wishes, outputs) as client:
            await _convert_all(client, files, outputs, wishes.get("output"), report, words=words)
    except Exception as error:
        report.ended_by = words(error)
        raise
    finally:
        failed = report.close()
    return 1 if failed else 0


async def _convert_all(
    client: Here | Remote,
    files: Sequence[Path],
    outputs: Outputs,
    target: str | None,
    report: Reporter,
    *,
    words: Callable[[Exception], str],
) -> None:
    places = anyio.CapacityLimiter(AT_ONCE)

    async def convert(path: Path) -> None:
        async with places:
            try:
                outcome = await _outcome_of(client, path, outputs, target, report.bar)
            except Exception as error:  # noqa: BLE001 -- one file must not end the others
                outcome = FileOutcome(file=str(path), success=False, error=words(error))
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    report.add(path, await client.abandon(path))
                raise
            report.add(path, outcome)

    async with anyio.create_task_group() as tasks:
        for path in files:
            tasks.start_soon(convert, path)


def _interrupt_on_signals() -> None:
    """Let the end of a terminal, or of a service manager's patience, interrupt the command as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as after `nohup`
            asyncio.get_running_loop().add_signal_handler(number, signal.raise_signal, signal.SIGINT)


async def _outcome_of(
    client: Here | Remote, path: Path, outputs: Outputs, target: str | None, bar: ProgressBar
) -> FileOutcome:
    if (name := _result_name(path, target)) is not None:
        outputs.claim(path, name)
    return await client.convert(path, bar)


def _reason(error: Exception, settings: Settings) -> str:
    """Say why a file was not converted."""
    if isinstance(error, OSError):
        return f"{error.filename or 'The file'}: {error.strerror or type(error).__name__}."
    if (sentence := sentence_for(error, settings)) is not None:
        return sentence
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__} in {place.name}, {Path(place.filename).name}:{place.lineno}: {error}"
    return f"This is a defect of geomill {VERSION}. Report it with this text: {what}"


def _result_name(path: Path, target: str | None) -> str | None:
    """Return the name of the result, to know that it is free before anything is charged; None if content decides.

    Raises:
        CommandError: there is no such file.
    """
    name = upload_name(path)
    source = by_extension(Path(name).suffix)
    if target is not None:
        wanted: Format | None = find_output(target)
    elif source is None or Path(name).suffix.casefold() in _AMBIGUOUS:
        wanted = None
    else:
        wanted = default_output(source)
    return download_name(name, wanted.writing.extension) if wanted is not None and wanted.writing is not None else None


@asynccontextmanager
async def _open_converter(
    settings: Settings, arguments: argparse.Namespace, wishes: Mapping[str, Any], outputs: Outputs
) -> AsyncIterator[Here | Remote]:
    if arguments.url is None:
        if arguments.idempotency_key is not None:
            raise CommandError("An idempotency key is for a server. Name the server with --url.")
        if arguments.key or arguments.key_file:
            raise CommandError("A key is for a server. Name the server with --url.")
        configure_log(settings.log_format, "error")
        async with open_here(settings, ConversionRequest(**wishes), outputs) as here:
            yield here
        return
    split_url(arguments.url)
    fields = {_WISHES[name]: "true" if value is True else str(value) for name, value in wishes.items()}
    yield Remote(arguments.url, _key(arguments), fields, outputs, _idempotency_keys(arguments))


def _idempotency_keys(arguments: argparse.Namespace) -> dict[Path, str]:
    """Return the key of each file; that of one among several ends with a digest of its path, as it was given."""
    key, files = arguments.idempotency_key, set(arguments.files)
    if key is None:
        return {}
    keys = {path: key if len(files) == 1 else f"{key}-{sha256(os.fsencode(path)).hexdigest()[:16]}" for path in files}
    if not key.isascii() or not key.isprintable() or not key or key != key.strip():
        raise CommandError("An idempotency key consists of printable ASCII characters, without blanks at its ends.")
    if (excess := max(map(len, keys.values())) - MAX_IDEMPOTENCY_KEY) > 0:
        raise CommandError(f"The idempotency key is too long. Give one of at most {len(key) - excess} characters.")
    return keys


def _key(arguments: argparse.Namespace) -> str:
    key = _given_key(arguments)
    if not (key.isascii() and key.isprintable()):
        raise CommandError("The API key has characters that no key has. Copy it again.")
    return key


def _given_key(arguments: argparse.Namespace) -> str:
    if arguments.key_file is not None:
        try:
            return str(arguments.key_file.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            raise CommandError(f"{arguments.key_file} is not a file with a key.") from None
    if not arguments.key:
        raise CommandError("A server needs an API key: give it with --key-file, or with --key.")
    return str(arguments.key)


_DESCRIPTION = (
    "Convert files on this machine, with its GDAL and in the sandbox of the service, or with --url through a server. "
    "The files of a Shapefile or MapInfo dataset are found beside the one that is named. Results get the name of their "
    "file and the extension of their format. The exit code is 0 if every file was converted, 1 if one was not, 2 if "
    "the command is wrong, and 130 if it was interrupted; nothing incomplete is left then, and jobs "
    "that have not ended are cancelled."
)

COMMAND = Command(
    name="convert",
    help="convert files on this machine or through a server",
    description=_DESCRIPTION,
    run=run,
    arguments=(
        argument("files", metavar="FILE", nargs="+", type=Path, help="a file to convert"),
        argument("--to", dest="output", metavar="FORMAT", help="target: a name, token or extension, such as gpkg"),
        argument("--epsg", dest="target_epsg", metavar="N", type=int, help="EPSG code of the result; default: 4326"),
        argument("--source-epsg", metavar="N", type=int, help="EPSG code of the file's coordinates"),
        argument("--layer", metavar="NAME", help="the one layer to convert"),
        argument("--x-field", metavar="COLUMN", help="the column of a table with x, or longitude"),
        argument("--y-field", metavar="COLUMN", help="the column with y, or latitude"),
        argument("--z-field", metavar="COLUMN", help="the column with elevations"),
        argument("--wkt-field", metavar="COLUMN", help="the column with geometries"),
        argument("--keep-coordinates", action="store_true", help="write coordinates of an unknown system unchanged"),
        argument(
            "--output",
            dest="output_directory",
            metavar="DIRECTORY",
            type=Path,
            default=Path(),
            help="where to write the results; default: the current directory",
        ),
        argument("--force", action="store_true", help="replace files that exist"),
        argument("--url", help="address of a server; without it, this machine converts"),
        argument("--key", help="API key for the server; others on this machine can see it in the list of processes"),
        argument("--key-file", metavar="FILE", type=Path, help="file that contains the API key"),
        argument(
            "--idempotency-key",
            metavar="KEY",
            help="charges a file only once, however often the command is run with the same key within 24 hours; "
            "with several files, the key of each is KEY and a digest of its path",
        ),
        JSON,
    ),
)
