"""Several serving processes behind one port are one service to clients and operators, whichever process dies."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from service.accounts.administration import Terms
from service.db.pool import open_pool
from service.metering.audit import audit_books
from service.settings import Settings
from tests.api.test_metrics import scrape, value
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.load import Load
from tests.support.patience import PATIENCE_SECONDS, polls, wait_until
from tests.support.server import Client, Server, create_account, running_server

CLIENTS = 8
KEPT = 48
"""Connections that clients keep."""
EVEN = 23
"""How many of them each of two processes gets at least, if both are scheduled."""
LEAD = 12
"""By how many even spreads outnumber the others in the end: processes that leave it to chance do not get there."""
PAUSE_SECONDS = 0.2
TEAM = Terms(plan="team", plan_owner="organization")
TWO = {
    "GEOMILL_PROCESSES": "2",
    "GEOMILL_CONVERTERS": "2",
    "GEOMILL_LEASE_SECONDS": "5",  # longer than a busy host may keep a process from renewing it
    "GEOMILL_DRAIN_DELAY_SECONDS": "0.5",
    "GEOMILL_PRIVATE_PORT": "0",
}
FILE = "/api/geo/convert/file"

pytestmark = pytest.mark.xdist_group("processes")  # one server for most


@pytest.fixture(scope="module")
def server(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two processes."""
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("processes"), dsn, TWO) as running:
        yield running


def members(server: Server) -> list[psutil.Process]:
    """The serving processes, in order of their numbers."""
    below = psutil.Process(server.process.pid).children()
    return sorted((each for each in below if "--member" in each.cmdline()), key=lambda each: each.cmdline()[-1])


def connections_of(member: psutil.Process, server: Server) -> int:
    """How many connections to the public port a process holds: on a busy host not always half of them."""
    port = httpx.URL(server.url).port
    return sum(each.laddr.port == port for each in member.net_connections("tcp") if each.status == "ESTABLISHED")


def metrics_of(server: Server) -> Server:
    """The server at its private port, where `scrape` finds the metrics."""
    private = object.__new__(Server)
    private.url = str(server.events("server.ready")[0]["private_url"])
    return private


def served_by(server: Server, since: int) -> Counter[int]:
    """How many requests each process has served, not counting the first `since` in the log."""
    return Counter(event["process"] for event in server.events("request.finished")[since:])


class Conversions(Load):
    """Clients that convert repeatedly over kept connections and record every failure."""

    def __init__(self, client: Client) -> None:
        super().__init__(CLIENTS)
        self.completed: list[str] = []
        self.failures: list[tuple[int, str]] = []
        self._client = client

    def wait_for(self, more: int) -> None:
        """Wait for this many further conversions."""
        enough = len(self.completed) + more
        wait_until(lambda: len(self.completed) >= enough)

    def run(self, number: int) -> None:
        """Convert until stopped."""
        with httpx.Client(base_url=self._client.base_url, headers=self._client.headers) as client:
            while not self.over.is_set():
                try:
                    answer = client.post(FILE, files={"file": ("a.geojson", lakes())}).json()
                except httpx.HTTPError as error:
                    self.failures.append((number, repr(error)))
                else:
                    assert answer["success"], answer
                    self.completed.append(answer["jobId"])
                time.sleep(PAUSE_SECONDS)


async def _audit(dsn: str) -> list[str]:
    async with open_pool(dsn) as database:
        return await audit_books(database)


def test_clients_that_keep_their_connections_are_spread_evenly(server: Server) -> None:
    """A process leaves a new connection to one that has fewer, unless that one is not being scheduled."""
    fewest: list[int] = []
    for _ in polls():
        served = spread(server)
        fewest.append(min(served[1], served[2]))
        if lead(fewest) >= LEAD:
            break
    assert lead(fewest) >= LEAD, Counter(fewest)


def spread(server: Server) -> Counter[int]:
    """How many of some connections each process has got."""
    since = len(server.events("request.finished"))
    address = httpx.URL(server.url)
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(HTTPConnection(address.host, address.port))) for _ in range(KEPT)]
        for client in clients:
            client.request("GET", "/api/geo/formats")
            assert client.getresponse().status == 401
    wait_until(lambda: sum(served_by(server, since).values()) == KEPT)
    return served_by(server, since)


def lead(fewest: Sequence[int]) -> int:
    """By how many even spreads outnumber the others: on a busy host, a process may not be scheduled for a while."""
    return sum(1 if each >= EVEN else -1 for each in fewest)


