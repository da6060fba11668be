"""A worker leaves jobs that it cannot run for later, and does not try them forever."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from sandbox.verdict import Ending, Verdict
from service.app.services import open_services
from service.app.storage import open_storage
from service.clock import utc_now
from service.engine.diagnostics import rejection
from service.errors import StorageUnavailable, TooManyRequests
from service.formats.offer import Availability
from service.ids import JobId, ServerId, uuid7
from service.jobs import deliveries
from service.jobs.handover import READS, VERSION, HandOver, message_of, read_handover, sealed, write_handover
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.lifecycle import Status
from service.jobs.stream import STREAM
from service.jobs.work_queue import WorkQueue, open_work_queue
from service.settings import Settings
from service.storage import bucket, clients
from service.storage.bucket import PROBE_NAMES
from service.storage.port import ObjectKey, new_key
from service.usecases import claimed_jobs, ending, take_over, worker_health
from service.usecases.answers import answer_questions
from service.usecases.audit import audit
from service.usecases.check_readiness import check_readiness
from service.usecases.claimed_jobs import UNFETCHED
from service.usecases.hand_over_again import hand_over_again
from service.usecases.outdated import OUTDATED
from service.usecases.pipeline import CONVERT, Step
from service.usecases.run_job import run_job
from service.usecases.take_over import Worker
from service.usecases.worker_health import probe_means
from tests.fleet.nats import NatsServer, nats_server
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.support.jobs import application
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.relay import CHUNK, Pump, Relay, Way, copy, listening, relayed_database
from tests.support.world import World, parts_of, world
from tests.unit.jobs.test_handover import MESSAGES, SECRET, handover

pytestmark = pytest.mark.xdist_group("queue")
NEVER = 3600.0
ATTEMPTS = 3
RETURNED = 20
"""How many attempts there were before, of workers that returned the job."""
LEASE_SECONDS = 2
POINT = b'{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,2]}}'
SETTLING = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%AS settlement(%'
"""
"""Who waits to settle a job; upkeep may wait for the same table, to prune it. In a transaction it would not change."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NatsServer]:
    """A server with an empty stream, in which workers look more often than usual."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_SECONDS", 0.2)
    monkeypatch.setattr(claimed_jobs, "MOST_ATTEMPTS", ATTEMPTS)
    (tmp_path / "nats").mkdir()
    with nats_server(tmp_path / "nats") as running:
        yield running


@asynccontextmanager
async def working(
    here: World, server: NatsServer, lease_seconds: float = 30.0, converters: int = 1
) -> AsyncIterator[WorkQueue]:
    """A worker with so many converters, and its queue."""
    services, parts = here.services, parts_of(here.services)
    async with open_work_queue(server.url, lease_seconds) as queue, anyio.create_task_group() as tasks:
        worker = Worker(parts, services.leases, queue, converters=converters, lease_seconds=lease_seconds)
        tasks.start_soon(worker.work, services.runner, partial(answer_questions, services))
        with anyio.fail_after(PATIENCE_SECONDS):
            yield queue
        await worker.leave()


async def admitted(here: World, content: bytes | None, size_bytes: int = 2) -> HandOver:
    """A job with a reservation that another process hands over; without `content`, its input does not exist."""
    job_id, told = JobId(uuid7(utc_now())), handover(content)
    gateway = Leases(here.services.database, told.gateway, timedelta(seconds=30))
    await gateway.beat()  # until the job is handed over, it would fail without its gateway
    key = new_key()
    admission = await here.services.ledger.admit(
        application(here.account.account_id, size_bytes, job_id, told.gateway, key)
    )
    assert admission is not None
    async with here.services.database.connection() as connection:  # so that it survives who admitted it
        missing = new_key() if content is None else None
        await connection.execute("UPDATE job SET handover = '', input_key = $2 WHERE id = $1", job_id, missing)
    await gateway.give_up()
    job = msgspec.structs.replace(told.job, id=job_id, input_size_bytes=size_bytes)
    return sealed(msgspec.structs.replace(told, job=job, account_id=here.account.account_id), key)


