"""`geomill serve`: run the gateway (contract 6)."""

import argparse
import gc
import signal
import socket
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import anyio
import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config, Sockets

from service.app import application_for, open_services, operations_for
from service.cli.bodies import PIECES_WAITING, pass_pieces_on
from service.cli.command import Command, CommandError
from service.cli.connections import close_when_clients_do
from service.cli.demo import curl_line, demo_key, sample_file
from service.cli.heap import share_one_heap, stay_small
from service.cli.listener import BACKLOG, Listener, listen
from service.cli.protocol import speak_http1
from service.cli.rights import give_up_rights
from service.http.application import Application
from service.settings import Settings
from service.telemetry import events
from service.telemetry.log import configure_log
from service.usecases.services import Services

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

_log = structlog.get_logger()
KEEP_ALIVE_SECONDS = 30
OPERATORS_CONNECTIONS = 64
LAST_WORDS_SECONDS = 2.0
"""How long answers to clients whose jobs were ended may take; after twice that connections are cut."""


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then finish what was accepted."""
    configure_log(settings.log_format, settings.log_level)
    share_one_heap()
    pass_pieces_on()
    close_when_clients_do()
    speak_http1()
    try:
        await _run(settings)
    except ExceptionGroup as group:
        raise _only_error(group) from None
    _log.info(events.SERVER_STOPPED)
    return 0


def _only_error(group: ExceptionGroup) -> Exception:
    """Return the error that task groups have wrapped, so that one with words for its reader is told in these."""
    error: Exception = group
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _run(settings: Settings) -> None:
    stop = anyio.Event()
    with ExitStack() as stack:
        listener = stack.enter_context(_listen(settings))
        private = stack.enter_context(_listen_privately(settings)) if settings.private_port is not None else None
        # Before the first byte of a request, and while there is one thread.
        give_up_rights()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stop)
            async with open_services(settings) as services:
                front = _Door(listener, application_for(services, settings))
                back = _Door(private, operations_for(services, settings)) if private is not None else None
                await _announce(settings, services, listener, private)
                # What is there now stays: the collector need not walk through it again and again.
                gc.collect()
                gc.freeze()
                tasks.start_soon(stay_small)
                await _serve_both(settings, services, front, back, stop)
            tasks.cancel_scope.cancel()


class _Door(NamedTuple):
    listener: Listener
    application: Application


async def _serve_both(
    settings: Settings, services: Services, front: _Door, back: _Door | None, stop: anyio.Event
) -> None:
    """Serve clients until `stop`, and operators until all jobs have ended, so that they can watch it end."""
    closing, ended = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as operations:
        if back is not None:
            operations.start_soon(_serve, settings, back, ended)
        async with anyio.create_task_group() as departure:
            departure.start_soon(_leave, settings, services, stop, closing)
            await _serve(settings, front, closing)
            departure.cancel_scope.cancel()
        await services.runner.drain(settings.drain_seconds)
        ended.set()


async def _leave(settings: Settings, services: Services, stop: anyio.Event, closing: anyio.Event) -> None:
    """Readiness falls first, then the door closes, and at last the jobs that have not ended are."""
    await stop.wait()
    _log.info(events.SERVER_STOPPING, jobs=len(services.runner.active))
    services.runner.leave(settings.drain_delay_seconds + settings.drain_seconds)
    await anyio.sleep(settings.drain_delay_seconds)
    closing.set()
    await anyio.sleep(settings.drain_seconds)
    await services.runner.drain(0)


async def _serve(settings: Settings, door: _Door, closing: anyio.Event) -> None:
    framework = cast("ASGIFramework", door.application)
    config = _Config(settings, door.listener)
    async with anyio.create_task_group() as own_task:  # the server leaves the task it ran in marked as cancelled
        own_task.start_soon(partial(serve, framework, config, shutdown_trigger=closing.wait))
        await closing.wait()
        # From Python 3.12 on the server waits for its connections without a limit of its own.
        own_task.cancel_scope.deadline = anyio.current_time() + settings.drain_seconds + 2 * LAST_WORDS_SECONDS


class _Config(Config):
    """The server's settings; it serves a socket that is listening already."""

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self._listener = listener
        self.backlog = BACKLOG
        self.max_app_queue_size = PIECES_WAITING
        self.graceful_timeout = settings.drain_seconds + LAST_WORDS_SECONDS
        self.keep_alive_timeout = KEEP_ALIVE_SECONDS
        self.h11_max_incomplete_size = settings.max_header_bytes
        self.h2_max_header_list_size = settings.max_header_bytes
        self.include_server_header = False
        self.accesslog = None  # one line of our own for each request
        self.loglevel = "WARNING"

    def create_sockets(self) -> Sockets:
        return Sockets([], [self._listener], [])


async def _stop_on_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        async for _ in received:
            stop.set()


def _listen(settings: Settings) -> Listener:
    return _listen_or_tell(settings.host, settings.port, settings.max_connections, "GEOMILL_PORT")


def _listen_privately(settings: Settings) -> Listener:
    host = settings.private_host or settings.host
    return _listen_or_tell(host, settings.private_port or 0, OPERATORS_CONNECTIONS, "GEOMILL_PRIVATE_PORT")


def _listen_or_tell(host: str, port: int, most_connections: int, variable: str) -> Listener:
    try:
        return listen(host, port, most_connections)
    except OSError as error:
        message = f"cannot listen on {host}:{port} ({error.strerror}). Set {variable} to a free port."
        raise CommandError(message) from None


def _name(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


async def _announce(settings: Settings, services: Services, listener: Listener, private: Listener | None) -> None:
    line, url = "", settings.public_url.rstrip("/") or _name(listener)
    if not settings.database_url:
        key = await demo_key(services.database, settings.data_path)
        line = curl_line(url, key, sample_file(settings.data_path))
    report = services.pool.report()
    _log.info(
        events.SERVER_READY,
        url=url,
        private_url=_name(private) if private is not None else None,
        launcher=report.launcher,
        gdal=services.engine.capabilities.version,
    )
    if line:
        print(f"\nGeomill is ready at {url}. Convert a first file:\n\n  {line}\n", flush=True)


COMMAND = Command(name="serve", help="run the service", run=run)
