"""Serves an application on a listening socket until shutdown."""

import asyncio
import heapq
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import structlog
from hypercorn.asyncio.lifespan import Lifespan
from starlette.types import ASGIApp

from service.server.connection import LATELY_SECONDS, ClientConnection
from service.server.gate import Gate
from service.server.listener import Door
from service.server.site import ListenerState, ServerLimits
from service.siblings import Siblings, no_siblings
from service.telemetry import events

_log = structlog.get_logger()
_SWEEP_SECONDS = 1.0
"""How often connections are checked for idleness: a timer for each would cost a tenth of a refusal."""
_MOMENT_SECONDS = 0.02
"""How long a request that was sent before the service stops may be on its way."""
_LEAST_PARTING_SECONDS = 0.5
_BETWEEN_ROOMS_SECONDS = 0.1
_ROOM_SHARE = 16
"""Room is made for a share of the connections at once, and not again for a moment: finding it means looking at all."""
LAST_WORDS_SECONDS = 2.0
"""How long responses to clients whose jobs were ended may take; after twice that time connections are closed."""


class Server:
    """The connections of one listening socket, from its door to their ends."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        limits: ServerLimits,
        *,
        gate: Gate | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self.site = ListenerState(application, limits, gate)
        self.connections: set[ClientConnection] = set()
        self.door = Door(listening, limits.max_connections, self._accept, self._make_room, siblings or no_siblings())
        self._makes_room_from = 0.0
        self._has_closed = asyncio.Event()
        self._between_sweeps = min(_SWEEP_SECONDS, limits.keep_alive_seconds / 8)
        self._sweeping: asyncio.TimerHandle | None = None

    def welcome(self, connection: ClientConnection) -> None:
        """Start a connection."""
        self.connections.add(connection)
        if self._sweeping is None:
            self._sweep_later()
        connection.start()

    def forget(self, connection: ClientConnection) -> None:
        """Note that a connection is closed."""
        self.connections.discard(connection)
        self._has_closed.set()
        self.door.note_closed(too_many=connection.is_one_too_many)

    async def stop(self, seconds: float, ending: anyio.Event | None = None) -> None:
        """Accept no more connections; close idle ones at once, the others after their responses, within `seconds`.

        Clients that have just connected, or sent a part of a request's header, have `LAST_WORDS_SECONDS` of these to
        send the rest. Those that are still sending data that is discarded have as long to read their responses, and at
        least a moment after `seconds`. Once `ending` is set, uploads that are still arriving are refused.
        """
        end_at = self.site.loop.time() + seconds
        self.door.close()
        self.site.is_stopping = True
        await self._receive_what_comes(min(seconds, LAST_WORDS_SECONDS))
        for connection in tuple(self.connections):
            connection.close_if_resting()
        giving_up = self.site.loop.create_task(self._give_up_uploads(ending or anyio.Event()))
        try:
            if self.site.tasks:
                await asyncio.wait(self.site.tasks, timeout=max(0.0, end_at - self.site.loop.time()))
        finally:
            giving_up.cancel()
        with suppress(TimeoutError):
            left = end_at - self.site.loop.time()
            async with asyncio.timeout(min(LAST_WORDS_SECONDS, max(_LEAST_PARTING_SECONDS, left))):
                while any(each.is_parting for each in self.connections):
                    self._has_closed.clear()
                    await self._has_closed.wait()

    async def _give_up_uploads(self, ending: anyio.Event) -> None:
        """Refuse the uploads that are still arriving when it is too late for their conversions."""
        await ending.wait()
        for connection in self.connections:
            connection.give_up_body()

    async def _receive_what_comes(self, seconds: float) -> None:
        """Let requests begin that have arrived or are likely to be on their way: nobody else would answer them."""
        for _ in range(round(seconds / _MOMENT_SECONDS) if self.connections else 0):
            await asyncio.sleep(_MOMENT_SECONDS)
            if not any(each.expects_request for each in self.connections):
                return

    def cut_off(self) -> None:
        """End everything that is still in progress."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.door.close()
        for task in tuple(self.site.tasks):
            task.cancel()
        for connection in tuple(self.connections):
            connection.close()

    def _accept(self, client: socket.socket, address: object, too_many: bool) -> None:  # noqa: FBT001 -- as `Door` calls it
        self.welcome(ClientConnection(self.site, client, address, self.forget, is_one_too_many=too_many))

    def _make_room(self) -> bool:
        """Close the connections whose clients have been waited for longest; return whether there are any.

        Whoever opens connections and does not use them, or only slowly, would otherwise keep all others away. A client
        has at least the time that a busy one needs for its next step.
        """
        now = self.site.loop.time()
        if now < self._makes_room_from:
            return False
        self._makes_room_from = now + _BETWEEN_ROOMS_SECONDS
        before = now - LATELY_SECONDS
        waited_for = [each for each in self.connections if each.waits_since < before and not each.is_one_too_many]
        share = -(-len(self.connections) // _ROOM_SHARE)
        replaced = heapq.nsmallest(share, waited_for, key=lambda each: each.waits_since)
        for connection in replaced:
            connection.make_way()
        if replaced:
            _log.warning(events.CONNECTIONS_REPLACED, connections=len(replaced))
        return bool(replaced)

    def _sweep_later(self) -> None:
        self._sweeping = self.site.loop.call_later(self._between_sweeps, self._sweep) if self.connections else None

    def _sweep(self) -> None:
        """End connections that have been idle for too long."""
        self._sweep_later()  # whatever becomes of this one
        now = self.site.loop.time()
        for connection in [each for each in self.connections if each.due <= now]:
            connection.end_idleness()


async def serve(
    application: ASGIApp,
    listening: socket.socket,
    limits: ServerLimits,
    closing: anyio.Event,
    *,
    ending: anyio.Event | None = None,
    gate: Gate | None = None,
    siblings: Siblings | None = None,
) -> None:
    """Serve `application` until `closing` is set, then let open requests finish within the limits.

    Requests whose bodies are still arriving when `ending` is set are refused.
    With a `gate`, uploads are refused before they are parsed if the service is full. `siblings` are the other processes
    that accept connections from `listening`.
    """
    server = Server(application, listening, limits, gate=gate, siblings=siblings)
    async with _lifespan(server.site):
        server.door.open()
        try:
            await closing.wait()
            await server.stop(limits.drain_seconds + 2 * LAST_WORDS_SECONDS, ending)
        finally:
            server.cut_off()


@asynccontextmanager
async def _lifespan(site: ListenerState) -> AsyncIterator[None]:
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
