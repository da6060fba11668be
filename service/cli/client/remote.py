"""Converts through a server: uploads, waits for the job, downloads the result; an interrupted job is cancelled."""

import http.client
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec

from service.cli.client.bundling import upload_name, write_upload
from service.cli.client.http import PIECE_BYTES, Exchange, Form, Reply
from service.cli.client.outputs import Outputs
from service.cli.client.reporting import FileOutcome, ProgressBar
from service.cli.command import CommandError
from service.dataloss.rules import Report
from service.jobs.lifecycle import Situation
from service.storage.names import clean_name

WAIT_SECONDS, SHOWN_WAIT_SECONDS = 30, 1
"""How long the server may wait for the end of a job; less if somebody sees a bar move."""
PATIENCE_SECONDS = 600.0
"""How long a request is repeated while the server is full or cannot be reached."""
CANCEL_SECONDS = 5.0
"""How long an interrupted conversion waits for the response to its upload, and then for that to its cancellation."""
RETRY_SECONDS = 2.0
_AGAIN = frozenset({409, 429, 502, 503, 504})
_OPEN = frozenset({"Pending", "Processing"})
GONE = "The result is no longer kept. Convert the file again."
_UPLOAD_SHARE, _CONVERT_SHARE = 0.4, 0.8


class _NotFetchedError(Exception):
    """A link did not lead to the whole result."""

    def __init__(self, message: str, *, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class Remote:
    """Conversions through one server; `fields` are the form fields of each of them."""

    def __init__(self, url: str, key: str, fields: Mapping[str, str], outputs: Outputs) -> None:
        self.api = f"{url.rstrip('/')}/api/geo/convert"
        self.headers = {"X-API-Key": key}
        self.fields = fields
        self.outputs = outputs

    async def convert(self, path: Path, bar: ProgressBar) -> FileOutcome:
        """Convert one file.

        Raises:
            CommandError: the server refuses the request, or the result may not be written.
            OSError: the file cannot be read, or its result not be written.
        """
        call = _Call(self, path, bar)
        try:
            return await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            call.abort()
            with anyio.move_on_after(2 * CANCEL_SECONDS, shield=True):
                await anyio.to_thread.run_sync(call.cancel_job, abandon_on_cancel=True)
            raise


class _Call:
    """The requests for one file. Blocks; `abort` is for another thread."""

    def __init__(self, remote: Remote, path: Path, bar: ProgressBar) -> None:
        self._remote = remote
        self._path = path
        self._bar = bar
        self._exchange: Exchange | None = None
        self._job_id: str | None = None
        self._is_sent = False
        self._aborted = threading.Event()
        self._answered = threading.Event()

    def run(self) -> FileOutcome:
        try:
            record = self._upload()
            self._job_id = record["jobId"]
        finally:
            self._answered.set()
        while record["status"] in _OPEN or "originalFileName" not in record:
            self._bar.convert(self._path.name, situation_of(record), _UPLOAD_SHARE, _CONVERT_SHARE)
            record = self._status(record["jobId"], SHOWN_WAIT_SECONDS if self._bar.shows else WAIT_SECONDS)
        self._job_id = None  # it has ended
        if record["status"] != "Completed" or "downloadUrl" not in record:
            error = record.get("errorMessage") or GONE
            return FileOutcome(file=str(self._path), success=False, error=error, job_id=record["jobId"])
        output = self._download(record)
        return _outcome(self._path, output, record)

    def abort(self) -> None:
        """Begin no other request, and break off the current one unless its response will name a job."""
        self._aborted.set()
        if self._exchange is not None and (self._answered.is_set() or not self._is_sent):
            self._exchange.close()

    def cancel_job(self) -> None:
        """Cancel the job, if there is one; wait for the response to an upload that the server may have read."""
        if self._is_sent:
            self._answered.wait(CANCEL_SECONDS)
        if self._job_id is not None:
            with suppress(OSError, http.client.HTTPException):
                exchange = Exchange(f"{self._remote.api}/jobs/{self._job_id}", CANCEL_SECONDS)
                exchange.send("DELETE", self._remote.headers)
                exchange.close()

    def _upload(self) -> dict[str, Any]:
        name = upload_name(self._path)
        if name == self._path.name:
            return self._send(name, self._path)
        with tempfile.TemporaryDirectory(prefix="geomill-") as directory:
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

        return self._repeated("POST", f"{self._remote.api}/file", headers, pieces).body

    def _status(self, job_id: str, wait_seconds: int) -> dict[str, Any]:
        return self._repeated("GET", f"{self._remote.api}/jobs/{job_id}/status?wait={wait_seconds}").body

    def _repeated(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        pieces: Callable[[], Iterator[bytes]] | None = None,
    ) -> Reply:
        """Send a request until it is answered, as long as the server is full or cannot be reached.

        Raises:
            CommandError: the server refuses the request, is none, or cannot be reached for too long.
        """
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not self._aborted.is_set():
            pause, problem = RETRY_SECONDS, ""
            self._exchange = Exchange(url)
            try:
                reply = Reply(
                    self._exchange.send(method, {**self._remote.headers, **(headers or {})}, pieces and pieces())
                )
            except (OSError, http.client.HTTPException) as error:
                problem = f"{self._remote.api} cannot be reached ({str(error) or type(error).__name__})."
                if is_wrong_address(error):
                    raise CommandError(f"{problem} Check --url.") from None
            else:
                if reply.is_job:
                    return reply
                if reply.status < http.client.BAD_REQUEST:
                    raise CommandError(f"{self._remote.api} does not respond like Geomill ({reply.what}). Check --url.")
                problem = reply.problem
                if reply.status not in _AGAIN:
                    raise CommandError(problem)
                pause = reply.retry_after_seconds or RETRY_SECONDS
            finally:
                self._exchange.close()
            if time.monotonic() + pause > give_up_at:
                raise CommandError(problem)
            self._bar.update(self._path.name, "waiting for the server")
            self._aborted.wait(pause)
        raise CommandError("The conversion was interrupted.")

    def _download(self, record: Mapping[str, Any]) -> Path:
        """Fetch the result by its link; one that breaks or has expired is fetched once more by a new link.

        Raises:
            CommandError: the result cannot be fetched or written.
        """
        give_up_at, pause = time.monotonic() + PATIENCE_SECONDS, 0.0
        while True:
            try:
                return self._fetch(record)
            except _NotFetchedError as failure:
                is_over = pause > 0 and not failure.may_pass
                if is_over or time.monotonic() + pause > give_up_at or self._aborted.wait(pause):
                    raise CommandError(
                        f"The result of the job {record['jobId']} cannot be fetched ({failure}). Try again."
                    ) from None
            pause = RETRY_SECONDS
            record = self._status(record["jobId"], 0)
            if "downloadUrl" not in record:
                raise CommandError(GONE)

    def _fetch(self, record: Mapping[str, Any]) -> Path:
        """Fetch the result by its link, without the key."""
        self._exchange = exchange = Exchange(record["downloadUrl"])
        try:
            try:
                response = exchange.send("GET", {})
            except (OSError, http.client.HTTPException) as error:
                raise _NotFetchedError(str(error) or type(error).__name__) from None
            with response:
                return self._receive(response, int(record["outputSizeBytes"]))
        finally:
            exchange.close()

    def _receive(self, response: http.client.HTTPResponse, size: int) -> Path:
        if response.status != http.client.OK:
            raise _NotFetchedError(f"status {response.status}", may_pass=response.status in _AGAIN)
        name = clean_name(response.headers.get_filename() or "result")
        done = 0
        with self._remote.outputs.writing(name) as draft, draft.open("xb") as file:
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


def is_wrong_address(error: Exception) -> bool:
    """Whether no repetition helps, as opposed to a server or network that is away for a while."""
    no_such_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    speaks_no_tls = isinstance(error, ssl.SSLError) and getattr(error, "reason", "") == "WRONG_VERSION_NUMBER"
    return no_such_host or speaks_no_tls or isinstance(error, ssl.SSLCertVerificationError)


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
