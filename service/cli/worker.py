"""`geomill worker`: run jobs that gateways hand over, without a port for clients (interface 10)."""

import argparse
import socket

import anyio
import structlog

from service.app.converters import converters_of
from service.app.fleet import require_fleet
from service.app.services import open_services
from service.cli.command import CliCommand
from service.cli.operators import serving_operators
from service.cli.ports import open_private_port, url_of
from service.cli.rights import give_up_rights
from service.cli.stopping import StopRequest
from service.server.heap import settle, share_one_heap, stay_small
from service.settings import Settings
from service.telemetry import events
from service.telemetry.log import configure_log
from service.usecases.services import Services
from service.usecases.shutdown import begin_shutdown, end_jobs

_log = structlog.get_logger()


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Work until SIGINT, SIGTERM or SIGHUP, then finish jobs in progress and return the others to the queue."""
    configure_log(settings.log_format, settings.log_level)
    require_fleet(settings, "worker")
    with open_private_port(settings) as port:
        give_up_rights(embeds_database=False)
        await _work(settings, port)
    _log.info(events.SERVER_STOPPED)
    return 0


async def _work(settings: Settings, port: socket.socket | None) -> None:
    share_one_heap()
    async with anyio.create_task_group() as tasks:
        stop = StopRequest(tasks.cancel_scope, is_member=False)
        await tasks.start(stop.obey_signals)
        async with open_services(settings, role="worker") as services, serving_operators(services, settings, port):
            _log.info(
                events.WORKER_READY,
                private_url=url_of(port) if port is not None else None,
                launcher=services.pool.report().launcher,
                gdal=services.engine.capabilities.version,
                converters=converters_of(settings),
            )
            settle()
            tasks.start_soon(stay_small)
            stop.note_start()
            await stop.in_order.wait()
            _log.info(events.SERVER_STOPPING, jobs=len(services.runner.active))
            tasks.start_soon(_end_at_once, services, stop)
            begin_shutdown(services, settings.drain_seconds)
            await end_jobs(services, settings.drain_seconds)
        tasks.cancel_scope.cancel()


async def _end_at_once(services: Services, stop: StopRequest) -> None:
    await stop.at_once.wait()
    await services.runner.drain(0)


COMMAND = CliCommand(
    description="Convert files that gateways on other hosts hand over through the NATS server in GEOMILL_NATS_URL.",
    run=run,
)
