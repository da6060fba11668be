"""`geomill serve`: run the gateway (contract 6)."""

import argparse
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config

from service.app import application_for, open_services
from service.cli.command import Command, CommandError
from service.cli.demo import curl_line, demo_key, sample_file
from service.settings import Settings
from service.telemetry import events
from service.telemetry.log import configure_log
from service.usecases.services import Services

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

_log = structlog.get_logger()
BACKLOG = 2048
KEEP_ALIVE_SECONDS = 30


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then finish what was accepted."""
    configure_log(settings.log_format, settings.log_level)
    stop = anyio.Event()
    with _listen(settings) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stop)
            async with open_services(settings) as services:
                await _announce(settings, services, _address(settings, listener))
                await _serve(application_for(services, settings), _config(settings, listener), stop)
            tasks.cancel_scope.cancel()
    _log.info(events.SERVER_STOPPED)
    return 0


async def _serve(application: object, config: Config, stop: anyio.Event) -> None:
    framework = cast("ASGIFramework", application)
    async with anyio.create_task_group() as own_task:  # the server leaves the task it ran in marked as cancelled
        own_task.start_soon(partial(serve, framework, config, shutdown_trigger=stop.wait))


async def _stop_on_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        async for _ in received:
            stop.set()


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        message = (
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}). Set GEOMILL_PORT to a free port."
        )
        raise CommandError(message) from None
    listener.listen(BACKLOG)
    return listener


def _address(settings: Settings, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return settings.public_url.rstrip("/") or f"http://{shown}:{port}"


def _config(settings: Settings, listener: socket.socket) -> Config:
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]  # the server closes it
    config.backlog = BACKLOG
    config.graceful_timeout = settings.drain_seconds
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.include_server_header = False
    config.accesslog = None  # one line of our own for each request
    config.loglevel = "WARNING"
    return config


async def _announce(settings: Settings, services: Services, url: str) -> None:
    line = ""
    if not settings.database_url:
        key = await demo_key(services.database, settings.data_path)
        line = curl_line(url, key, sample_file(settings.data_path))
    report = services.pool.report()
    _log.info(events.SERVER_READY, url=url, launcher=report.launcher, gdal=services.engine.capabilities.version)
    if line:
        print(f"\nGeomill is ready at {url}. Convert a first file:\n\n  {line}\n", flush=True)


COMMAND = Command(name="serve", help="run the service", run=run)
