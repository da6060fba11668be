"""A relay in front of PostgreSQL or an S3 server that understands the traffic.

It can hold a chosen statement, before it is run or when it has been, for as long as the test likes, break the
statement's connection, or be cut as a whole. It runs in an event loop of its own, in another thread.
"""

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, Protocol

from service.db.queries import load
from tests.support.relay import CHUNK, Pump, Relay, Way, listening

QUERY_FILES = ("accounts", "idempotency", "jobs", "metering")
READY = re.compile(rb"Z\x00\x00\x00\x05[ITE]\Z")
REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) ")
INTERIM = re.compile(rb"HTTP/1\.1 1[^\r]*\r\n\r\n\Z")
ANSWERED = re.compile(rb"HTTP/1\.[01] [2-5]")
ALL = sys.maxsize

When = Literal["before", "after"]


class Hold:
    """A statement that is to be held once."""

    def __init__(self, statement: str, when: When) -> None:
        self.statement = statement
        self.when = when
        self.reached = threading.Event()
        self.breaks = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._goes_on = asyncio.Event()
        self._is_let_go = False

    async def wait(self) -> None:
        """Hold the connection."""
        self._loop = asyncio.get_running_loop()
        self.reached.set()
        if not self._is_let_go:
            await self._goes_on.wait()
        if self.breaks:
            raise ConnectionResetError

    def let_go(self, *, breaks: bool = False) -> None:
        """Let the held statement pass, or break its connection; later ones are not held."""
        self.breaks = breaks
        self._is_let_go = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._goes_on.set)


class Reader(Protocol):
    """Divides what a client sends into parts, and names the statement that begins with a part, if any."""

    answered: re.Pattern[bytes]

    def parts(self, reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, bytes]]:
        """Yield name and bytes."""


class OfPostgres:
    """The messages of one session."""

    answered = READY

    def __init__(self) -> None:
        self._names = {text: name for file in QUERY_FILES for name, text in load(file).items()}
        self._prepared: dict[bytes, str] = {}

    async def parts(self, reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, bytes]]:
        """See `Reader`."""
        head = await reader.readexactly(4)
        yield "", head + await reader.readexactly(int.from_bytes(head) - 4)
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
            yield self._name(head[:1], body), head + body

    def _name(self, kind: bytes, body: bytes) -> str:
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            self._prepared[name] = self._names.get(query.decode(), "")
        if kind == b"B":
            return self._prepared.get(body.split(b"\0", 2)[1], "")
        return ""


class OfS3:
    """The requests of one connection; a request begins with a packet."""

    answered = ANSWERED

    async def parts(self, reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, bytes]]:
        """See `Reader`."""
        while chunk := await reader.read(CHUNK):
            begins = REQUEST.match(chunk)
            yield begins[1].decode().lower() if begins else "", chunk


class Tap(Relay):
    """The relay to one server, on its own socket or port."""

    def __init__(self, kind: type[OfPostgres] | type[OfS3], target: Path | tuple[str, int]) -> None:
        super().__init__(
            lambda: (
                asyncio.open_unix_connection(target) if isinstance(target, Path) else asyncio.open_connection(*target)
            )
        )
        self._kind = kind
        self._holds: list[Hold] = []
        self._loop = asyncio.get_running_loop()
        self._listening = AsyncExitStack()
        self.port = 0

    async def listen(self, socket: Path | None = None) -> None:
        """Accept connections on a path or a port."""
        self.port = await self._listening.enter_async_context(listening(self, socket))

    async def end(self) -> None:
        """Close every connection and accept no new ones."""
        await self._listening.aclose()

    def hold(self, statement: str, when: When) -> Hold:
        """Hold the next such statement."""
        hold = Hold(statement, when)
        self._holds.append(hold)
        return hold

    def cut(self) -> None:
        """Break all connections and accept no new ones."""
        self.breaks = ALL
        asyncio.run_coroutine_threadsafe(self.close(), self._loop)

    def mend(self) -> None:
        """Hold nothing any more, and accept connections again."""
        self.breaks = 0
        for hold in self._holds:
            hold.let_go()
        self._holds.clear()

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """See `Relay`."""
        kind, held_answers = self._kind(), list[Hold]()
        return self._up(kind, *up, held_answers), self._down(kind, *down, held_answers)

    async def _up(
        self, kind: Reader, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held_answers: list[Hold]
    ) -> None:
        async for name, part in kind.parts(reader):
            if name and (hold := self._take(name)):
                if hold.when == "before":
                    await hold.wait()
                else:
                    held_answers.append(hold)
            writer.write(part)
            await writer.drain()

    async def _down(
        self, kind: Reader, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held_answers: list[Hold]
    ) -> None:
        kept = b""
        while chunk := await reader.read(CHUNK):
            kept += chunk
            if held_answers:
                if kind.answered.search(kept):
                    await held_answers.pop().wait()
                elif not INTERIM.match(kept):  # which its client waits for before it sends more
                    continue
            writer.write(kept)
            kept = b""
            await writer.drain()

    def _take(self, name: str) -> Hold | None:
        for hold in self._holds:
            if hold.statement == name:
                self._holds.remove(hold)
                return hold
        return None
