"""Converts through a server: uploads, waits for the job, downloads the result; an interrupted job is cancelled."""

import http.client
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec

from service.cli.client import requests
from service.cli.client.bundling import temporary_space, upload_name, write_upload
from service.cli.client.http import PIECE_BYTES, Exchange, Form, retry_after_seconds
from service.cli.client.outputs import Outputs
from service.cli.client.reporting import INTERRUPTED, FileOutcome, ProgressBar
from service.cli.client.requests import AGAIN, RETRY_SECONDS, Requests, ServerAwayError
from service.cli.command import CommandError
from service.dataloss.rules import Report
from service.jobs.lifecycle import Situation
from service.storage.names import clean_name, download_name

WAIT_SECONDS, SHOWN_WAIT_SECONDS = 30, 1
"""How long the server may wait for the end of a job; less if somebody sees a bar move."""
CANCEL_SECONDS = 5.0
"""How long an interrupted conversion waits for the response to its upload, and then for that to its cancellation."""
_OPEN = frozenset({"Pending", "Processing"})
GONE = "The result is no longer kept. Convert the file again."
_UPLOAD_SHARE, _CONVERT_SHARE = 0.4, 0.8


class _NotFetchedError(Exception):
    """A link did not lead to the whole result."""

    def __init__(self, message: str, *, may_pass: bool = True, pause: float = RETRY_SECONDS) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.pause = pause


class Remote:
    """Conversions through one server; `fields` are the form fields of each of them."""

    def __init__(self, url: str, key: str, fields: Mapping[str, str], outputs: Outputs) -> None:
        self.api = f"{url.rstrip('/')}/api/geo/convert"
        self.headers = {"X-API-Key": key}
        self.fields = fields
        self.outputs = outputs
        self._calls: dict[Path, _Call] = {}

    async def convert(self, path: Path, bar: ProgressBar) -> FileOutcome:
        """Convert one file.

        Raises:
            CommandError: the server refuses the request, or the result may not be written.
            OSError: the file cannot be read.
        """
        self._calls[path] = call = _Call(self, path, bar)
        return await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True)

    async def abandon(self, path: Path) -> FileOutcome:
        """Break off the conversion of a file and cancel its job; the outcome says what may be left on the server."""
        return await anyio.to_thread.run_sync(self._calls[path].abandon)


