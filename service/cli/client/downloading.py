"""The download of one result: fetched once more, by a new link, if a link breaks or has expired."""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from service.cli.client import requests
from service.cli.client.bundling import upload_name
from service.cli.client.http import PIECE_BYTES, retry_after_seconds
from service.cli.client.outputs import Outputs
from service.cli.client.requests import AGAIN, RETRY_SECONDS, Requests
from service.cli.command import CommandError
from service.storage.names import clean_name, download_name

GONE = "The result is no longer kept. Convert the file again, with another --idempotency-key if you gave one."


class _NotFetchedError(Exception):
    """A link did not lead to the whole result."""

    def __init__(self, message: str, *, may_pass: bool = True, pause: float = RETRY_SECONDS) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.pause = pause


class ResultDownload:
    """The download of the result of `path`. Blocks; `on_share` is called with the share that has arrived."""

    def __init__(self, path: Path, requests: Requests, outputs: Outputs, on_share: Callable[[float], None]) -> None:
        self._path = path
        self._requests = requests
        self._outputs = outputs
        self._on_share = on_share

    def receive(self, record: Mapping[str, Any], renew: Callable[[], Mapping[str, Any]], kept: str) -> Path:
        """Write the result of a job and return where it is; `renew` returns the record of the job with a new link.

        Raises:
            CommandError: the result cannot be fetched or written; the message says with `kept` where it is.
        """
        give_up_at, is_first = time.monotonic() + requests.PATIENCE_SECONDS, True
        while True:
            try:
                return self._fetch(record)
            except _NotFetchedError as failure:
                may_pass = is_first or failure.may_pass
                problem = f"The result cannot be fetched ({failure})."
                if not may_pass or time.monotonic() + failure.pause > give_up_at:
                    raise CommandError(f"{problem} {kept}") from None
                self._requests.pause(0 if is_first else failure.pause, problem)
            except CommandError as error:
                raise CommandError(f"{error} {kept}") from None
            is_first = False
            record = renew()
            if "downloadUrl" not in record:
                raise CommandError(GONE)

    def _fetch(self, record: Mapping[str, Any]) -> Path:
        """Fetch the result by its link, without the key."""
        try:
            with self._requests.fetched(record["downloadUrl"]) as response:
                return self._write(response, int(record["outputSizeBytes"]))
        except (OSError, http.client.HTTPException) as error:
            raise _NotFetchedError(str(error) or type(error).__name__) from None

    def _write(self, response: http.client.HTTPResponse, size: int) -> Path:
        if response.status != http.client.OK:
            pause = retry_after_seconds(response.headers) or RETRY_SECONDS
            raise _NotFetchedError(f"status {response.status}", may_pass=response.status in AGAIN, pause=pause)
        told = clean_name(response.headers.get_filename() or "")
        name = download_name(upload_name(self._path), Path(told).suffix) if Path(told).suffix else told
        done = 0
        with self._outputs.writing(self._path, name) as draft, draft.open("xb") as file:
            for piece in _pieces(response):
                done += file.write(piece)
                self._on_share(done / max(size, 1))
            if done != size:
                raise _NotFetchedError("it did not arrive completely")
        return self._outputs.path(name)


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read(PIECE_BYTES):
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise _NotFetchedError(str(error) or type(error).__name__) from None
