"""`geomill serve`: run the gateway (interface 10)."""

import argparse
from contextlib import ExitStack
from functools import partial

import anyio
import msgspec
import structlog

from service.app.applications import application_for
from service.app.fleet import require_fleet
from service.app.services import open_services
from service.cli.announcement import announce, prepare_announcement
from service.cli.command import CliCommand, argument
from service.cli.membership import Membership, joined, report_ready, share_of
from service.cli.operators import limits_of, serving_operators
from service.cli.ports import Ports, inherited_ports, open_ports
from service.cli.processes import AUTO, MOST, process_count, run_processes
from service.cli.rights import give_up_rights
from service.cli.stopping import StopRequest
from service.cli.worker import run as run_worker
from service.http.application import Application
from service.server.gate import Gate
from service.server.heap import settle, share_one_heap, stay_small
from service.server.serving import LAST_WORDS_SECONDS, serve
from service.settings import Settings
from service.siblings import Siblings
from service.telemetry import events
from service.telemetry.log import configure_log
from service.usecases.services import Role, Services
from service.usecases.shutdown import begin_shutdown, end_jobs

_log = structlog.get_logger()


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP, then finish accepted work."""
    if arguments.role == "worker":
        return await run_worker(settings, arguments)
    member = msgspec.json.decode(arguments.member, type=Membership) if arguments.member else None
    configure_log(settings.log_format, settings.log_level, member.number if member else None)
    if arguments.processes:
        settings = msgspec.structs.replace(settings, processes=arguments.processes)
    start = partial(_run_member, member=member) if member else _run
    exit_code = await start(settings, arguments.role)
    _log.info(events.SERVER_STOPPED)
    return exit_code


async def _run(settings: Settings, role: Role) -> int:
    require_fleet(settings, role)
    count = process_count(settings)
    with open_ports(settings) as ports:
        # Before the first byte of a request, and while there is only one thread.
        give_up_rights(embeds_database=not settings.database_url)
        if count > 1:
            return await run_processes(count, settings, ports, role)
        await _serve(settings, ports, role)
    return 0


async def _run_member(settings: Settings, role: Role, *, member: Membership) -> int:
    """Serve as one of several processes."""
    with ExitStack() as stack:
        siblings = stack.enter_context(joined(member))
        ports = stack.enter_context(inherited_ports(member.main, member.private))
        give_up_rights(embeds_database=not settings.database_url)
        await _serve(share_of(settings, member.number, member.count), ports, role, member, siblings)
    return 0


async def _serve(
    settings: Settings, ports: Ports, role: Role, member: Membership | None = None, siblings: Siblings | None = None
) -> None:
    share_one_heap()
    async with anyio.create_task_group() as tasks:
        stop = StopRequest(tasks.cancel_scope, is_member=member is not None)
        await tasks.start(stop.obey_signals)
        async with open_services(settings, siblings=siblings, role=role) as services:
            front = application_for(services, settings)  # a setting without meaning ends the service here
            announcement = await prepare_announcement(settings, services, ports)
            settle()
            tasks.start_soon(stay_small)
            stop.note_start()
            if member is not None:
                report_ready(member, announcement)
            else:
                announce(announcement, 1)
            await _serve_all(settings, services, ports, front, stop)
        tasks.cancel_scope.cancel()


async def _serve_all(
    settings: Settings, services: Services, ports: Ports, front: Application, stop: StopRequest
) -> None:
    """Serve clients until `stop`, and operators until all jobs have ended, so that they can observe the shutdown."""
    closing, limits = anyio.Event(), limits_of(settings)
    gate = Gate(services.authenticator, services.promises)
    async with serving_operators(services, settings, ports.private):
        async with anyio.create_task_group() as serving:
            serving.start_soon(_shut_down, settings, services, stop, closing, serving.cancel_scope)
            await serve(front, ports.main, limits, closing, ending=stop.ending, gate=gate, siblings=services.siblings)
            serving.cancel_scope.cancel()
        await end_jobs(services, settings.drain_seconds)


async def _shut_down(
    settings: Settings, services: Services, stop: StopRequest, closing: anyio.Event, serving: anyio.CancelScope
) -> None:
    """Shut down in order: report not ready, close the port, then end the remaining jobs and uploads."""
    await stop.in_order.wait()
    _log.info(events.SERVER_STOPPING, jobs=len(services.runner.active))
    begin_shutdown(services, settings.drain_delay_seconds + settings.drain_seconds)
    services.siblings.beat(accepts=False)
    await stop.sleep(settings.drain_delay_seconds)
    closing.set()
    await stop.sleep(settings.drain_seconds)
    stop.ending.set()
    await end_jobs(services, 0)
    if stop.at_once.is_set():
        await anyio.sleep(LAST_WORDS_SECONDS)
        serving.cancel()


COMMAND = CliCommand(
    run=run,
    arguments=(
        argument(
            "--processes",
            choices=[AUTO, *map(str, range(1, MOST + 1))],
            metavar="N",
            help="number of serving processes on the port, or auto; default: GEOMILL_PROCESSES",
        ),
        argument(
            "--role",
            choices=["all", "gateway", "worker"],
            default="all",
            help="all (default): convert what it receives and, with GEOMILL_NATS_URL, hand over the excess; "
            "gateway: hand over everything to workers on other hosts; worker: the same as `geomill worker`",
        ),
        argument("--member", help=argparse.SUPPRESS),
    ),
)
