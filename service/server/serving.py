"""Serving an application on a listening socket, until it is to stop."""

from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
import msgspec
from hypercorn.asyncio import serve as serve_with_hypercorn
from hypercorn.config import Config, Sockets
from starlette.types import ASGIApp

from service.server.bodies import PIECES_WAITING, pass_pieces_on
from service.server.connections import close_when_clients_do
from service.server.listener import BACKLOG, Listener
from service.server.protocol import speak_http1

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

KEEP_ALIVE_SECONDS = 30
LAST_WORDS_SECONDS = 2.0
"""How long answers to clients whose jobs were ended may take; after twice that connections are cut."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may send, and how long a stopping server waits for what is under way."""

    max_header_bytes: int = 16_384
    drain_seconds: float = 5.0


async def serve(application: ASGIApp, listener: Listener, limits: ServerLimits, closing: anyio.Event) -> None:
    """Serve `application` until `closing` is set, then let requests under way finish within the limits."""
    adapt_hypercorn()
    config = _Config(limits, listener)
    framework = cast("ASGIFramework", application)
    async with anyio.create_task_group() as own_task:  # the server leaves the task it ran in marked as cancelled
        own_task.start_soon(partial(serve_with_hypercorn, framework, config, shutdown_trigger=closing.wait))
        await closing.wait()
        # From Python 3.12 on the server waits for its connections without a limit of its own.
        own_task.cancel_scope.deadline = anyio.current_time() + limits.drain_seconds + 2 * LAST_WORDS_SECONDS


def adapt_hypercorn() -> None:
    """Replace what Hypercorn and h11 have neither a setting nor a hook for."""
    pass_pieces_on()
    close_when_clients_do()
    speak_http1()


class _Config(Config):
    """The server's settings; it serves a socket that is listening already."""

    def __init__(self, limits: ServerLimits, listener: Listener) -> None:
        self._listener = listener
        self.backlog = BACKLOG
        self.max_app_queue_size = PIECES_WAITING
        self.graceful_timeout = limits.drain_seconds + LAST_WORDS_SECONDS
        self.keep_alive_timeout = KEEP_ALIVE_SECONDS
        self.h11_max_incomplete_size = limits.max_header_bytes
        self.h2_max_header_list_size = limits.max_header_bytes
        self.include_server_header = False
        self.accesslog = None  # one line of our own for each request
        self.loglevel = "WARNING"

    def create_sockets(self) -> Sockets:
        return Sockets([], [self._listener], [])
