"""HTTP/2 with Hypercorn, for clients that use it from the first byte, if the setting allows it.

A stream is subject to the same rules as an HTTP/1.1 request: the same application checks its header and body lengths,
its pace and its key. A connection has few concurrent streams, so that limiting connections suffices.
"""

import asyncio
import math
from contextlib import suppress

import structlog
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.exceptions import ProtocolError
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.typing import ConnectionState

from service.errors import MalformedRequest
from service.http.api import pace
from service.http.problems import kind_of
from service.server.channel import Channel
from service.server.message import Header
from service.server.site import STREAMS_AT_ONCE
from service.telemetry import events

MAX_STREAMS = 2**31 - 1
"""The most streams of a connection."""
PIECE_BYTES = 16 << 10
"""How much is handled before others have their turn: hundreds of frames fit into it, each of which may be answered."""


_log = structlog.get_logger()


class _Ended:
    """A stream without a request, or one that has its response: what still arrives is discarded."""

    async def handle(self, event: StreamEvent) -> None:
        """Discard it."""


class _Streams(dict[int, HTTPStream | WSStream]):
    """The requests in progress, by stream; any other stream has ended."""

    def __missing__(self, _: int) -> _Ended:
        return _Ended()


class _Protocol(H2Protocol):
    """HTTP/2 in which no client keeps its connection without end, by what it sends or by what it does not read.

    For HTTP/1.1, the kernel ends connections on which nothing can be sent.
    """

    async def initiate(self, headers: list[Header] | None = None, settings: bytes | None = None) -> None:
        """Announce the limits. Clients learn them after their first requests, so the protocol does not enforce them."""
        await super().initiate(headers, settings)
        self.streams = _Streams()
        self.connection.local_settings.max_concurrent_streams = MAX_STREAMS
        self.connection.local_settings.acknowledge()

    async def handle(self, event: Event) -> None:
        """Take what the client sends, and end its connection if Hypercorn does not expect it.

        A path or method beyond ASCII, CONNECT without a path and a thousand priorities are among that. Its exceptions
        are then of any kind.
        """
        try:
            await super().handle(event)
        except Exception:  # noqa: BLE001 - see above
            _log.warning(events.CONNECTION_REFUSED, code=kind_of(MalformedRequest).code)
            with suppress(ProtocolError):
                self.connection.close_connection(ErrorCodes.PROTOCOL_ERROR)
            await self._flush()
            await self.send(Closed())
            self.closed = True
            await self.has_data.set()  # what sends notices that by it

    async def _create_stream(self, request: RequestReceived) -> None:
        """Begin a request, unless its client has reset it already, or has to send it again because it has too many."""
        open_streams = self.connection.open_inbound_streams  # forgets those that are closed
        if open_streams > STREAMS_AT_ONCE:
            self.connection.reset_stream(request.stream_id, ErrorCodes.REFUSED_STREAM)
        elif request.stream_id in self.connection.streams:
            await super()._create_stream(request)

    async def stream_send(self, event: StreamEvent) -> None:
        """Send a part of a response, or give it up as if its client had, if it cannot be sent at the minimum pace."""
        buffer = self.stream_buffers.get(event.stream_id)
        waiting_bytes = len(getattr(event, "data", b"")) + (len(buffer.buffer) if buffer else 0)
        try:
            async with asyncio.timeout(pace.GRACE_SECONDS + waiting_bytes / pace.LEAST_BYTES_PER_SECOND):
                await super().stream_send(event)
        except TimeoutError:
            with suppress(ProtocolError):
                self.connection.reset_stream(event.stream_id, ErrorCodes.CANCEL)
            await self._close_stream(event.stream_id)
            await self._window_updated(event.stream_id)
            await self._flush()
            await self.send(Updated(idle=self.idle))


async def serve_http2(connection: Channel, received: bytes) -> None:
    """Serve a connection to its end; `received` holds the bytes that have already arrived."""
    site = connection.site
    connection.speaks_http2 = True

    async def send(event: Event) -> None:
        if isinstance(event, RawData):
            await connection.write(event.data)
        elif isinstance(event, Closed):
            connection.close()
        elif isinstance(event, Updated):
            connection.rest(resting=event.idle)

    async with TaskGroup(site.loop) as tasks:
        state = ConnectionState(site.state)
        ends = connection.client, connection.server
        protocol = _Protocol(site.framework, site.config, site.context, tasks, state, False, *ends, send)
        await protocol.initiate()
        connection.rest(resting=True)
        while received:
            for start in range(0, len(received), PIECE_BYTES):
                await protocol.handle(RawData(received[start : start + PIECE_BYTES]))
                if protocol.idle and connection.due == math.inf:  # the client has reset its last stream
                    connection.rest(resting=True)
                await asyncio.sleep(0)
            received = await connection.read()
        await protocol.handle(Closed())
        for response in list(protocol.stream_buffers.values()):  # each may wait for room that the client gives no more
            await response.close()
    connection.close()
