"""What the connections of one listening socket share: the application, the limits and the tasks of requests."""

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

import msgspec
from hypercorn.config import Config
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp

from service.server.gate import Gate
from service.server.turns import ReadableSockets

if TYPE_CHECKING:  # Hypercorn offers these names to type checkers only
    from hypercorn.typing import ASGIFramework, LifespanState

KEEP_ALIVE_SECONDS = 30.0
REFUSED_SHARE = 0.5
"""The share of the event loop's time for clients that come back after a refusal.

Fifty times the requests that two cores can serve need less.
"""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on what clients may send, and how long shutdown waits for requests in progress."""

    max_header_bytes: int = 16_384
    max_connections: int = 4096
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    drain_seconds: float = 5.0


class ListenerState:
    """The state shared by all connections of one listening socket."""

    def __init__(self, application: ASGIApp, limits: ServerLimits, gate: Gate | None) -> None:
        self.application = application
        self.gate = gate
        self.limits = limits
        self.sockets = ReadableSockets()
        """The sockets of clients."""
        self.refused_sockets = ReadableSockets(REFUSED_SHARE)
        """Those of clients whose last upload was refused by the gate: they make no others wait."""
        self.loop = asyncio.get_running_loop()
        self.is_stopping = False
        """Whether connections end after the response under way."""
        self.state: LifespanState = {}
        self.config = _config()
        self.framework = wrap_app(cast("ASGIFramework", application), 0, "asgi")
        self.tasks: set[asyncio.Task[None]] = set()
        """Those of requests in progress."""
        self._headers: list[tuple[bytes, bytes]] = []
        self._headers_of = 0

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of a connection, which ends with the connection or with the server."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def response_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response headers that the server adds, which change once a second."""
        now = int(time.time())
        if now != self._headers_of:
            self._headers, self._headers_of = self.config.response_headers("h11"), now
        return self._headers


def _config() -> Config:
    config = Config()
    config.include_server_header = False
    config.accesslog = None  # the application logs one line per request
    config.loglevel = "WARNING"
    return config