async def put_input(here: World, told: HandOver, directory: Path, content: bytes) -> None:
    """Put this into the store as the input of a job."""
    async with here.services.database.connection() as connection:
        await connection.execute("UPDATE job SET input_key = $2 WHERE id = $1", told.job.id, key := new_key())
    (directory / "input").write_bytes(content)
    await here.services.storage.put(key, directory / "input", media_type="", download_name="a")


async def until_empty(queue: WorkQueue, left: int = 0) -> None:
    """Wait until all messages except this many are acknowledged."""
    while await queue.check() > left:  # noqa: ASYNC110 -- the server does not tell
        await anyio.sleep(0.02)


async def test_what_cannot_be_fetched_is_left_for_later(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the worker handles other messages, and removes those that cannot be decoded."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", NEVER)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        unfetchable = await admitted(here, None)
        await queue.offer(message_of(unfetchable))
        job_id, account_id = unfetchable.job.id, here.account.account_id
        async with here.services.database.connection() as connection:
            while not await connection.fetchval(  # noqa: ASYNC110 -- another process comes there
                "SELECT attempt = 2 AND worker_id IS NULL FROM job WHERE id = $1", job_id
            ):
                await anyio.sleep(0.02)
        for _ in range(ATTEMPTS):
            await queue._stream.publish(f"geomill.convert.{unfetchable.lane}.{uuid7(utc_now())}", b"damaged")
            await until_empty(queue, left=1)
        job = await here.services.jobs.find(job_id, account_id)
        assert (job.status, job.attempt) == (Status.PENDING, 2)


@pytest.mark.parametrize("has_disk", [True, False])
async def test_no_cause_is_tried_without_end(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch, *, has_disk: bool
) -> None:
    """With an input missing from the store, or a host without a work directory; it is free, and no place is kept.

    Only attempts that a fault ends are counted: not those of workers that returned the job for other reasons.
    """
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.0)
    if has_disk:  # a missing input says nothing about the worker
        monkeypatch.setattr(worker_health, "MOST_FAILURES", 1)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        if not has_disk:
            monkeypatch.setattr(here.services.work_area, "_in_memory", tmp_path / "gone")
            monkeypatch.setattr(here.services.work_area, "_on_disk", tmp_path / "gone")
        told = await admitted(here, None if has_disk else b"{}")
        async with here.services.database.connection() as connection:
            await connection.execute("UPDATE job SET attempt = $2 WHERE id = $1", told.job.id, RETURNED)
        with capture_logs() as log:
            await queue.offer(message_of(told))
            await until_empty(queue)
        assert not failures(log)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt, job.error_message) == (Status.FAILED, RETURNED + ATTEMPTS, UNFETCHED)
        assert await here.services.ledger.reservations() == 0
        assert not here.services.pool.queue.places_taken


async def test_a_part_of_an_input_is_not_converted(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store has left of it may be a whole file: its account would be charged for a part of its data."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.0)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        told = await admitted(here, None, len(POINT) + 1)
        await put_input(here, told, tmp_path, POINT)
        await queue.offer(message_of(told))
        await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt, job.error_message) == (Status.FAILED, 1 + ATTEMPTS, UNFETCHED)
        assert await here.services.ledger.reservations() == 0


async def test_what_others_tell_of_a_job_is_not_converted(
    database_url: str, tmp_path: Path, server: NatsServer
) -> None:
    """They know its ids, but have no seal, or that of other content; the job keeps its attempts."""
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        told = await admitted(here, POINT)
        for forged in (
            msgspec.structs.replace(told, seal=b""),
            msgspec.structs.replace(told, content=POINT.replace(b"1", b"9")),
        ):
            await queue._stream.publish(f"geomill.convert.{told.lane}.{told.job.id}", write_handover(forged))
            await until_empty(queue)
            job = await here.services.jobs.find(told.job.id, here.account.account_id)
            assert (job.status, job.attempt) == (Status.PENDING, 1)
        await queue.offer(message_of(told))
        await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 2)


