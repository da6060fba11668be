"""The alerts in deploy/ fire on a real Prometheus when a real service fails as they say, and its dashboard has data.

`just alerts-test` runs it; it is no part of the suite, because it takes minutes. A minute of the rules is a few seconds
here; nothing else about them differs. Each test provokes what one or two alerts are for.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from bench.load.documents import document, small_document
from service.accounts.administration import Terms
from service.db.migrate import migrate
from service.db.pool import open_pool
from service.jobs.leases import MOST_DEATHS
from service.metering.ledger import publish_plans
from service.postgres_embedded.server_user import find_server_user
from tests.fleet.nats import NatsServer, nats_server
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.support.ports import free_port
from tests.support.replication import PostgresServer
from tests.support.server import EXECUTED, Client, Server, create_account, running_server

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboard.json"
SHORTER = ((r"\[\d+[mh]\]", "[60s]"), (r"offset \d+h", "offset 60s"), (r"for: \d+[mh]", "for: 2s"), (r"> 60\b", "> 5"))
"""What becomes of the durations in the rules, and of the two thresholds that are a minute of waiting."""
CONFIGURATION = """
global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: geomill
    file_sd_configs: [{{files: [targets.json], refresh_interval: 1s}}]
"""
SETTINGS = {
    "GEOMILL_LEASE_SECONDS": "10",
    "GEOMILL_CONVERTERS": "1",
    "GEOMILL_SUSPENDED": "2",
    "GEOMILL_WAITING_ROOM": "4",
    "GEOMILL_MAX_BATCH_FILES": "2",
    "GEOMILL_PRIVATE_PORT": "0",
    "GEOMILL_S3_BUCKET": BUCKET,
    "GEOMILL_S3_ACCESS_KEY": ACCESS_KEY,
    "GEOMILL_S3_SECRET_KEY": SECRET_KEY,
}
OTHER_VERSION = "import service.telemetry.build as b; b.VERSION = '0.0.1'; from service.cli import main; main()"
OF_A_BUSY_HOST = {"GeomillDown", "GeomillAllDown", "GeomillEventLoopSlow", "GeomillLeaseAtRisk", "GeomillQueueSlow"}
"""Alerts that nobody has to provoke where others keep the host busy, since a minute is a few seconds here."""
PATIENT = {"GEOMILL_LEASE_SECONDS": "60", "GEOMILL_WAITING_ROOM": "200", "GEOMILL_MAX_PER_ACCOUNT": "200"}
PATIENCE_SECONDS = 300.0
QUIET_SECONDS = 10.0
TERMS = Terms(plan="business", plan_owner="organization")
FILE = "/api/geo/convert/file"
ASYNC = {"Prefer": "respond-async"}
BEGUN = "SELECT true FROM job WHERE id = $1 AND deaths = $2 AND status = 'Processing' AND completed_at IS NULL"


def await_that(
    holds: Callable[[], object], complaint: Callable[[], str] = str, act: Callable[[], object] = lambda: None
) -> None:
    """Do something again and again until a condition holds."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    act()
    while not holds():
        assert time.monotonic() < give_up_at, complaint()
        time.sleep(0.2)
        act()


