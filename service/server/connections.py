"""Connections where Hypercorn's own would not do.

They end when their clients close them. Hypercorn notices that a client has gone, and then waits for the connection's
keep-alive time to pass before it closes its own end. Clients that open a connection for each request, as curl does,
would so leave hundreds of dead ones behind.

And one watch lasts as long as its connection, and looks at a clock. Hypercorn's is ended and made anew with every
request, for which it makes four tasks: a tenth of what a small request costs.
"""

import asyncio
from contextlib import suppress

from hypercorn.asyncio import run as _hypercorn
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData, Updated

from service.server.bodies import Inflow


class PromptServer(TCPServer):
    """One connection, whose keep-alive time ends with what its client sends."""

    _idle_since: float | None = None

    async def run(self) -> None:
        """Serve the connection to its end."""
        self._idle_since = self.loop.time()
        self._inflow = Inflow(self.writer.transport, self.loop)
        await super().run()

    async def protocol_send(self, event: Event) -> None:
        """Take what the protocol says: bytes for the client, or that the connection is idle, busy or over."""
        if isinstance(event, Updated):
            self._idle_since = self.loop.time() if event.idle else None
        else:
            await super().protocol_send(event)

    async def _read_data(self) -> None:
        while piece := await self._inflow.read():
            await self.protocol.handle(RawData(piece))
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    async def _idle_timeout(self) -> None:
        """Close the connection once it has been idle for the keep-alive time, or the server stops while it is."""
        while (patience := self._patience()) > 0 and not self.context.terminated.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.context.terminated.wait(), patience)
        if self._idle_since is not None:  # a busy one is closed with its answer when the server stops
            await asyncio.shield(self._initiate_server_close())

    def _patience(self) -> float:
        """For how many seconds the connection is safe from being closed as idle."""
        since = self.loop.time() if self._idle_since is None else self._idle_since
        return since + self.config.keep_alive_timeout - self.loop.time()


def close_when_clients_do() -> None:
    """Make Hypercorn serve with this; it has neither a setting nor a hook for it."""
    _hypercorn.TCPServer = PromptServer  # type: ignore[attr-defined]  # imported there, exported elsewhere
