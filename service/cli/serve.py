"""`geomill serve`: run the gateway (interface 10)."""

import argparse
import errno
import gc
import signal
import socket
from contextlib import ExitStack
from typing import NamedTuple

import anyio
import msgspec
import structlog

from service.app import application_for, open_services, operations_for
from service.cli.command import Command, CommandError
from service.cli.demo import curl_line, demo_key, sample_file
from service.cli.rights import give_up_rights
from service.http.application import Application
from service.server.gate import Gate
from service.server.heap import share_one_heap, stay_small
from service.server.listener import listen
from service.server.serving import ServerLimits, serve
from service.settings import Settings
from service.telemetry import events
from service.telemetry.log import configure_log
from service.usecases.services import Services

_log = structlog.get_logger()
OPERATORS_CONNECTIONS = 64


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then finish accepted work."""
    configure_log(settings.log_format, settings.log_level)
    share_one_heap()
    try:
        await _run(settings)
    except ExceptionGroup as group:
        raise _only_error(group) from None
    _log.info(events.SERVER_STOPPED)
    return 0


def _only_error(group: ExceptionGroup) -> Exception:
    """Unwrap the only error of nested exception groups, so that its message can be reported."""
    error: Exception = group
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _run(settings: Settings) -> None:
    stop = anyio.Event()
    with ExitStack() as stack:
        listening = stack.enter_context(_listen(settings))
        private = stack.enter_context(_listen_privately(settings)) if settings.private_port is not None else None
        # Before the first byte of a request, and while there is only one thread.
        give_up_rights(embeds_database=not settings.database_url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stop)
            async with open_services(settings) as services:
                front = _Endpoint(listening, application_for(services, settings))
                back = _Endpoint(private, operations_for(services, settings)) if private is not None else None
                await _announce(settings, services, listening, private)
                # Exempt the long-lived objects created so far from garbage collection.
                gc.collect()
                gc.freeze()
                tasks.start_soon(stay_small)
                await _serve_both(settings, services, front, back, stop)
            tasks.cancel_scope.cancel()


class _Endpoint(NamedTuple):
    listening: socket.socket
    application: Application


async def _serve_both(
    settings: Settings, services: Services, front: _Endpoint, back: _Endpoint | None, stop: anyio.Event
) -> None:
    """Serve clients until `stop`, and operators until all jobs have ended, so that they can observe the shutdown."""
    closing, ended = anyio.Event(), anyio.Event()
    limits = ServerLimits(
        max_header_bytes=settings.max_header_bytes,
        max_connections=settings.max_connections,
        http2=settings.http2,
        drain_seconds=settings.drain_seconds,
    )
    few = msgspec.structs.replace(limits, max_connections=OPERATORS_CONNECTIONS)
    gate = Gate(services.authenticator, services.promises)
    async with anyio.create_task_group() as operations:
        if back is not None:
            operations.start_soon(serve, back.application, back.listening, few, ended)
        async with anyio.create_task_group() as shutdown:
            shutdown.start_soon(_shut_down, settings, services, stop, closing)
            await serve(front.application, front.listening, limits, closing, gate)
            shutdown.cancel_scope.cancel()
        await services.runner.drain(settings.drain_seconds)
        ended.set()


async def _shut_down(settings: Settings, services: Services, stop: anyio.Event, closing: anyio.Event) -> None:
    """Shut down in order: report not ready, close the port, then end the remaining jobs."""
    await stop.wait()
    _log.info(events.SERVER_STOPPING, jobs=len(services.runner.active))
    services.runner.begin_shutdown(settings.drain_delay_seconds + settings.drain_seconds)
    await anyio.sleep(settings.drain_delay_seconds)
    closing.set()
    await anyio.sleep(settings.drain_seconds)
    await services.runner.drain(0)


async def _stop_on_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        async for _ in received:
            stop.set()


def _listen(settings: Settings) -> socket.socket:
    return _listen_or_fail(settings.host, settings.port, "GEOMILL_HOST", "GEOMILL_PORT")


def _listen_privately(settings: Settings) -> socket.socket:
    host = settings.private_host or settings.host
    named_by = "GEOMILL_PRIVATE_HOST" if settings.private_host else "GEOMILL_HOST"
    return _listen_or_fail(host, settings.private_port or 0, named_by, "GEOMILL_PRIVATE_PORT")


def _listen_or_fail(host: str, port: int, host_variable: str, port_variable: str) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, UnicodeError) as error:
        is_host = (
            not isinstance(error, OSError) or isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        )
        what = f"{host_variable} to an address of this host" if is_host else f"{port_variable} to a port that is free"
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise CommandError(f"The service cannot listen on {host}:{port} ({reason}). Set {what}.") from None


def _name(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


async def _announce(
    settings: Settings, services: Services, listening: socket.socket, private: socket.socket | None
) -> None:
    line, url = "", settings.public_url.rstrip("/") or _name(listening)
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
