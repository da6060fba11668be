"""`geomill convert`: convert files, on this machine or through a server (interface 10)."""

import argparse
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from service.cli.client.bundling import upload_name
from service.cli.client.here import Here, open_here
from service.cli.client.http import split_url
from service.cli.client.outputs import Outputs
from service.cli.client.remote import Remote
from service.cli.client.reporting import FileOutcome, ProgressBar, lines_about, summary
from service.cli.command import JSON, Command, CommandError, argument
from service.errors import GeomillError
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.settings import Settings
from service.storage.names import download_name
from service.telemetry.log import configure_log

AT_ONCE = 4

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
    """Convert all files; return 0 if every file was converted, 1 otherwise."""
    wishes = {name: value for name in _WISHES if (value := getattr(arguments, name)) not in {None, False}}
    if "output" in wishes:
        find_output(wishes["output"])
    if not arguments.output_directory.is_dir():
        raise CommandError(f"There is no directory {arguments.output_directory} for the results.")
    outputs = Outputs(arguments.output_directory, force=arguments.force)
    bar = ProgressBar(len(arguments.files))
    outcomes: dict[int, FileOutcome] = {}
    try:
        async with _open_converter(settings, arguments, wishes, outputs) as client:
            places = anyio.CapacityLimiter(AT_ONCE)

            async def convert(number: int, path: Path) -> None:
                async with places:
                    outcomes[number] = outcome = await _outcome_of(client, path, outputs, wishes.get("output"), bar)
                    lines = [] if arguments.json else lines_about(outcome)
                    bar.finish(path.name, lines, sys.stdout if outcome.success else sys.stderr)

            async with anyio.create_task_group() as tasks:
                for number, path in enumerate(arguments.files):
                    tasks.start_soon(convert, number, path)
    finally:
        bar.clear()
    report = summary([outcomes[number] for number in sorted(outcomes)])
    if arguments.json:
        print(msgspec.json.encode(report).decode())
    elif len(report.files) > 1:
        print(f"{report.converted} of {len(report.files)} files were converted.")
    return 1 if report.failed else 0


async def _outcome_of(
    client: Here | Remote, path: Path, outputs: Outputs, target: str | None, bar: ProgressBar
) -> FileOutcome:
    try:
        name, writing = upload_name(path), find_output(target).writing if target else None
        if writing is not None:  # the name of the result is known before it is made
            outputs.require(download_name(name, writing.extension))
        return await client.convert(path, bar)
    except (CommandError, GeomillError) as error:
        reason = error.message if isinstance(error, GeomillError) else str(error)
    except OSError as error:
        reason = f"{error.filename or 'The file'}: {error.strerror or type(error).__name__}."
    return FileOutcome(file=str(path), success=False, error=reason)


@asynccontextmanager
async def _open_converter(
    settings: Settings, arguments: argparse.Namespace, wishes: Mapping[str, Any], outputs: Outputs
) -> AsyncIterator[Here | Remote]:
    if arguments.url is None:
        if arguments.key or arguments.key_file:
            raise CommandError("A key is for a server. Name the server with --url.")
        configure_log(settings.log_format, "error")
        async with open_here(settings, ConversionRequest(**wishes), outputs) as here:
            yield here
        return
    split_url(arguments.url)
    fields = {_WISHES[name]: "true" if value is True else str(value) for name, value in wishes.items()}
    yield Remote(arguments.url, _key(arguments), fields, outputs)


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
    "the command is wrong, and 130 if it was interrupted; nothing incomplete is left then, and no job goes on."
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
        JSON,
    ),
)
