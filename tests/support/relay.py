"""Relays to servers, which can go silent, break connections, or do with what is sent whatever a subclass does.

They stand between real processes: nothing of theirs is replaced. Each is used in its own event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from service.postgres_embedded.home import SOCKET_NAME

CHUNK = 65536
Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""From whom what is sent one way is read, and to whom it is written."""
Pump = Coroutine[None, None, None]
Connect = Callable[[], Awaitable[Way]]


class Relay:
    """Copies what is sent both ways until one side closes the connection."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._relays: set[asyncio.Task[None]] = set()
        self.breaks = 0
        """How many of the next connections are closed as they arrive."""

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._relays)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        try:
            if self.breaks:
                self.breaks -= 1
            else:
                await self._join(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._relays.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await self._connect()
        pumps = [asyncio.ensure_future(pump) for pump in self.pumps((reader, to_server), (from_server, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.transport.abort()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """What passes on what the client of one connection sends, and what its server sends."""
        return copy(*up), copy(*down)

    async def close(self) -> None:
        """End every connection."""
        relays = list(self._relays)
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on everything."""
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()


class SilentRelay(Relay):
    """Can go silent: connections stay open, and nothing that is sent on them arrives.

    So it is where a host loses its power, a firewall forgets its connections, or a network is parted.
    """

    def __init__(self, connect: Connect) -> None:
        super().__init__(connect)
        self._speaking = set[asyncio.Event]()
        self._silences_new = False

    def silence(self, *, new: bool, old: bool = True) -> None:
        """Lose whatever is sent from now on: on those connections that are open, and on those that are `new`, too."""
        self._silences_new = new
        while old and self._speaking:
            self._speaking.pop().set()

    def mend(self) -> None:
        """Let new connections pass; those that went silent stay so."""
        self._silences_new = False

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """See `Relay`."""
        silent = asyncio.Event()
        if self._silences_new:
            silent.set()
        else:
            self._speaking.add(silent)
        return self._pass_on(*up, silent), self._tell(*down, silent)

    @staticmethod
    async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        while chunk := await reader.read(CHUNK):
            if not silent.is_set():
                writer.write(chunk)
                await writer.drain()

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        await self._pass_on(reader, writer, silent)
        if silent.is_set():
            await asyncio.Event().wait()  # the server may have ended it: the client does not hear of that


@asynccontextmanager
async def listening(relay: Relay, socket: Path | None = None) -> AsyncIterator[int]:
    """Accept connections until the end of the block, on a socket or on a port of the loopback; yields the port."""
    if socket is not None:
        listener = await asyncio.start_unix_server(relay.serve, socket)
    else:
        listener = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    try:
        yield 0 if socket is not None else listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await relay.close()


@asynccontextmanager
async def relay_to_port(port: int) -> AsyncIterator[tuple[SilentRelay, int]]:
    """Run a relay to a port of the loopback until the end of the block; yields it and its own port."""
    relay = SilentRelay(lambda: asyncio.open_connection("127.0.0.1", port))
    async with listening(relay) as own_port:
        yield relay, own_port


@asynccontextmanager
async def relayed_database(dsn: str, directory: Path) -> AsyncIterator[tuple[SilentRelay, str]]:
    """Run a relay to a server on a socket, with its own socket in `directory`; yields it and the address through it."""
    socket = Path(parse_qs(urlsplit(dsn).query)["host"][0]) / SOCKET_NAME
    relay = SilentRelay(lambda: asyncio.open_unix_connection(socket))
    async with listening(relay, directory / SOCKET_NAME):
        yield relay, dsn.replace(quote(str(socket.parent), safe=""), quote(str(directory), safe=""))