class _Call:
    """The conversion of one file. Blocks; `abandon` is for another thread."""

    def __init__(self, remote: Remote, path: Path, bar: ProgressBar) -> None:
        self._remote = remote
        self._path = path
        self._bar = bar
        self._requests = Requests(remote.api, remote.headers, lambda: bar.update(path.name, "waiting for the server"))
        self._job_id: str | None = None
        self._is_over = False
        self._is_sent = False
        self._answered = threading.Event()

    def run(self) -> FileOutcome:
        try:
            record = self._upload()
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
        if self._is_sent:
            self._answered.wait(CANCEL_SECONDS)
        self._requests.break_off()
        if self._is_over:
            return self._failed(f"{INTERRUPTED} {self._kept}")
        if self._job_id is not None and not self._cancel():
            return self._failed(f"{INTERRUPTED} The server does not confirm that job {self._job_id} is cancelled.")
        if self._job_id is None and self._is_sent:
            return self._failed(f"{INTERRUPTED} The server may have accepted the file; {self._remote.api}/jobs tells.")
        return self._failed(INTERRUPTED)

    def _cancel(self) -> bool:
        exchange = Exchange(f"{self._remote.api}/jobs/{self._job_id}", CANCEL_SECONDS)
        try:
            return exchange.send("DELETE", self._remote.headers).status == http.client.NO_CONTENT
        except (OSError, http.client.HTTPException):
            return False
        finally:
            exchange.close()

    def _failed(self, error: str) -> FileOutcome:
        return FileOutcome(file=str(self._path), success=False, error=error, job_id=self._job_id)

    @property
    def _kept(self) -> str:
        return f"Job {self._job_id} is complete: {self._remote.api}/jobs/{self._job_id}/result links to its result."

    def _upload(self) -> dict[str, Any]:
        name = upload_name(self._path)
        if name == self._path.name:
            return self._send(name, self._path)
        with temporary_space(), tempfile.TemporaryDirectory(prefix="geomill-") as directory:
            packed = Path(directory) / "upload"
            write_upload(self._path, packed)
            return self._send(name, packed)

    def _send(self, name: str, content: Path) -> dict[str, Any]:
        form = Form(self._remote.fields, name, content)
        headers = {
            "Content-Type": form.content_type,
            "Content-Length": str(form.size_bytes),
            "Idempotency-Key": uuid4().hex,
            "Prefer": "respond-async",
        }

        def pieces() -> Iterator[bytes]:
            sent = 0
            for piece in form.pieces():
                sent += len(piece)
                self._is_sent |= sent == form.size_bytes  # with the last piece, the server may accept the file
                self._bar.update(self._path.name, "uploading", _UPLOAD_SHARE * sent / form.size_bytes)
                yield piece

        return self._requests.record("POST", f"{self._remote.api}/file", headers, pieces)

    def _result_of(self, record: dict[str, Any]) -> FileOutcome:
        while record["status"] in _OPEN or "originalFileName" not in record:
            self._bar.convert(self._path.name, situation_of(record), _UPLOAD_SHARE, _CONVERT_SHARE)
            record = self._status(SHOWN_WAIT_SECONDS if self._bar.shows else WAIT_SECONDS)
        self._is_over = True
        if record["status"] != "Completed" or "downloadUrl" not in record:
            return self._failed(record.get("errorMessage") or GONE)
        return _outcome(self._path, self._download(record), record)

    def _status(self, wait_seconds: int) -> dict[str, Any]:
        return self._requests.record("GET", f"{self._remote.api}/jobs/{self._job_id}/status?wait={wait_seconds}")

    def _download(self, record: Mapping[str, Any]) -> Path:
        """Fetch the result by its link; one that breaks or has expired is fetched once more by a new link.

        Raises:
            CommandError: the result cannot be fetched or written.
        """
        give_up_at, is_first = time.monotonic() + requests.PATIENCE_SECONDS, True
        while True:
            try:
                return self._fetch(record)
            except _NotFetchedError as failure:
                may_pass = is_first or failure.may_pass
                if not may_pass or time.monotonic() + failure.pause > give_up_at:
                    raise CommandError(f"The result cannot be fetched ({failure}). {self._kept}") from None
                self._requests.pause(0 if is_first else failure.pause)
            except CommandError as error:
                raise CommandError(f"{error} {self._kept}") from None
            is_first = False
            record = self._status(0)
            if "downloadUrl" not in record:
                raise CommandError(GONE)

    def _fetch(self, record: Mapping[str, Any]) -> Path:
        """Fetch the result by its link, without the key."""
        try:
            with self._requests.fetched(record["downloadUrl"]) as response:
                return self._receive(response, int(record["outputSizeBytes"]))
        except (OSError, http.client.HTTPException) as error:
            raise _NotFetchedError(str(error) or type(error).__name__) from None

    def _receive(self, response: http.client.HTTPResponse, size: int) -> Path:
        if response.status != http.client.OK:
            pause = retry_after_seconds(response.headers) or RETRY_SECONDS
            raise _NotFetchedError(f"status {response.status}", may_pass=response.status in AGAIN, pause=pause)
        told = clean_name(response.headers.get_filename() or "")
        name = download_name(upload_name(self._path), Path(told).suffix) if Path(told).suffix else told
        done = 0
        with self._remote.outputs.writing(self._path, name) as draft, draft.open("xb") as file:
            for piece in _pieces(response):
                done += file.write(piece)
                share = _CONVERT_SHARE + (1 - _CONVERT_SHARE) * done / max(size, 1)
                self._bar.update(self._path.name, "downloading", share)
            if done != size:
                raise _NotFetchedError("it did not arrive completely")
        return self._remote.outputs.path(name)


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read(PIECE_BYTES):
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise _NotFetchedError(str(error) or type(error).__name__) from None


def situation_of(record: Mapping[str, Any]) -> Situation:
    """Return what happens to a job; `waiting` if a newer server says it in words that are unknown here."""
    progress = record.get("progress")
    told = progress if isinstance(progress, dict) else {}
    try:
        return msgspec.convert((told.get("stage"), told.get("share")), Situation)
    except msgspec.ValidationError:
        return Situation("waiting")


def _outcome(path: Path, output: Path, record: Mapping[str, Any]) -> FileOutcome:
    report = record.get("truncationReport")
    return FileOutcome(
        file=str(path),
        success=True,
        output=str(output),
        job_id=record["jobId"],
        feature_count=record.get("featureCount"),
        geometry_type=record.get("geometryType"),
        output_size_bytes=record.get("outputSizeBytes"),
        warnings=tuple(record.get("warnings", ())),
        truncation_report=msgspec.convert(report, Report) if report is not None else None,
    )
