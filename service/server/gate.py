"""Refuses uploads before they are parsed if the service is full.

Theory of operation. At ten times the rate that the converters can serve, nine of ten requests are refused, and each
refusal takes processor time from conversions. The gate therefore responds where asyncio delivers the bytes: it finds
the key in the header, knows the account from earlier requests, and has the response prepared. It starts no task and
reads no body. A small body is discarded as it arrives, and the response follows it, so that the connection stays open.
A longer one would take too long, and one that the client sends only when asked may never come: the response then ends
the connection.

A place is promised to an accepted request in the same step, so no other request can take it in between.

Requests in any but the simplest form are left to the parser, and their errors to the application.
"""

import re
import time
from typing import NamedTuple

import structlog

from service.accounts.keys import Authenticator
from service.http.unserved import overloaded
from service.ids import tracking_id
from service.jobs.promises import FULL, Promise, Promises
from service.telemetry import events

AWAITED_BYTES = 64 * 1024
"""The longest body that a refusal awaits."""
LOG_SECONDS = 1.0
_PLAIN = re.compile(
    rb"POST /[!-~]* HTTP/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}:[\t\x20-\x7e\x80-\xff]*\r\n){1,64}\r\n"
)
_FIELDS = re.compile(
    rb"\r\n(connection|content-length|expect|transfer-encoding|x-api-key|x-geomill-identity|x-request-id):"
    rb"[ \t]*([^\r]*)",
    re.IGNORECASE,
)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = structlog.get_logger()


class Refusal(NamedTuple):
    """The response to a refused request, and the length of the request that it follows; None ends the connection."""

    answer: bytes
    request_bytes: int | None


class Gate:
    """Promises places to uploads by their headers, or refuses them."""

    def __init__(self, authenticator: Authenticator, promises: Promises) -> None:
        self._authenticator = authenticator
        self._promises = promises
        self._refused = 0
        self._told_at = 0.0

    def look(self, data: bytes) -> Refusal | Promise | None:
        """Check the request at the start of `data`: return its promise or refusal; None leaves it to the parser."""
        plain = _PLAIN.match(data)
        if plain is None:
            return None
        found = _FIELDS.findall(plain[0])
        fields = {name.lower(): value.rstrip() for name, value in found}
        length = fields.get(b"content-length", b"0")
        if len(fields) < len(found) or not _LENGTH.fullmatch(length):
            return None
        promise = self._promise(fields)
        if promise is not None:
            return promise
        self._tell()
        keeps = int(length) <= AWAITED_BYTES and _lives_on(fields)
        answer = overloaded(FULL, self._promises.retry_after(), _request_id(fields), closing=not keeps)
        return Refusal(answer, plain.end() + int(length) if keeps else None)

    def _promise(self, fields: dict[bytes, bytes]) -> Promise | None:
        key = fields.get(b"x-api-key")
        if key is not None and b"x-geomill-identity" not in fields:
            caller = self._authenticator.recall(key.decode("latin-1"))
            if caller is not None:
                return self._promises.seek(caller.account_id)
        return self._promises.seek_visit()

    def _tell(self) -> None:
        """Log the number of refusals once a second: one line per refusal would cost more than the refusal."""
        self._refused += 1
        now = time.monotonic()
        if now - self._told_at >= LOG_SECONDS:
            _log.warning(events.REQUESTS_SHED, refused=self._refused, depth=self._promises.depth)
            self._refused, self._told_at = 0, now


def _lives_on(fields: dict[bytes, bytes]) -> bool:
    """Whether the connection can be reused after a body of the declared length."""
    if b"transfer-encoding" in fields or b"expect" in fields:
        return False
    return b"close" not in fields.get(b"connection", b"").lower()


def _request_id(fields: dict[bytes, bytes]) -> str:
    given = fields.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return tracking_id()
