"""HTTP/2 on a connection whose client speaks it from the first byte, where the setting allows it: Hypercorn's.

A stream has what a request of HTTP/1.1 has: the same application looks at the length of its head and its body, at its
pace and at its key. A connection has few streams at a time, so that connections remain what is counted.
"""

from typing import TYPE_CHECKING

from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.typing import ConnectionState

if TYPE_CHECKING:
    from service.server.connection import Connection

STREAMS_AT_ONCE = 16


async def serve_http2(connection: "Connection", received: bytes) -> None:
    """Serve a connection to its end; `received` is what has come already."""
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
            await protocol.handle(RawData(received))
            received = await connection.read()
        await protocol.handle(Closed())
    connection.close()
