"""The private port of a gateway or worker, which is for its operators."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from service.app.applications import operations_for
from service.server.serving import serve
from service.server.site import ServerLimits
from service.settings import Settings
from service.usecases.services import Services

_MOST_CONNECTIONS = 64


def limits_of(settings: Settings) -> ServerLimits:
    """Return the limits of the port for clients."""
    return msgspec.convert(settings, ServerLimits, from_attributes=True)  # members have the names of settings


@asynccontextmanager
async def serving_operators(services: Services, settings: Settings, port: socket.socket | None) -> AsyncIterator[None]:
    """Serve operators on the private port, if there is one, until the end of the block."""
    if port is None:
        yield
        return
    limits = msgspec.structs.replace(limits_of(settings), max_connections=_MOST_CONNECTIONS)
    ended = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, operations_for(services, settings), port, limits, ended)
        yield
        ended.set()