def test_metrics_and_limits_are_those_of_the_whole_service(server: Server) -> None:
    """Whichever process responds, also on the private port."""
    with create_account(server, TEAM) as account:
        before = scrape(metrics_of(server))
        for _ in range(6):
            assert httpx.post(
                f"{server.url}{FILE}", files={"file": ("a.geojson", lakes())}, headers=account.headers
            ).json()["success"]
        for _ in range(4):
            after = scrape(metrics_of(server))
            name = "geomill_jobs_ended_total"
            assert value(after, name, outcome="completed") - value(before, name, outcome="completed") == 6
            assert value(after, "geomill_processes") == 2
            assert value(after, "geomill_converters") == 2
            assert value(after, "geomill_seats") == 2 + Settings().waiting_room
        ready = httpx.get(f"{metrics_of(server).url}/readyz")
        assert (ready.status_code, set(ready.json()["checks"].values())) == (200, {"ok"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees which connections a process has")
def test_a_killed_process_is_replaced_and_others_do_not_notice(server: Server) -> None:
    """Its own clients lose their connections and retry; its jobs end and are free."""
    with create_account(server, TEAM) as account:
        name = "geomill_jobs_ended_total"
        before = value(scrape(metrics_of(server)), name, outcome="completed")
        lost, ready = len(server.events("process.lost")), len(server.events("process.ready"))
        with Conversions(account) as load:
            load.wait_for(2 * CLIENTS)
            cut_off = connections_of(members(server)[0], server)
            members(server)[0].kill()
            wait_until(lambda: len(server.events("process.lost")) > lost)
            assert httpx.get(f"{metrics_of(server).url}/readyz").status_code == 200
            load.wait_for(2 * CLIENTS)
            wait_until(lambda: len(server.events("process.ready")) > ready)
            load.wait_for(2 * CLIENTS)
        assert len(members(server)) == 2
        assert server.events("process.lost")[-1]["number"] == 1
        assert max(Counter(number for number, _ in load.failures).values(), default=0) <= 1
        assert len(load.failures) <= cut_off
        after = value(scrape(metrics_of(server)), name, outcome="completed")
        assert after - before >= len(load.completed)
        wait_until(lambda: value(scrape(metrics_of(server)), "geomill_reservations") == 0)
        # What was settled, but not answered any more, was converted, stored and charged.
        assert len(load.completed) <= account.usage()[0] <= len(load.completed) + len(load.failures)
        statuses = Counter(
            account.get(f"/api/geo/convert/jobs/{job_id}/status").json()["status"] for job_id in load.completed[-20:]
        )
        assert statuses == {"Completed": 20}
    assert anyio.run(_audit, server.dsn) == []
    assert server.wait_until_idle() == []


def test_a_process_that_is_asked_to_end_finishes_and_is_replaced(server: Server) -> None:
    """SIGTERM to one of them: no request fails, whichever process it was sent to."""
    with create_account(server, TEAM) as account:
        ready = len(server.events("process.ready"))
        with Conversions(account) as load:
            load.wait_for(2 * CLIENTS)
            members(server)[0].terminate()
            wait_until(lambda: len(server.events("process.ready")) > ready)
            load.wait_for(2 * CLIENTS)
        assert load.failures == []
        assert server.events("process.lost")[-1]["status"] == 0


def test_a_suspended_process_is_left_out_and_finally_replaced(server: Server) -> None:
    """The other process serves new clients; the lease ends what the suspended one had begun."""
    suspended = members(server)[0]
    lost = len(server.events("process.lost"))
    suspended.suspend()
    wait_until(lambda: len(server.events("process.lost")) > lost)
    for _ in range(4):
        assert httpx.get(f"{server.url}/api/geo/formats").status_code == 401
    assert server.events("process.stuck")[-1]["pid"] == suspended.pid
    assert not suspended.is_running()
    ready = len(server.events("process.ready"))
    wait_until(lambda: len(server.events("process.ready")) >= ready and len(members(server)) == 2)


def test_a_second_signal_ends_the_service_at_once(tmp_path: Path, database_url: str) -> None:
    """The client is referred to its job, which fails and is free; all processes exit in order."""
    with running_server(tmp_path, database_url, TWO) as server, create_account(server, TEAM) as client:
        answers: list[httpx.Response] = []
        files, data = {"file": (NAME, endless_file())}, {"outputFormat": "Csv"}
        sender = threading.Thread(target=lambda: answers.append(client.post(FILE, files=files, data=data)))
        sender.start()
        wait_until(lambda: bool(server.events("job.admitted")))
        below = psutil.Process(server.process.pid).children(recursive=True)
        server.process.terminate()
        wait_until(lambda: len(server.events("server.stopping")) == 2)
        assert server.stop(signal.SIGTERM) == 0
        sender.join()
        assert answers[0].status_code == 503
        assert server.events("job.completed") == []
        _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECONDS)
        assert alive == []
        assert server.work_files() == []
        assert not list(tmp_path.glob("processes-*"))


def test_too_many_processes_are_refused(tmp_path: Path, server: Server) -> None:
    """Each process needs a converter."""
    settings = {**TWO, "GEOMILL_PROCESSES": "3"}
    message = r"Set GEOMILL_PROCESSES to 2 or less"
    with pytest.raises(AssertionError, match=message), running_server(tmp_path, server.dsn, settings):
        pass


def test_a_service_whose_first_process_cannot_start_ends_with_the_reason(tmp_path: Path, server: Server) -> None:
    """Once, in the process's own words, followed by its parent's."""
    message = r"GEOMILL_OGR2OGR(.|\n)*Serving process 1 ended before it was ready"
    settings = {**TWO, "GEOMILL_OGR2OGR": os.devnull}
    with pytest.raises(AssertionError, match=message), running_server(tmp_path, server.dsn, settings):
        pass


def test_no_process_outlives_its_parent(server: Server) -> None:
    """Kill -9 of the parent. This test comes last, since it ends the server."""
    below = psutil.Process(server.process.pid).children(recursive=True)
    assert len(members(server)) == 2
    server.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECONDS)
    assert alive == []
