"""HTTP/2 with Hypercorn, for clients that use it from the first byte, if the setting allows it.

A stream is subject to the same rules as an HTTP/1.1 request: the same application checks its header and body lengths,
its pace and its key. A connection has few concurrent streams, so that limiting connections suffices.
"""

import asyncio

from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.typing import ConnectionState

from service.server.channel import Channel

PIECE_BYTES = 16 << 10
"""How much is handled before others have their turn: hundreds of frames fit into it, each of which may be answered."""


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
        protocol = H2Protocol(site.framework, site.config, site.context, tasks, state, False, *ends, send)
        await protocol.initiate()
        connection.rest(resting=True)
        while received:
            for start in range(0, len(received), PIECE_BYTES):
                await protocol.handle(RawData(received[start : start + PIECE_BYTES]))
                await asyncio.sleep(0)
            received = await connection.read()
        await protocol.handle(Closed())
        for response in list(protocol.stream_buffers.values()):  # each may wait for room that the client gives no more
            await response.close()
    connection.close()
