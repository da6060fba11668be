"""Converts through a server: uploads, waits for the job, downloads the result; an interrupted job is cancelled."""

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from service.cli.client.downloading import GONE, ResultDownload
from service.cli.client.interrupting import CANCEL_SECONDS, OPEN, end_job, kept
from service.cli.client.outputs import Outputs
from service.cli.client.reporting import INTERRUPTED, FileOutcome, ProgressBar
from service.cli.client.requests import Requests, ServerAwayError
from service.cli.client.uploading import FileUpload
from service.cli.command import CommandError
from service.dataloss.rules import Report
from service.jobs.lifecycle import Situation

WAIT_SECONDS, SHOWN_WAIT_SECONDS = 30, 1
"""How long the server may wait for the end of a job; less if someone sees a bar move."""
_UPLOAD_SHARE, _CONVERT_SHARE = 0.4, 0.8


class Remote:
    """Conversions through one server; `fields` are the form fields of each of them.

    `idempotency_keys` are those that the user has chosen; other files get keys of their own.
    """

    def __init__(
        self, url: str, key: str, fields: Mapping[str, str], outputs: Outputs, idempotency_keys: Mapping[Path, str]
    ) -> None:
        self.api = f"{url.rstrip('/')}/api/geo/convert"
        self.headers = {"X-API-Key": key}
        self.fields = fields
        self.outputs = outputs
        self.idempotency_keys = idempotency_keys
        self._calls: dict[Path, _RemoteConversion] = {}

    async def convert(self, path: Path, bar: ProgressBar) -> FileOutcome:
        """Convert one file.

        Raises:
            CommandError: the server refuses the request, or the result may not be written.
            OSError: the file cannot be read.
        """
        self._calls[path] = call = _RemoteConversion(self, path, bar)
        return await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True)

    async def abandon(self, path: Path) -> FileOutcome:
        """Break off the conversion of a file and cancel its job; the outcome says what may be left on the server."""
        return await anyio.to_thread.run_sync(self._calls[path].abandon)


class _RemoteConversion:
    """The conversion of one file. Blocks; `abandon` is for another thread."""

    def __init__(self, remote: Remote, path: Path, bar: ProgressBar) -> None:
        self._remote = remote
        self._path = path
        self._bar = bar
        self._requests = Requests(remote.api, remote.headers, partial(bar.wait, path.name))
        self._job_id: str | None = None
        self._upload = FileUpload(remote.api, path, self._requests, remote.idempotency_keys.get(path))
        self._is_kept = False
        self._answered = threading.Event()

    def run(self) -> FileOutcome:
        try:
            record = self._upload.send(self._remote.fields, self._tell_sent)
            self._job_id = record["jobId"]
        finally:
            self._answered.set()
        try:
            return self._result_of(record)
        except ServerAwayError as error:
            return self._failed(f"{error} Job {self._job_id} goes on without this command; look it up later.")
        except CommandError as error:
            return self._failed(str(error))

    def abandon(self) -> FileOutcome:
        """Begin no other request, break off the current one unless its response will name a job, and cancel the job."""
        self._requests.end()
        if self._upload.may_be_accepted:
            self._answered.wait(CANCEL_SECONDS)
        self._requests.break_off()
        return self._failed(f"{INTERRUPTED} {self._what_is_left()}".rstrip())

    def _what_is_left(self) -> str:
        if self._is_kept:
            return self._kept
        if self._job_id is not None:
            return end_job(self._remote.api, self._remote.headers, self._job_id)
        return self._upload.advice if self._upload.may_be_accepted else ""

    def _failed(self, error: str) -> FileOutcome:
        return FileOutcome(file=str(self._path), success=False, error=error, job_id=self._job_id)

    @property
    def _kept(self) -> str:
        return kept(self._remote.api, str(self._job_id))

    def _tell_sent(self, share: float) -> None:
        self._bar.update(self._path.name, "uploading", _UPLOAD_SHARE * share)

    def _tell_received(self, share: float) -> None:
        self._bar.update(self._path.name, "downloading", _CONVERT_SHARE + (1 - _CONVERT_SHARE) * share)

    def _result_of(self, record: dict[str, Any]) -> FileOutcome:
        while record["status"] in OPEN or "originalFileName" not in record:
            self._bar.convert(self._path.name, situation_of(record), _UPLOAD_SHARE, _CONVERT_SHARE)
            record = self._status(SHOWN_WAIT_SECONDS if self._bar.shows else WAIT_SECONDS)
        if record["status"] != "Completed" or "downloadUrl" not in record:
            return self._failed(record.get("errorMessage") or GONE)
        self._is_kept = True
        download = ResultDownload(self._path, self._requests, self._remote.outputs, self._tell_received)
        return _outcome(self._path, download.receive(record, lambda: self._status(0), self._kept), record)

    def _status(self, wait_seconds: int) -> dict[str, Any]:
        return self._requests.record("GET", f"{self._remote.api}/jobs/{self._job_id}/status?wait={wait_seconds}")


def situation_of(record: Mapping[str, Any]) -> Situation:
    """Return what happens to a job; `waiting` if a newer server says it in words that are unknown here."""
    progress = record.get("progress")
    told = progress if isinstance(progress, dict) else {}
    try:
        return msgspec.convert((told.get("stage"), told.get("share")), Situation)
    except msgspec.ValidationError:
        return Situation("waiting")


def report_of(record: Mapping[str, Any]) -> Report | None:
    """Return the data-loss report of a job; None if there is none, or a newer server gives it in an unknown form."""
    try:
        return msgspec.convert(record.get("truncationReport"), Report | None)
    except msgspec.ValidationError:
        return None


def _outcome(path: Path, output: Path, record: Mapping[str, Any]) -> FileOutcome:
    return FileOutcome(
        file=str(path),
        success=True,
        output=str(output),
        job_id=record["jobId"],
        feature_count=record.get("featureCount"),
        geometry_type=record.get("geometryType"),
        output_size_bytes=record.get("outputSizeBytes"),
        warnings=tuple(record.get("warnings", ())),
        truncation_report=report_of(record),
    )