async def test_a_job_that_the_previous_version_has_handed_over_is_converted(
    database_url: str, tmp_path: Path, server: NatsServer
) -> None:
    """From the bytes that it wrote; so workers can be updated before gateways, and promised jobs survive both."""
    message = (MESSAGES / f"{READS[0]}.msgpack").read_bytes()
    told = read_handover(message)
    assert told is not None
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        copy = "SELECT (jsonb_populate_record(a, jsonb_build_object('id', $2::uuid))).* FROM account a WHERE id = $1"
        async with here.services.database.connection() as connection:
            await connection.execute(f"INSERT INTO account {copy}", here.account.account_id, told.account_id)
        await here.services.ledger.admit(
            application(told.account_id, told.job.input_size_bytes, told.job.id, told.gateway, ObjectKey(SECRET))
        )
        handovers = HandOvers(here.services.database, told.gateway, timedelta(seconds=30))
        assert await handovers.record(msgspec.structs.replace(message_of(told), data=message))
        async with here.services.database.connection() as connection:  # nobody has it written again
            await connection.execute("UPDATE job SET created_at = $2 WHERE id = $1", told.job.id, told.job.created_at)
        assert await hand_over_again(handovers, queue, NEVER) == 1
        await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, told.account_id)
        assert (job.status, job.feature_count) == (Status.COMPLETED, 1)


