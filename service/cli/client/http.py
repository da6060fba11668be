"""Requests of the command line to a server, over connections of the standard library. Everything here blocks."""

import http.client
import json
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from service.cli.command import InvalidCommandError
from service.telemetry.build import VERSION

TIMEOUT_SECONDS = 120.0
CONNECT_SECONDS = 10.0
"""How long a server may take to accept a connection; nothing can break that off, not even Ctrl-C."""
_MOST_DIGITS = 9
_UNCLEAR = frozenset({http.client.REQUEST_TIMEOUT, http.client.CONFLICT})
"""A proxy has not waited for the response; or the first request with the same idempotency key is still running."""
PIECE_BYTES = 256 * 1024


class Reply:
    """A response that has arrived: its status, headers and JSON body."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        try:
            body = json.loads(response.read() or b"{}")
        except ValueError:
            body = None
        self.body: dict[str, Any] = body if isinstance(body, dict) else {}

    @property
    def is_job(self) -> bool:
        """Whether it is the record of a job."""
        return self.status < http.client.MULTIPLE_CHOICES and {"jobId", "status"} <= self.body.keys()

    @property
    def is_refusal(self) -> bool:
        """Whether the request surely had no effect; a gateway, or a service in trouble, may not know its effect."""
        return self.status < http.client.INTERNAL_SERVER_ERROR and self.status not in _UNCLEAR and not self.is_job

    @property
    def what(self) -> str:
        """A description that helps to find out why the response is not the record of a job."""
        target = self.headers.get("Location") if self.status >= http.client.MULTIPLE_CHOICES else None
        return f"status {self.status}" + (f", a redirect to {target}" if target else "")

    @property
    def problem(self) -> str:
        """What is wrong, in the words of the server."""
        return str(self.body.get("error") or f"The server responded with status {self.status}.")


class HttpExchange:
    """A connection for one request, which another thread may break off."""

    def __init__(self, url: str, timeout_seconds: float | None = None) -> None:
        """Prepare it; the server may stay silent for so long, or for `TIMEOUT_SECONDS`."""
        self._parts = split_url(url)
        self._timeout_seconds = timeout_seconds or TIMEOUT_SECONDS
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        seconds = min(CONNECT_SECONDS, self._timeout_seconds)
        self._connection = kind(self._parts.hostname or "", self._parts.port, timeout=seconds)
        self._socket: socket.socket | None = None
        self._is_broken_off = False

    def send(
        self, method: str, headers: Mapping[str, str], body: Iterable[bytes] | None = None
    ) -> http.client.HTTPResponse:
        """Send the request and return the response, whose body is still to be read.

        Raises:
            OSError, HTTPException: the connection failed.
        """
        target = self._parts.path or "/"
        if self._parts.query:
            target += f"?{self._parts.query}"
        self._connect()
        try:
            self._connection.request(method, target, body, {"User-Agent": f"geomill/{VERSION}", **headers})
        except (BrokenPipeError, ConnectionResetError):
            # The server has refused the rest of the body; its response says why.
            return self._connection.getresponse()
        return self._connection.getresponse()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def break_off(self) -> None:
        """Make the thread that uses the connection fail at once, whatever it waits for; closing does not wake it."""
        self._is_broken_off = True
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> None:
        self._connection.connect()
        self._socket = self._connection.sock
        self._socket.settimeout(self._timeout_seconds)
        if self._is_broken_off:
            raise ConnectionAbortedError("interrupted")


class MultipartForm:
    """A form with text fields and one file, which is read from disk piece by piece."""

    def __init__(self, fields: Mapping[str, str], file_name: str, content: Path) -> None:
        boundary = secrets.token_hex(16)
        # The encoding of names that browsers use (HTML, multipart form data).
        name = file_name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields
        ]
        file = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._content = content
        self._head = "".join([*parts, file]).encode(errors="replace")  # arguments need not be text
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.size_bytes = len(self._head) + content.stat().st_size + len(self._tail)

    def pieces(self) -> Iterator[bytes]:
        """Iterate over the body."""
        yield self._head
        with self._content.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
        yield self._tail


def retry_after_seconds(headers: Message) -> int:
    """Return how long to wait before a repetition; 0 if the headers do not say so in seconds."""
    told = headers.get("Retry-After", "")
    return int(told) if told.isascii() and told.isdigit() and len(told) <= _MOST_DIGITS else 0


def split_url(url: str) -> SplitResult:
    """Parse the address of a server.

    Raises:
        InvalidCommandError: it is not one.
    """
    try:
        parts = urlsplit(url)
        is_plain = (
            url.isascii() and url.isprintable() and " " not in url and bool((parts.hostname or "").encode("idna"))
        )
        if is_plain and parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise InvalidCommandError(f"{url} is not the address of a server. It starts with http:// or https://.")
