"""Connections end when their clients close them.

Hypercorn notices that a client has gone, and then waits for the connection's keep-alive time to pass before it closes
its own end. Clients that open a connection for each request, as curl does, would so leave hundreds of dead ones behind.
"""

from hypercorn.asyncio import run as _hypercorn
from hypercorn.asyncio.tcp_server import TCPServer


class PromptServer(TCPServer):
    """One connection, whose keep-alive time ends with what its client sends."""

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()


def close_when_clients_do() -> None:
    """Make Hypercorn serve with this; it has neither a setting nor a hook for it."""
    _hypercorn.TCPServer = PromptServer  # type: ignore[attr-defined]  # imported there, exported elsewhere