@pytest.mark.parametrize("has_another", [False, True])
async def test_a_job_whose_claim_was_undone_is_left_to_others(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch, *, has_another: bool
) -> None:
    """By a crash of PostgreSQL, while the file was converted. Another worker may have the same attempt since."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.05)
    secured, goes_on = anyio.Event(), anyio.Event()
    async with world(database_url, tmp_path / "data") as here:
        ledger, database = here.services.ledger, here.services.database
        is_durable = ledger.is_durable

        async def wait_before(job_id: JobId, attempt: int) -> bool:
            secured.set()
            await goes_on.wait()
            return await is_durable(job_id, attempt)

        monkeypatch.setattr(ledger, "is_durable", wait_before)
        giving_back = msgspec.structs.replace(parts_of(here.services), gives_back=True)
        monkeypatch.setattr(here.services.runner, "_run_job", partial(run_job, giving_back))
        ledger.note_claim(JobId(uuid7(utc_now())), 2, is_durable=False)  # as if it had another job
        async with working(here, server) as queue:
            told = await admitted(here, POINT)
            await queue.offer(message_of(told))
            await secured.wait()
            other = Leases(database, ServerId(uuid7(utc_now())), timedelta(seconds=30))
            await other.beat()
            undo = "UPDATE job SET attempt = 1, worker_id = NULL WHERE id = $1 AND worker_id = $2 RETURNING attempt"
            assert await database.fetchval(undo, told.job.id, here.services.leases.server_id) == 1
            if has_another:
                claim = await other.claim(told.job.id, told.account_id, told.gateway, new_key())
                assert (claim.verdict, claim.attempt) == ("claimed", 2)
            goes_on.set()
            while not await redelivered(queue, told.lane):  # noqa: ASYNC110 -- the server does not tell
                await anyio.sleep(0.02)
            assert not has_another or not await here.stored()
            await other.give_up()
            await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 3 if has_another else 2)
        assert await audit(database, here.services.storage) == []


@pytest.mark.parametrize("is_sealed", [True, False])
async def test_a_job_that_no_worker_understands_ends(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch, *, is_sealed: bool
) -> None:
    """Free, and says so, if its gateway has sealed the message, as for a client that waits, or has recorded it.

    Until then it is left to living workers of an older version, whatever others send of it.
    """
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.05)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        told = await admitted(here, None)
        subject = f"geomill.convert.{told.lane}.{told.job.id}"
        message, forged = (msgspec.msgpack.encode({"version": 1, "by": by}) for by in ("gateway", "others"))
        async with here.services.database.connection() as connection:
            if is_sealed:
                secret = await connection.fetchval("SELECT object_key FROM job WHERE id = $1", told.job.id)
                old = msgspec.structs.replace(told, version=1)
                message, forged = (write_handover(sealed(old, by)) for by in (secret, SECRET))
            else:
                await connection.execute("UPDATE job SET handover = $2 WHERE id = $1", told.job.id, message)
            await connection.execute(
                "INSERT INTO server (id, started_at, heartbeat_at, formats, reads)"
                " VALUES (gen_random_uuid(), now(), now(), '[]', '{1}')"
            )

            async def is_left(message: bytes) -> None:
                await queue._stream.publish(subject, message)
                while not await redelivered(queue, told.lane):  # noqa: ASYNC110 -- the server does not tell
                    await anyio.sleep(0.02)
                assert (await here.services.jobs.find(told.job.id, here.account.account_id)).status is Status.PENDING

            await is_left(message)
            await queue._stream.purge_stream(STREAM)
            await connection.execute("DELETE FROM server WHERE reads = '{1}'")
            await is_left(forged)
        await queue._stream.purge_stream(STREAM)
        await queue._stream.publish(subject, message)
        await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.error_message) == (Status.FAILED, OUTDATED)
        assert await here.services.ledger.reservations() == 0


async def test_a_job_is_left_to_a_worker_that_has_its_formats(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not claimed before; once there is no such worker any more, it fails free and says why."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.05)
    async with world(database_url, tmp_path / "data") as here:
        other = Leases(here.services.database, ServerId(uuid7(utc_now())), timedelta(seconds=30), lose_csv(here))
        await other.beat()
        async with working(here, server) as queue:
            told = await admitted(here, POINT)
            await queue.offer(message_of(told))
            while not await redelivered(queue, told.lane):  # noqa: ASYNC110 -- the server does not tell
                await anyio.sleep(0.02)
            assert (await here.services.jobs.find(told.job.id, here.account.account_id)).attempt == 1
            await other.give_up()
            await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert job.status is Status.FAILED
        assert job.error_message is not None
        assert job.error_message.startswith("CSV cannot be written on this host: ")
        assert await here.services.ledger.reservations() == 0


def lose_csv(here: World) -> Sequence[Availability]:
    """Have this host only read CSV; return the formats that it had."""
    capabilities = here.services.engine.capabilities
    drivers = {**capabilities.drivers, "CSV": "ro"}
    here.services.engine.capabilities = msgspec.structs.replace(capabilities, drivers=drivers)
    return capabilities.formats


async def redelivered(queue: WorkQueue, lane: str) -> bool:
    """Whether a message was delivered more than once."""
    return bool((await queue._stream.consumer_info(STREAM, lane.replace(".", "-"))).num_redelivered)


async def test_a_worker_without_its_store_takes_no_jobs(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has failed a few times; once a probe succeeds, it does what is left."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.0)
    monkeypatch.setattr(claimed_jobs, "MOST_ATTEMPTS", 1000)
    monkeypatch.setattr(worker_health, "PAUSE_SECONDS", 0.05)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        store, away = tmp_path / "data" / "store", tmp_path / "away"
        stored = await admitted(here, None, len(POINT))
        await put_input(here, stored, tmp_path, POINT)
        store.rename(away)
        store.touch()
        with capture_logs() as log:
            await queue.offer(message_of(stored))
            await until(lambda: failures(log) > 0)
            await queue.offer(message_of(waiting := await admitted(here, POINT)))
            before = failures(log)
            await until(lambda: failures(log) > before + 2)
        assert (await here.services.jobs.find(waiting.job.id, here.account.account_id)).attempt == 1
        store.unlink()
        away.rename(store)
        await until_empty(queue)
        for told in (stored, waiting):
            job = await here.services.jobs.find(told.job.id, here.account.account_id)
            assert job.status is Status.COMPLETED


@pytest.mark.parametrize("full_for", [2, 100])
async def test_a_job_that_has_no_room_here_is_left_to_others(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch, full_for: int
) -> None:
    """But not without end, because it may need more room than any worker has."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 0.0)
    monkeypatch.setattr(worker_health, "PAUSE_SECONDS", 0.05)
    disk_full = rejection(Verdict(ending=Ending.DISK_FULL))
    attempts = 0

    async def find_room(_bench: object, record: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts <= full_for:
            raise disk_full
        return record

    first = Step(find_room, CONVERT[0].failures)
    monkeypatch.setattr("service.usecases.run_job.CONVERT", (first, *CONVERT))
    async with world(database_url, tmp_path / "data") as here:
        giving_back = msgspec.structs.replace(parts_of(here.services), gives_back=True)
        monkeypatch.setattr(here.services.runner, "_run_job", partial(run_job, giving_back))
        async with working(here, server) as queue:
            told, before = await admitted(here, POINT), deliveries_again()
            await queue.offer(message_of(told))
            await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert attempts == 3
        assert deliveries_again() - before == 2 * (take_over.TIMES_LEFT_TO_OTHERS + 1)
        assert job.status is (Status.COMPLETED if full_for == 2 else Status.FAILED)
        assert job.error_message == (None if full_for == 2 else disk_full.message)
        assert await here.services.ledger.reservations() == 0
        assert await audit(here.services.database, here.services.storage) == []


def deliveries_again() -> float:
    """How often this process was given a job that was delivered before."""
    return REGISTRY.get_sample_value("geomill_fleet_deliveries_total", {"delivery": "again"}) or 0.0


def failures(log: list[Any]) -> int:
    """How often the worker has said that it takes no jobs."""
    return sum(entry["event"] == "worker.paused" for entry in log)


@pytest.mark.parametrize("right", ["HEAD", "DELETE"])
async def test_a_worker_needs_no_right_to_list_or_delete(
    database_url: str, tmp_path: Path, server: NatsServer, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to take jobs again after a fault of its store, nor to be ready; probes of many leave few objects."""
    for module in (bucket, clients):  # a busy host is no fault of the store
        monkeypatch.setattr(module, "PROBE", msgspec.structs.replace(clients.PROBE, timeout_seconds=60))
    (tmp_path / "s3").mkdir()
    with s3_server(tmp_path / "s3") as s3:
        async with without_right(s3, right) as url:
            settings = Settings(
                data_dir=str(tmp_path / "data"),
                database_url=database_url,
                nats_url=server.url,
                s3_endpoint=url,
                s3_bucket=BUCKET,
                s3_access_key=ACCESS_KEY,
                s3_secret_key=SECRET_KEY,
            )
            async with open_services(settings, role="worker") as services:
                with pytest.raises(StorageUnavailable):
                    await (services.storage.check() if right == "HEAD" else services.storage.delete([new_key()]))
                for _ in range(PROBE_NAMES):
                    async with open_storage(settings) as storage:
                        await storage.check_objects()
                await probe_means(parts_of(services), services.leases)
                assert (await check_readiness(services)).checks["storage"] == "ok"
                assert await audit(services.database, services.storage) == []
        assert 1 <= len([name for name in s3.files() if name.startswith("probe-")]) <= PROBE_NAMES


class Refusing(Relay):
    """A relay that refuses requests that begin in certain ways, as a server does whose policy denies them."""

    def __init__(self, s3: S3Server, refused: tuple[bytes, ...]) -> None:
        super().__init__(lambda: asyncio.open_connection(*s3.host_and_port()))
        self._refused = refused

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """See `Relay`."""
        return self._up(*up, down[1]), copy(*down)

    async def _up(
        self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter, to_client: asyncio.StreamWriter
    ) -> None:
        while chunk := await reader.read(CHUNK):
            if chunk.startswith(self._refused):
                to_client.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            else:
                to_server.write(chunk)


@asynccontextmanager
async def without_right(s3: S3Server, right: str) -> AsyncIterator[str]:
    """The address of the server for those who may not list the bucket, so that HeadBucket is refused, or not delete."""
    refused = {"HEAD": (f"HEAD /{BUCKET} ",), "DELETE": (f"DELETE /{BUCKET}/", f"POST /{BUCKET}?delete")}[right]
    relay = Refusing(s3, tuple(start.encode() for start in refused))
    async with listening(relay) as port:
        yield f"http://127.0.0.1:{port}"


async def test_a_worker_without_the_database_leaves_its_jobs_to_others(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches the queue, but cannot end what it has claimed: once its lease is over, it keeps no message."""
    monkeypatch.setattr(ending, "DATABASE_RETRY_SECONDS", NEVER)
    settings = {"lease_seconds": LEASE_SECONDS}
    async with (
        relayed_database(database_url, tmp_path) as (relay, relayed),
        world(database_url, tmp_path / "data", settings=settings) as here,
    ):
        async with (
            world(relayed, tmp_path / "data", settings=settings) as away,
            working(away, server, LEASE_SECONDS) as queue,
        ):
            try:
                told = await admitted(here, POINT)
                database = here.services.database
                async with database.transaction() as holder, database.connection() as observer:
                    await holder.execute("LOCK TABLE ledger IN SHARE MODE")  # so that the job cannot be settled
                    await queue.offer(message_of(told))
                    while not await observer.fetch(SETTLING):  # noqa: ASYNC110 -- nothing announces it
                        await anyio.sleep(0.02)
                    relay.silence(new=True)
                    await observer.execute(f"SELECT pg_terminate_backend(pid) FROM ({SETTLING}) AS settling")  # noqa: S608 -- ours
                async with working(here, server, LEASE_SECONDS) as other_queue:
                    while await other_queue.check():  # a heartbeat on its way may come after the time was moved
                        await here.advance(timedelta(seconds=2 * LEASE_SECONDS))
                        with anyio.move_on_after(10 * LEASE_SECONDS):
                            await until_empty(other_queue)
            finally:  # the worker never stops trying to end its job
                relay.mend()
                await relay.close()  # rather than that each statement on a silent connection runs into its limit
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 3)


async def test_what_a_worker_leaves_to_others_comes_to_them(
    database_url: str, tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers look as often as each other: the one that has returned a job must not always be the first to look."""
    monkeypatch.setattr(take_over, "LATER_SECONDS", 5 * deliveries.LOOK_AGAIN_SECONDS)
    async with world(database_url, tmp_path / "data") as here, working(here, server) as queue:
        told = message_of(await admitted(here, None))
        newer = msgspec.structs.replace(told, data=msgspec.msgpack.encode({"version": VERSION + 1}))
        await queue.offer(newer)
        while not await redelivered(queue, told.lane):  # noqa: ASYNC110 -- the server does not tell
            await anyio.sleep(0.02)
        async with open_work_queue(server.url, 30.0) as other:
            delivery = await other.deliveries.take(lambda: True)
            assert delivery is not None
            assert delivery.data == newer.data
            await delivery.acknowledge()


async def test_an_account_at_its_limit_is_served_nevertheless(
    database_url: str, tmp_path: Path, server: NatsServer
) -> None:
    """The gateway has applied the limit already; the worker has a place and takes the job at the first attempt."""
    settings = {"max_per_account": 1}
    async with world(database_url, tmp_path / "data", settings=settings) as here, working(here, server) as queue:
        [other] = here.services.runner.enqueue(here.account.account_id)
        with pytest.raises(TooManyRequests):
            here.services.runner.enqueue(here.account.account_id)
        told = await admitted(here, POINT)
        await queue.offer(message_of(told))
        await until_empty(queue)
        job = await here.services.jobs.find(told.job.id, here.account.account_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 2)
        here.services.pool.release(other)
