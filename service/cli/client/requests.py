"""The requests of one conversion: sent again while the server is full or away, until another thread ends them."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from service.cli.client.http import HttpExchange, Reply, retry_after_seconds
from service.cli.client.reporting import INTERRUPTED
from service.cli.command import CommandError

PATIENCE_SECONDS = 600.0
"""How long a request is repeated while the server is full or cannot be reached."""
RETRY_SECONDS = 2.0
AGAIN: Final = frozenset({408, 409, 429, 502, 503, 504})
"""Statuses that another try may change."""


class ServerAwayError(CommandError):
    """The server was full, or could not be reached, for longer than anybody waits."""


class Requests:
    """Sends one request at a time. Blocks; `end` and `break_off` are for another thread."""

    def __init__(self, api: str, headers: Mapping[str, str], pauses: Callable[[str], None]) -> None:
        """Make requests to `api` with these headers; `pauses` is told before each wait for the server what is wrong."""
        self._api = api
        self._headers = headers
        self._pauses = pauses
        self._exchange: HttpExchange | None = None
        self._ended = threading.Event()

    def record(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        pieces: Callable[[], Iterator[bytes]] | None = None,
        refused: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Send a request until the server responds with a job's record; call `refused` if it certainly had no effect.

        Raises:
            ServerAwayError: it has not done so for too long.
            CommandError: the server refuses the request, or is none; or the requests were ended.
        """
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self._exchange_with(url) as exchange:
                    reply = Reply(exchange.send(method, {**self._headers, **(headers or {})}, pieces and pieces()))
            except (OSError, http.client.HTTPException) as error:
                pause, problem = RETRY_SECONDS, f"{self._api} cannot be reached ({str(error) or type(error).__name__})."
                if is_wrong_address(error):
                    raise CommandError(f"{problem} Check --url.") from None
            else:
                if reply.is_job:
                    return reply.body
                if reply.is_refusal:
                    refused()
                pause, problem = retry_after_seconds(reply.headers) or RETRY_SECONDS, self._problem(reply)
                if reply.status not in AGAIN:
                    raise CommandError(problem)
            if time.monotonic() + pause > give_up_at:
                raise ServerAwayError(problem)
            self.pause(pause, problem)

    @contextmanager
    def fetched(self, url: str) -> Iterator[http.client.HTTPResponse]:
        """Send one GET request without the headers, and yield the response.

        Raises:
            OSError, HTTPException: the connection failed.
            CommandError: the requests were ended.
        """
        with self._exchange_with(url) as exchange, exchange.send("GET", {}) as response:
            yield response

    def pause(self, seconds: float, problem: str) -> None:
        """Wait, because of a problem that may pass.

        Raises:
            CommandError: the requests were ended.
        """
        self._pauses(problem)
        if self._ended.wait(seconds):
            raise CommandError(INTERRUPTED)

    def end(self) -> None:
        """Let no other request begin."""
        self._ended.set()

    def break_off(self) -> None:
        """Let the request fail that is under way, if there is one."""
        if self._exchange is not None:
            self._exchange.break_off()

    def _problem(self, reply: Reply) -> str:
        if reply.status < http.client.BAD_REQUEST:
            return f"{self._api} does not respond like Geomill ({reply.what}). Check --url."
        return reply.problem

    @contextmanager
    def _exchange_with(self, url: str) -> Iterator[HttpExchange]:
        self._exchange = exchange = HttpExchange(url)
        if self._ended.is_set():  # only now: `break_off` breaks off what it sees
            raise CommandError(INTERRUPTED)
        try:
            yield exchange
        finally:
            exchange.close()


def is_wrong_address(error: Exception) -> bool:
    """Whether no repetition helps, as opposed to a server or network that is away for a while."""
    no_such_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    speaks_no_tls = isinstance(error, ssl.SSLError) and getattr(error, "reason", "") == "WRONG_VERSION_NUMBER"
    return no_such_host or speaks_no_tls or isinstance(error, ssl.SSLCertVerificationError)
