"""`geomill convert`: convert files, on this machine or through a server (interface 10)."""

import argparse
import asyncio
import signal
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio

from service.cli.client.bundling import upload_name
from service.cli.client.choosing import open_converter
from service.cli.client.local import LocalConverter
from service.cli.client.options import REQUEST_OPTIONS, members_of
from service.cli.client.outputs import Outputs
from service.cli.client.remote import Remote
from service.cli.client.reporting import FileOutcome, ProgressBar, Reporter
from service.cli.command import JSON, CliCommand, InvalidCommandError, argument
from service.cli.failures import sentence_for
from service.errors import GeomillError
from service.formats.format import SHARED_EXTENSION, Format
from service.formats.registry import by_extension, default_output, find_output
from service.settings import Settings
from service.storage.names import download_name
from service.telemetry.build import VERSION

AT_ONCE = 4
_AMBIGUOUS = frozenset({SHARED_EXTENSION, ".json"})
"""Extensions of several formats."""


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Convert all files; return 0 if every file was converted, 1 otherwise.

    Raises:
        InvalidCommandError: no such format or directory exists, or the arguments contradict each other.
        CancelledError: the command was interrupted; its files have been reported.
    """
    members = members_of(arguments)
    if "output" in members:
        try:
            find_output(members["output"])
        except GeomillError as error:
            raise InvalidCommandError(error.message) from None
    if not arguments.output_directory.is_dir():
        raise InvalidCommandError(f"There is no directory {arguments.output_directory} for the results.")
    _interrupt_on_signals()
    files = list(dict.fromkeys(arguments.files))
    outputs = Outputs(arguments.output_directory, force=arguments.force)
    report = Reporter(files, as_json=arguments.json)
    words = partial(_reason, settings=settings)
    try:
        async with open_converter(settings, arguments, members, outputs) as client:
            await _convert_all(client, files, outputs, members.get("output"), report, words=words)
    except Exception as error:
        report.ended_by = words(error)
        raise
    finally:
        failed = report.close()
    return 1 if failed else 0


async def _convert_all(
    client: LocalConverter | Remote,
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
    client: LocalConverter | Remote, path: Path, outputs: Outputs, target: str | None, bar: ProgressBar
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


_DESCRIPTION = (
    "Convert files on this machine, with its GDAL and in the sandbox of the service, or with --url through a server. "
    "The files of a Shapefile or MapInfo dataset are found beside the one that is named. Results get the name of their "
    "file and the extension of their format. The exit code is 0 if every file was converted, 1 if one was not, 2 if "
    "the command is wrong, and 130 if it was interrupted; nothing incomplete is left then, and jobs "
    "that have not ended are cancelled."
)

COMMAND = CliCommand(
    description=_DESCRIPTION,
    run=run,
    arguments=(
        argument("files", metavar="FILE", nargs="+", type=Path, help="a file to convert"),
        *(option.argument for option in REQUEST_OPTIONS),
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
