"""Converts on this machine, with its GDAL, in the same sandbox as the service, without a database."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from service.app.converters import open_local_converter
from service.cli.client.bundling import temporary_space, upload_name, write_upload
from service.cli.client.outputs import Outputs
from service.cli.client.reporting import INTERRUPTED, FileOutcome, ProgressBar
from service.dataloss.rules import Report
from service.formats.request import ConversionRequest
from service.intake.form import Upload
from service.jobs.lifecycle import Situation
from service.settings import Settings
from service.storage.disk import COPY_BYTES, open_output
from service.storage.names import download_name
from service.usecases.convert_local import LocalParts, LocalResult, convert_local

_REFRESH_SECONDS = 0.25


class LocalConverter:
    """Conversions on this machine."""

    def __init__(self, parts: LocalParts, request: ConversionRequest, outputs: Outputs) -> None:
        self._parts = parts
        self._request = request
        self._outputs = outputs

    async def convert(self, path: Path, bar: ProgressBar) -> FileOutcome:
        """Convert one file.

        Raises:
            Rejection: it cannot be converted.
            CommandError: its result may not be written.
            OSError: it cannot be read, or its result not be written.
        """
        name = upload_name(path)
        directory = self._parts.work_area.new_directory()
        try:
            copy = directory / "upload"
            bar.update(path.name, "reading")
            with temporary_space():
                await anyio.to_thread.run_sync(partial(write_upload, path, copy))
            upload = Upload(untrusted_name=name, path=copy, size_bytes=copy.stat().st_size)
            with _showing(bar, path.name) as watch:
                result = await convert_local(self._parts, upload, self._request, watch)
            target = download_name(name, result.extension)
            with self._outputs.writing(path, target) as draft:
                await anyio.to_thread.run_sync(partial(_copy, result.path, draft))
        finally:
            await self._parts.work_area.remove(directory)
        return _outcome(path, self._outputs.path(target), result)

    async def abandon(self, path: Path) -> FileOutcome:
        """Say of an interrupted conversion that nothing is left of it."""
        return FileOutcome(file=str(path), success=False, error=INTERRUPTED)


@asynccontextmanager
async def open_local(settings: Settings, request: ConversionRequest, outputs: Outputs) -> AsyncIterator[LocalConverter]:
    """Open converters in a temporary directory, which is removed at the end.

    Raises:
        ConverterMissing: there is no usable ogr2ogr.
        SandboxUnavailable: this host cannot isolate converters as strictly as the settings ask.
        CommandError: there is no space for temporary files.
    """
    with temporary_space(), tempfile.TemporaryDirectory(prefix="geomill-") as directory:
        os.chmod(directory, 0o711)  # noqa: PTH101, S103 -- the users of converters pass through
        own = msgspec.structs.replace(settings, data_dir=directory, memory_dir="")
        async with open_local_converter(own) as parts:
            yield LocalConverter(parts, request, outputs)


@contextmanager
def _showing(bar: ProgressBar, name: str) -> Iterator[Callable[[Callable[[], Situation]], None]]:
    """Show a situation until the end of the block: yield a setter for the function that returns it."""
    watched: list[Callable[[], Situation]] = []

    async def show() -> None:
        while True:
            for situation in watched[-1:]:
                bar.convert(name, situation())
            await asyncio.sleep(_REFRESH_SECONDS)

    task = asyncio.create_task(show())
    try:
        yield watched.append
    finally:
        task.cancel()


def _copy(source: Path, target: Path) -> None:
    with open_output(source) as written, target.open("xb") as copy:
        shutil.copyfileobj(written, copy, COPY_BYTES)


def _outcome(path: Path, output: Path, result: LocalResult) -> FileOutcome:
    job = result.job
    report = job.details.truncation_report
    return FileOutcome(
        file=str(path),
        success=True,
        output=str(output),
        feature_count=job.feature_count,
        geometry_type=job.geometry_type,
        output_size_bytes=job.output_size_bytes,
        warnings=job.details.warnings,
        truncation_report=msgspec.convert(report, Report) if report is not None else None,
    )
