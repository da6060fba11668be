"""Serves an application on a listening socket until shutdown."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp

from service.server.connection import Connection
from service.server.gate import Gate
from service.server.http2 import STREAMS_AT_ONCE
from service.server.listener import Door
from service.siblings import Siblings, no_siblings

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, LifespanState

KEEP_ALIVE_SECONDS = 30.0
_SWEEP_SECONDS = 1.0
"""How often connections are checked for idleness: a timer for each would cost a tenth of a refusal."""
_MOMENT_SECONDS = 0.02
"""How long a request that was sent before the service stops may be on its way."""
LAST_WORDS_SECONDS = 2.0
"""How long responses to clients whose jobs were ended may take; after twice that time connections are closed."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on what clients may send, and how long shutdown waits for requests in progress."""

    max_header_bytes: int = 16_384
    max_connections: int = 4096
    http2: bool = False
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    drain_seconds: float = 5.0


class Site:
    """The state shared by all connections of one listening socket."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        limits: ServerLimits,
        *,
        gate: Gate | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self.application = application
        self.gate = gate
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.is_stopping = False
        self.door = Door(listening, limits.max_connections, self.welcome, siblings or no_siblings())
        self.state: LifespanState = {}
        self.config = _config(limits)
        self.context = WorkerContext(None)
        self.framework = wrap_app(cast("ASGIFramework", application), 0, "asgi")
        self._headers: list[tuple[bytes, bytes]] = []
        self._headers_of = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_closed = asyncio.Event()
        self._between_sweeps = min(_SWEEP_SECONDS, limits.keep_alive_seconds / 8)
        self._sweeping = self.loop.call_later(self._between_sweeps, self._sweep)

    def welcome(self, client: socket.socket, address: object, too_many: bool) -> None:  # noqa: FBT001 -- as `Door` calls it
        """Start a connection."""
        Connection(self, client, address, too_many=too_many).start()

    def forget(self, connection: Connection, *, too_many: bool) -> None:
        """Note that a connection is closed."""
        self.connections.discard(connection)
        self._has_closed.set()
        self.door.note_closed(too_many=too_many)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of a connection, which ends with the connection or with the server."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def response_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response headers that the server adds, which change once a second."""
        now = int(time.time())
        if now != self._headers_of:
            self._headers, self._headers_of = self.config.response_headers("h11"), now
        return self._headers

    async def stop(self, seconds: float) -> None:
        """Accept no more connections; close idle ones at once, the others after their responses, within `seconds`.

        Clients that have just connected, or sent a part of a request's header, have `LAST_WORDS_SECONDS` of these to
        send the rest. Those that are still sending data that is discarded have as long after `seconds` to read their
        responses.
        """
        end_at = self.loop.time() + seconds
        self.door.close()
        self.is_stopping = True
        await self.context.terminated.set()
        await self._receive_what_comes(min(seconds, LAST_WORDS_SECONDS))
        for connection in tuple(self.connections):
            connection.close_if_resting()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=max(0.0, end_at - self.loop.time()))
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                while any(each.is_parting for each in self.connections):
                    self._has_closed.clear()
                    await self._has_closed.wait()

    async def _receive_what_comes(self, seconds: float) -> None:
        """Let requests begin that have arrived or are likely to be on their way: nobody else would answer them."""
        for _ in range(round(seconds / _MOMENT_SECONDS) if self.connections else 0):
            await asyncio.sleep(_MOMENT_SECONDS)
            if not any(each.expects_request for each in self.connections):
                return

    def cut_off(self) -> None:
        """End everything that is still in progress."""
        self._sweeping.cancel()
        self.door.close()
        for task in tuple(self._tasks):
            task.cancel()
        for connection in tuple(self.connections):
            connection.close()

    def _sweep(self) -> None:
        """End connections that have been idle for too long."""
        self._sweeping = self.loop.call_later(self._between_sweeps, self._sweep)  # whatever becomes of this one
        now = self.loop.time()
        for connection in [each for each in self.connections if each.due <= now]:
            connection.end_idleness()


async def serve(
    application: ASGIApp,
    listening: socket.socket,
    limits: ServerLimits,
    closing: anyio.Event,
    *,
    gate: Gate | None = None,
    siblings: Siblings | None = None,
) -> None:
    """Serve `application` until `closing` is set, then let open requests finish within the limits.

    With a `gate`, uploads are refused before they are parsed if the service is full. `siblings` are the other processes
    that accept connections from `listening`.
    """
    site = Site(application, listening, limits, gate=gate, siblings=siblings)
    async with _lifespan(site):
        site.door.open()
        try:
            await closing.wait()
            await site.stop(limits.drain_seconds + 2 * LAST_WORDS_SECONDS)
        finally:
            site.cut_off()


@asynccontextmanager
async def _lifespan(site: Site) -> AsyncIterator[None]:
    """Run the lifespan of the application."""
    lifespan = Lifespan(site.framework, site.config, site.loop, site.state)
    life = site.loop.create_task(lifespan.handle_lifespan())
    try:
        await lifespan.wait_for_startup()
        if life.done():
            await life  # raises the reason for the failure
        yield
        await lifespan.wait_for_shutdown()
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


def _config(limits: ServerLimits) -> Config:
    config = Config()
    config.keep_alive_timeout = limits.keep_alive_seconds
    config.h2_max_header_list_size = limits.max_header_bytes
    config.h2_max_concurrent_streams = STREAMS_AT_ONCE
    config.include_server_header = False
    config.accesslog = None  # the application logs one line per request
    config.loglevel = "WARNING"
    return config
