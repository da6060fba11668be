"""A relay to a server that can go silent: connections stay open, and nothing that is sent on them arrives.

So it is where a host loses its power, a firewall forgets its connections, or a network is parted.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from service.postgres_embedded.home import SOCKET_NAME

CHUNK = 65536
Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Relay:
    """Copies what is sent both ways; to be used from its own event loop."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._relays: dict[asyncio.Task[None], asyncio.Event] = {}
        self._silences_new = False

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._relays)

    def silence(self, *, new: bool, old: bool = True) -> None:
        """Lose whatever is sent from now on: on those connections that are open, and on those that are `new`, too."""
        self._silences_new = new
        for silent in self._relays.values() if old else ():
            silent.set()

    def mend(self) -> None:
        """Let new connections pass; those that went silent stay so."""
        self._silences_new = False

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task, silent = asyncio.current_task(), asyncio.Event()
        assert task is not None
        self._relays[task] = silent
        if self._silences_new:
            silent.set()
        try:
            await self._join(reader, writer, silent)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            del self._relays[task]

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        from_server, to_server = await self._connect()
        up = asyncio.ensure_future(self._pump(reader, to_server, silent))
        down = asyncio.ensure_future(self._pump(from_server, writer, silent))
        try:
            done, _ = await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            if silent.is_set() and up not in done:  # the server may have ended it: the client does not hear of that
                await up
        finally:
            to_server.transport.abort()
            for pump in (up, down):
                pump.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        while chunk := await reader.read(CHUNK):
            if not silent.is_set():
                writer.write(chunk)
                await writer.drain()

    async def close(self) -> None:
        """End every connection."""
        relays = list(self._relays)
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)


@asynccontextmanager
async def relay_to_port(port: int) -> AsyncIterator[tuple[Relay, int]]:
    """Run a relay to a port of the loopback until the end of the block; yields it and its own port."""
    relay = Relay(lambda: asyncio.open_connection("127.0.0.1", port))
    listener = await asyncio.start_server(relay.relay, "127.0.0.1", 0)
    try:
        yield relay, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await relay.close()


@asynccontextmanager
async def relayed_database(dsn: str, directory: Path) -> AsyncIterator[tuple[Relay, str]]:
    """Run a relay to a server on a socket, with its own socket in `directory`; yields it and the address through it."""
    socket = Path(parse_qs(urlsplit(dsn).query)["host"][0]) / SOCKET_NAME
    relay = Relay(lambda: asyncio.open_unix_connection(socket))
    listener = await asyncio.start_unix_server(relay.relay, directory / SOCKET_NAME)
    try:
        yield relay, dsn.replace(quote(str(socket.parent), safe=""), quote(str(directory), safe=""))
    finally:
        listener.close()
        await relay.close()
