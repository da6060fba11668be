"""Constantly replaced fork servers cost conversions nothing, even under many clients."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from threading import Event
from typing import Any

from sandbox import forkserver
from service.accounts.administration import Terms
from service.jobs.promises import FEW_EACH
from tests.sandbox.processes import command_line, processes_below
from tests.support.data import collection, feature, point
from tests.support.server import Client, Server, create_account, running_server
from tests.support.tuned import tuned

CONVERTERS = 4
CLIENTS = CONVERTERS + CONVERTERS * FEW_EACH
"""As many as are not refused, however slow the host."""
ACCOUNTS = 10
COMMANDS_PER_SERVER = 2
MANY = 12
"""Three for each converter."""
TEAM = Terms(plan="team", plan_owner="organization")
ONE_POINT = collection(feature(point(1, 2), n=1))


def converted(client: Client, enough: Event) -> list[dict[str, Any]]:
    """Convert one valid file again and again."""
    answers: list[dict[str, Any]] = []
    while not (answers and enough.is_set()):
        answers.append(client.convert("a.geojson", ONE_POINT, outputFormat="Csv"))
    return answers


def see_servers(server: Server, enough: Event) -> None:
    """Wait until many fork servers have been seen: ogr2ogr without arguments, in the directory of its library."""
    found: set[int] = set()
    while len(found) < MANY and not enough.wait(0.05):
        for pid in processes_below(server.process.pid):
            if command_line(pid).endswith(b"/ogr2ogr\0") and _directory(pid) == forkserver.BESIDE_SOURCE:
                found.add(pid)
    enough.set()


def _directory(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def test_no_conversion_fails_for_a_server_that_is_replaced(tmp_path: Path, database_url: str) -> None:
    """Twenty clients, a replacement after every second run: all succeed at the first attempt."""
    settings = {"GEOMILL_CONVERTERS": str(CONVERTERS), "GEOMILL_WAITING_ROOM": "256"}
    program = tuned(Config={"commands_per_server": COMMANDS_PER_SERVER})
    with ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path, database_url, settings, program=program))
        accounts = [stack.enter_context(create_account(server, TEAM)) for _ in range(ACCOUNTS)]
        threads = stack.enter_context(ThreadPoolExecutor(CLIENTS + 1))
        enough = Event()
        seen = threads.submit(see_servers, server, enough)
        try:
            answers = list(threads.map(converted, accounts * (CLIENTS // ACCOUNTS), repeat(enough)))
        finally:
            enough.set()
        seen.result()
        failed = [answer for each in answers for answer in each if not answer["success"]]
        assert failed == []
        assert server.events("converter.crashed") == []
