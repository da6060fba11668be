"""The upload of one file: repeated under one idempotency key until the server names a job."""

import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from service.cli.client.bundling import temporary_space, upload_name, write_upload
from service.cli.client.http import MultipartForm
from service.cli.client.requests import Requests
from service.cli.command import CommandError


class FileUpload:
    """An upload to `api`. Blocks; `may_be_accepted` and `advice` are also for another thread."""

    def __init__(self, api: str, path: Path, requests: Requests, given_key: str | None) -> None:
        """Prepare it, with the idempotency key of the user or with one of its own."""
        self._api = api
        self._path = path
        self._requests = requests
        self._key = given_key or uuid4().hex
        self._is_key_given = given_key is not None
        self._is_sent = False
        self._is_unclear = False

    @property
    def may_be_accepted(self) -> bool:
        """Whether the server has been sent the whole file, and has not refused it."""
        return self._is_unclear or self._is_sent

    @property
    def advice(self) -> str:
        """What to do if the server may have accepted the file, but has not said so."""
        option = f"--idempotency-key {shlex.quote(self._key)}"
        if self._is_key_given:
            again = f"It was sent with {option}: for 24 hours, the same command again charges it only once."
        else:
            again = (
                f"The same command again could convert and charge it twice; to prevent that for 24 hours, convert "
                f"this file alone with {option}."
            )
        return f"The server may have accepted the file; {self._api}/jobs shows whether it has. {again}"

    def send(self, fields: Mapping[str, str], on_share: Callable[[float], None]) -> dict[str, Any]:
        """Send the file with these form fields; return the record of its job. `on_share` gets the share sent.

        Raises:
            CommandError: the server refuses the file or cannot be reached; the message says if it may have the file.
            OSError: the file cannot be read.
        """
        name = upload_name(self._path)
        try:
            if name == self._path.name:
                return self._post(MultipartForm(fields, name, self._path), on_share)
            with temporary_space(), tempfile.TemporaryDirectory(prefix="geomill-") as directory:
                packed = Path(directory) / "upload"
                write_upload(self._path, packed)
                return self._post(MultipartForm(fields, name, packed), on_share)
        except CommandError as error:
            if self.may_be_accepted:
                raise CommandError(f"{error} {self.advice}") from None
            raise

    def _post(self, form: MultipartForm, on_share: Callable[[float], None]) -> dict[str, Any]:
        headers = {
            "Content-Type": form.content_type,
            "Content-Length": str(form.size_bytes),
            "Idempotency-Key": self._key,
            "Prefer": "respond-async",
        }

        def pieces() -> Iterator[bytes]:
            self._is_unclear |= self._is_sent  # nobody has refused what the request before this one sent
            self._is_sent = False
            sent = 0
            for piece in form.pieces():
                sent += len(piece)
                self._is_sent = sent == form.size_bytes  # with the last piece, the server may accept the file
                on_share(sent / form.size_bytes)
                yield piece

        return self._requests.record("POST", f"{self._api}/file", headers, pieces, self._forget)

    def _forget(self) -> None:
        """Note that the server has refused what was sent last."""
        self._is_sent = False