class Prometheus:
    """A Prometheus with the shortened rules."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._targets: list[str] = []
        rules = RULES.read_text(encoding="utf-8")
        for long, short in SHORTER:
            rules = re.sub(long, short, rules)
        (directory / "alerts.yml").write_text(rules)
        (directory / "prometheus.yml").write_text(CONFIGURATION.format())
        self._write()
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/api/v1"
        options = (f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={directory / 'data'}")
        with (directory / "log").open("wb") as log:
            command = ("prometheus", f"--config.file={directory / 'prometheus.yml'}", *options)
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @contextmanager
    def watching(self, server: Server) -> Iterator[None]:
        """Scrape a process inside the block."""
        with suppress(ValueError):
            target = httpx.URL(server.private_url).netloc.decode()
        if not server.events("server.ready"):
            target = httpx.URL(server.url).netloc.decode()
        self._targets.append(target)
        self._write()
        yield
        self._targets.remove(target)
        self._write()

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        with suppress(httpx.HTTPError):
            alerts = httpx.get(f"{self._url}/alerts").json()["data"]["alerts"]
            return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        return set()

    def await_alerts(self, *names: str, provoke: Callable[[], object] = lambda: None) -> None:
        """Provoke alerts again and again until they fire."""
        missing = set(names)

        def look() -> None:
            provoke()
            missing.difference_update(self.firing())

        await_that(lambda: not missing, lambda: f"{missing} did not fire, but {self.firing()}", look)

    def has_data(self, expression: str) -> bool:
        """Whether an expression has a value now that is a number."""
        found = httpx.get(f"{self._url}/query", params={"query": expression}).json()
        assert found["status"] == "success", found
        return any(sample["value"][1] != "NaN" for sample in found["data"]["result"])

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()

    def _write(self) -> None:
        draft = self._directory / "targets.new"
        draft.write_text(json.dumps([{"targets": self._targets}]))
        draft.rename(self._directory / "targets.json")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One for all tests."""
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is not installed")
    running = Prometheus(tmp_path_factory.mktemp("prometheus"))
    yield running
    running.end()


class Parts:
    """What the service relies on, each of which can be ended."""

    def __init__(self, directory: Path, prometheus: Prometheus, stack: ExitStack) -> None:
        self._directory = directory
        self._prometheus = prometheus
        for name in ("postgres", "s3", "nats"):
            (directory / name).mkdir()
        user = find_server_user()
        if user.switched:
            directory.chmod(0o711)
            os.chown(directory / "postgres", user.uid, user.gid)
        self.postgres = PostgresServer(directory / "postgres")
        self.postgres.create()
        self.postgres.start()
        stack.callback(self.postgres.kill)
        anyio.run(_prepare, self.postgres.dsn)
        self.s3: S3Server = stack.enter_context(s3_server(directory / "s3"))
        self.nats: NatsServer = stack.enter_context(nats_server(directory / "nats"))

    @contextmanager
    def running(
        self,
        *command: str,
        settings: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        program: tuple[str, ...] = EXECUTED,
    ) -> Iterator[Server]:
        """Run a process of the service inside the block, which Prometheus scrapes."""
        given = {**SETTINGS, "GEOMILL_S3_ENDPOINT": self.s3.url, **(settings or {})}
        directory = data_dir or self._directory / f"data-{time.monotonic_ns()}"
        line = command or ("serve",)
        with (
            running_server(directory, self.postgres.dsn, given, program=program, command=line) as server,
            self._prometheus.watching(server),
        ):
            yield server

    @contextmanager
    def fleet(self, settings: Mapping[str, str] | None = None) -> Iterator[tuple[Server, Callable[[], Server]]]:
        """Run a gateway inside the block, and workers as they are asked for."""
        given = {"GEOMILL_NATS_URL": self.nats.url, **(settings or {})}
        with ExitStack() as stack:

            def start() -> Server:
                return stack.enter_context(self.running("worker", settings=given))

            yield stack.enter_context(self.running("serve", "--role", "gateway", settings=given)), start


async def _prepare(dsn: str) -> None:
    await migrate(dsn)
    async with open_pool(dsn, max_size=1) as database:
        await publish_plans(database)


@pytest.fixture(scope="module")
def parts(prometheus: Prometheus) -> Iterator[Parts]:
    """One set for all tests, in a directory that PostgreSQL's user can reach."""
    with tempfile.TemporaryDirectory(prefix="geomill-alerts-") as directory, ExitStack() as stack:
        yield Parts(Path(directory), prometheus, stack)


@contextmanager
def asking(server: Server, content: bytes, clients: int = 1, **fields: str) -> Iterator[list[Client]]:
    """Convert again and again inside the block, each client with an account of its own."""
    over = threading.Event()
    with ExitStack() as stack:
        accounts = [stack.enter_context(closing(create_account(server, TERMS))) for _ in range(clients)]

        def convert(client: Client) -> None:
            while not over.is_set():
                with suppress(httpx.HTTPError):
                    client.post(FILE, files={"file": ("a.geojson", content)}, data=fields)
                over.wait(0.05)

        threads = [threading.Thread(target=convert, args=(client,)) for client in accounts]
        for thread in threads:
            thread.start()
        try:
            yield accounts
        finally:
            over.set()
            for thread in threads:
                thread.join()


def below(server: Server) -> list[psutil.Process]:
    """The processes that a server has started, and those that these have."""
    with suppress(psutil.Error):
        return psutil.Process(server.process.pid).children(recursive=True)
    return []


def send(processes: list[psutil.Process], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def kill_converters(server: Server) -> None:
    """End what the processes that start converters have started."""
    with suppress(psutil.Error):
        for keeper in psutil.Process(server.process.pid).children():
            for starter in keeper.children():
                send(starter.children(recursive=True), signal.SIGKILL)


def test_a_service_in_order_raises_no_alert(prometheus: Prometheus, parts: Parts) -> None:
    """Its conversions, and a bad file, are no reason to call anybody."""
    with parts.running() as server, asking(server, small_document()) as [client]:
        client.convert("bad.geojson", b"{")
        time.sleep(QUIET_SECONDS)
        assert prometheus.firing() <= OF_A_BUSY_HOST


def test_processes_that_are_gone(prometheus: Prometheus, parts: Parts) -> None:
    """One of two, then both."""
    with parts.running() as first, parts.running() as second:
        first.process.kill()
        prometheus.await_alerts("GeomillDown")
        second.process.kill()
        prometheus.await_alerts("GeomillAllDown")


def test_a_defect(prometheus: Prometheus, parts: Parts) -> None:
    """A table that is not as the code expects."""
    with parts.running() as server, closing(create_account(server, TERMS)) as client:
        parts.postgres.execute("ALTER TABLE job RENAME COLUMN original_file_name TO other")

        def convert() -> None:
            client.post(FILE, files={"file": ("a.geojson", small_document())})

        try:
            prometheus.await_alerts("GeomillDefect", provoke=convert)
            assert server.events("request.failed") or server.events("job.defect")
        finally:
            parts.postgres.execute("ALTER TABLE job RENAME COLUMN other TO original_file_name")


def test_a_store_that_is_away(prometheus: Prometheus, parts: Parts) -> None:
    """Conversions fail free."""
    with parts.running() as server, asking(server, small_document()):
        parts.s3.kill()
        try:
            prometheus.await_alerts("GeomillStoreFailing")
            assert {event["fault"] for event in server.events("storage.failed")} == {"down"}
        finally:
            parts.s3.start()


def test_a_database_that_is_away(prometheus: Prometheus, parts: Parts) -> None:
    """Maintenance fails, and so does the heartbeat."""
    with parts.running() as server:
        parts.postgres.stop()
        try:
            prometheus.await_alerts("GeomillLeaseAtRisk", "GeomillUpkeepFailing")
            assert server.events("database.unavailable")
            assert "recover" in {event["task"] for event in server.events("upkeep.failed")}
        finally:
            parts.postgres.start()


def test_a_clock_of_the_database_that_is_wrong(prometheus: Prometheus, parts: Parts) -> None:
    """It is an hour ahead; each host says by how much it differs."""
    change = (
        "CREATE OR REPLACE FUNCTION service_time() RETURNS timestamptz LANGUAGE sql STABLE RETURN now() + interval '{}'"
    )
    with parts.running() as server:
        parts.postgres.execute(change.format("1 hour"))
        try:
            prometheus.await_alerts("GeomillClocksDiffer")
            assert [event["seconds"] for event in server.events("database.clock_jumped")] == [3600]
        finally:
            parts.postgres.execute(change.format("0"))


def test_converters_that_stand_still(prometheus: Prometheus, parts: Parts) -> None:
    """Files wait, and further ones are rejected."""
    with parts.running() as server, asking(server, small_document(), 8):
        frozen: list[psutil.Process] = []

        def freeze() -> None:
            frozen.extend(below(server))
            send(frozen, signal.SIGSTOP)

        try:
            prometheus.await_alerts("GeomillQueueSlow", "GeomillOverloaded", provoke=freeze)
        finally:
            send(frozen, signal.SIGCONT)


def test_large_files_of_many_accounts(prometheus: Prometheus, parts: Parts) -> None:
    """Each is suspended for the next."""
    with parts.running() as server, asking(server, document(12_000_000), 4, outputFormat="Kml"):
        prometheus.await_alerts("GeomillSuspendedFull")


def test_an_event_loop_that_is_held_up(prometheus: Prometheus, parts: Parts) -> None:
    """The process gets the processor only now and then."""
    with parts.running() as server:

        def hold_up() -> None:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            server.process.send_signal(signal.SIGCONT)

        prometheus.await_alerts("GeomillEventLoopSlow", provoke=hold_up)


def test_a_fork_server_that_is_killed(prometheus: Prometheus, parts: Parts) -> None:
    """Its runs end with it."""
    with parts.running() as server, asking(server, document(1_000_000), 2):
        prometheus.await_alerts(
            "GeomillConvertersFailing", provoke=lambda: send(psutil.Process(server.process.pid).children(), 9)
        )
        assert server.events("sandbox.spawner_lost") or server.events("converter.crashed")


def test_converters_that_are_killed(prometheus: Prometheus, parts: Parts) -> None:
    """By somebody else, again and again."""
    with parts.running() as server, asking(server, document(1_000_000), 2):
        prometheus.await_alerts("GeomillConvertersKilled", provoke=lambda: kill_converters(server))
        assert signal.SIGKILL in {event["signal"] for event in server.events("converter.crashed")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_disk_that_is_full(prometheus: Prometheus, parts: Parts, tmp_path: Path) -> None:
    """A file of 12 MB, and no space for what becomes of it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(tmp_path)], check=True)
    try:
        with parts.running(data_dir=tmp_path) as server, asking(server, document(12_000_000), outputFormat="Kml"):
            prometheus.await_alerts("GeomillDiskFull")
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_files_that_cannot_be_converted(prometheus: Prometheus, parts: Parts) -> None:
    """Most of more than fifty."""
    with parts.running() as server, asking(server, small_document()[:-40], 4):
        prometheus.await_alerts("GeomillMostFilesRejected")
        assert all(event["reason"] for event in server.events("job.failed"))


def test_a_reservation_of_a_dead_process(prometheus: Prometheus, parts: Parts) -> None:
    """Until its lease is over; then another process releases it."""
    with (
        parts.running(settings={"GEOMILL_LEASE_SECONDS": "60"}) as dying,
        parts.running(settings={"GEOMILL_LEASE_SECONDS": "60"}),
        closing(create_account(dying, TERMS)) as client,
    ):
        client.convert("a.geojson", document(20_000_000), headers=ASYNC)
        dying.process.kill()
        prometheus.await_alerts("GeomillReservationsStuck")


def test_two_versions(prometheus: Prometheus, parts: Parts) -> None:
    """Run beside each other."""
    with parts.running(), parts.running(program=("-c", OTHER_VERSION)):
        prometheus.await_alerts("GeomillVersionsDiffer")


def test_a_fleet_without_nats(prometheus: Prometheus, parts: Parts) -> None:
    """Gateways and workers both say so."""
    with parts.fleet() as (_, start):
        start()
        parts.nats.kill()
        try:
            prometheus.await_alerts("GeomillFleetQueueLost")
        finally:
            parts.nats.start()


def test_a_fleet_whose_worker_stands_still(prometheus: Prometheus, parts: Parts) -> None:
    """Jobs wait, and more of them than its converter does in time."""
    with parts.fleet(PATIENT) as (
        gateway,
        start,
    ):
        worker = start()
        with closing(create_account(gateway, TERMS)) as client:
            _await_workers(client)
            worker.process.send_signal(signal.SIGSTOP)

            def promise() -> None:
                client.post(FILE, files={"file": ("a.geojson", small_document())}, headers=ASYNC)

            try:
                prometheus.await_alerts("GeomillFleetQueueSlow", "GeomillFleetTooSmall", provoke=promise)
            finally:
                worker.process.send_signal(signal.SIGCONT)


def test_workers_whose_store_fails(prometheus: Prometheus, parts: Parts) -> None:
    """They pause; whoever waits for them is left waiting."""
    with parts.fleet() as (gateway, start), closing(create_account(gateway, TERMS)) as client:
        start()
        _await_workers(client)
        parts.s3.kill()

        def ask() -> None:
            with suppress(httpx.TimeoutException):
                client.post(FILE, files={"file": ("a.geojson", small_document())}, timeout=1.0)

        try:
            prometheus.await_alerts("GeomillFleetWorkersPaused", provoke=ask)
        finally:
            parts.s3.start()


def test_workers_that_die(prometheus: Prometheus, parts: Parts) -> None:
    """Three at once, with nothing to do; the gateway outlives them."""
    with parts.fleet() as (gateway, start):
        workers = [start() for _ in range(3)]
        for worker in workers:
            worker.process.kill()
        prometheus.await_alerts("GeomillFleetWorkersDying")
        assert sum(event["workers"] for event in gateway.events("workers.lost")) == len(workers)


def test_a_file_that_ends_its_workers(prometheus: Prometheus, parts: Parts) -> None:
    """One after the other, each once a converter has the file; the next one gives it up."""
    with parts.fleet() as (gateway, start), closing(create_account(gateway, TERMS)) as client:
        first = start()
        _await_workers(client)
        fields = {"outputFormat": "Kml"}
        job = str(client.convert("a.geojson", document(12_000_000), headers=ASYNC, **fields)["jobId"])
        for deaths in range(MOST_DEATHS):
            worker = start() if deaths else first
            await_that(partial(anyio.run, _has_begun, parts.postgres.dsn, job, deaths))
            worker.process.kill()
        last = start()
        prometheus.await_alerts("GeomillFleetPoison")
        assert [event["job_id"] for event in last.events("job.poisonous")] == [job]


def test_inputs_that_somebody_deletes(prometheus: Prometheus, parts: Parts) -> None:
    """Each job is tried again and again; the log of the worker names the cause."""
    with parts.fleet(PATIENT) as (gateway, start), ExitStack() as stack:
        worker = start()
        clients = [stack.enter_context(closing(create_account(gateway, TERMS))) for _ in range(4)]
        _await_workers(clients[0])
        worker.process.send_signal(signal.SIGSTOP)
        for client in clients * 3:
            client.convert("a.geojson", small_document(), headers=ASYNC)
        for path in (parts.s3.directory / BUCKET).rglob("in-*"):
            path.unlink()
        worker.process.send_signal(signal.SIGCONT)
        prometheus.await_alerts("GeomillFleetRedelivering")
        assert worker.events("storage.failed")


def test_every_panel_of_the_dashboard_has_data(prometheus: Prometheus, parts: Parts) -> None:
    """While a fleet converts, has refused a request, and has lost its store and its queue for a while."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    missing = {expression.replace("$job", "geomill").replace("$__rate_interval", "30s") for expression in asked}
    with parts.fleet() as (gateway, start):
        start()
        with asking(gateway, small_document()) as [client], parts.running() as server, asking(server, b"{"):

            def look() -> None:
                client.post(FILE)
                client.post(FILE, files={"file": ("a.unknown", b"")})
                for part in (parts.s3, parts.nats):
                    part.kill()
                    time.sleep(5)
                    part.start()
                missing.difference_update([expression for expression in missing if prometheus.has_data(expression)])

            await_that(lambda: not missing, lambda: f"{missing} had no data", look)


async def _has_begun(dsn: str, job_id: str, deaths: int) -> bool:
    """Whether a converter has a job after so many deaths of its workers."""
    async with open_pool(dsn, max_size=1) as database, database.connection() as connection:
        return await connection.fetchval(BEGUN, job_id, deaths) is not None


def _await_workers(client: Client) -> None:
    await_that(lambda: client.get("/api/geo/formats").status_code == httpx.codes.OK)
