"""A gateway that hands jobs over when its database, store or queue fails: in this process, with a real queue."""

import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec
import nats as nats_client
import pytest
import pytest_asyncio
from nats.js import api

from sandbox.command import Limits
from service.cli.check_parts import check_queue
from service.db.queries import load
from service.errors import Overloaded, QueueUnavailable, StorageUnavailable
from service.formats.offer import Offer
from service.formats.request import ConversionRequest
from service.ids import JobId, ServerId, uuid7
from service.intake.form import Upload
from service.jobs.dispatch import JobRunner, Submission
from service.jobs.handover import HandOver, message_of
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.lifecycle import Status
from service.jobs.notices import Notice, notice_of
from service.jobs.queue_contents import open_contents
from service.jobs.records import Job
from service.jobs.spec import JobSpec, SourceSpec, source_spec
from service.jobs.stream import CONFIG, STIRRED, STREAM
from service.jobs.windows import Windows
from service.jobs.work_queue import WorkQueue, open_work_queue
from service.jobs.workers import MOST_EACH, KnownWorkers
from service.metering.ledger import Release
from service.settings import Settings
from service.storage.port import new_input_key, new_key
from service.telemetry import metrics
from service.usecases import hand_over
from service.usecases.audit import audit
from service.usecases.check_readiness import WITHOUT_SECONDS, check_readiness
from service.usecases.detect_format import detect_format
from service.usecases.ending import FORGOTTEN, UNREACHED, JobParts
from service.usecases.fleet import know_workers
from service.usecases.hand_over import Converter, Gateway
from service.usecases.hand_over_again import hand_over_again, hand_over_dropped
from service.usecases.run_job import run_job
from service.usecases.services import Fleet
from service.usecases.shutdown import begin_shutdown, end_jobs
from service.usecases.take_over import Worker
from tests.fleet.nats import NatsServer, caught_up, nats_server
from tests.sandbox.processes import state_of
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.geomill import Geomill
from tests.support.jobs import application
from tests.support.patience import PATIENCE_SECONDS
from tests.support.world import MAY, World, parts_of, world
from tests.unit.jobs.test_handover import handover

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.asyncio(loop_scope="session")]

LEASE = timedelta(seconds=30)
SOON = 0.05
NEVER = 3600.0
MANY = 100
ROUNDS = 5
MOST_INSIDE = 1000
"""Larger inputs are stored."""


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A queue without workers."""
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server


class Here(NamedTuple):
    """A gateway and its service, in this process."""

    world: World
    gateway: Gateway
    queue: WorkQueue
    handovers: HandOvers
    parts: JobParts
    held: ExitStack

    async def admit(self, *, is_promised: bool = False) -> JobSpec:
        """Admit a file, which this process holds from now on: otherwise it would soon end the job."""
        services, job_id, key = self.world.services, JobId(uuid7(MAY)), new_key()
        self.held.enter_context(services.runner.admitting(job_id))
        await services.ledger.admit(
            application(self.world.account.account_id, 2, job_id, services.leases.server_id, key)
        )
        return JobSpec(
            job=await services.jobs.find(job_id, self.world.account.account_id),
            account_id=self.world.account.account_id,
            upload="a.geojson",
            source=SourceSpec(
                format="geojson", parts=(), stem="a", prefix="", options=(), warnings=(), warnings_without={}
            ),
            target="csv",
            request=ConversionRequest(output="csv"),
            retention_hours=4,
            object_key=key,
            is_promised=is_promised,
        )

    async def detected(self, spec: JobSpec, content: bytes) -> JobSpec:
        """Return the specification of a job that can be run with this input."""
        path = (directory := self.world.services.work_area.new_directory()) / spec.upload
        path.write_bytes(content)
        upload = Upload(untrusted_name=path.name, path=path, size_bytes=len(content))
        source = await detect_format(upload, Limits(), self.world.services.work_area.space)
        return msgspec.structs.replace(spec, source=source_spec(source, directory))

    async def run(self, spec: JobSpec, content: bytes = b"{}") -> Job:
        """Hand the job over and wait for its end."""
        services = self.world.services
        directory = services.work_area.new_directory()
        (directory / spec.upload).write_bytes(content)
        [ticket] = services.runner.enqueue(spec.account_id)
        with services.runner.admitting(spec.job.id):
            return await self.gateway.run(spec, directory, ticket, lambda: None)

    async def record(self) -> HandOver:
        """Admit a file and record its handover without sending it."""
        spec = await self.admit(is_promised=True)
        handover = HandOver(
            job=spec.job,
            account_id=spec.account_id,
            request=spec.request,
            target=spec.target,
            retention_hours=spec.retention_hours,
            gateway=self.handovers.gateway,
        )
        assert await self.handovers.record(message_of(handover))
        return handover

    async def execute(self, statement: str, *arguments: object) -> None:
        """Execute a statement."""
        async with self.world.services.database.connection() as connection:
            await connection.execute(statement, *arguments)

    async def one_waits(self) -> None:
        """Wait until a job waits for a place in the queue."""
        while not any(self.gateway._windows._waiting.values()):  # noqa: ASYNC110 -- nothing announces it
            await anyio.sleep(SOON)

    async def refused(self, *, is_so: bool) -> None:
        """Wait until the queue has not accepted a job, or has accepted it."""
        while self.gateway.is_refused is not is_so:  # noqa: ASYNC110 -- nothing announces it
            await anyio.sleep(SOON)

    async def messages(self, number: int) -> None:
        """Wait until the queue holds this many jobs."""
        while await self.queue.check() != number:  # noqa: ASYNC110 -- nothing announces it
            await anyio.sleep(SOON)


@pytest_asyncio.fixture(loop_scope="session")
async def shared(here: World) -> AsyncIterator[World]:
    """The service that tests share which look only at their own jobs; what they have handed over is nobody's then."""
    yield here
    await here.services.database.execute("UPDATE job SET handover = NULL WHERE completed_at IS NULL")


@asynccontextmanager
async def opened(
    dsn: str,
    directory: Path,
    nats: NatsServer,
    again_seconds: float,
    most: Callable[[], int] = lambda: MANY,
    *,
    converts: bool = False,
) -> AsyncIterator[Here]:
    """Open a service of the test's own, and its gateway as `opened_in` does."""
    async with world(dsn, directory) as own, opened_in(own, nats, again_seconds, most, converts=converts) as here:
        yield here


@asynccontextmanager
async def opened_in(
    here: World,
    nats: NatsServer,
    again_seconds: float,
    most: Callable[[], int] = lambda: MANY,
    *,
    converts: bool = False,
) -> AsyncIterator[Here]:
    """Open a gateway; an account may have `most` jobs queued. If it `converts`, it runs what the queue refuses."""
    async with open_work_queue(nats.url, LEASE.total_seconds()) as queue:
        services = here.services
        parts = parts_of(services)
        giving_back = msgspec.structs.replace(parts, gives_back=True)
        handovers = HandOvers(services.database, services.leases.server_id, LEASE)

        gateway = Gateway(
            parts,
            handovers,
            queue,
            windows=Windows(most),
            inline_bytes=MOST_INSIDE,
            again_seconds=again_seconds,
            converter=Converter(services.leases, *(partial(run_job, each) for each in (parts, giving_back)))
            if converts
            else None,
        )
        await queue.subscribe_to_ends(handovers.gateway, gateway.on_notice)
        with ExitStack() as held:
            yield Here(here, gateway, queue, handovers, parts, held)


async def test_a_job_that_a_crash_has_undone_fails(database_url: str, tmp_path: Path, nats: NatsServer) -> None:
    """Its client hears of it, although no worker can claim the job."""
    async with opened(database_url, tmp_path, nats, SOON) as here:
        spec = await here.admit()
        await here.execute("DELETE FROM job WHERE id = $1", spec.job.id)  # as asynchronous commits are lost
        ended = await here.run(spec)
        assert (ended.status, ended.error_message) == (Status.FAILED, FORGOTTEN)
        found = await here.world.services.jobs.find(spec.job.id, spec.account_id)
        assert (found.status, found.error_message) == (Status.FAILED, FORGOTTEN)


async def test_the_end_of_a_job_is_what_the_database_says(shared: World, nats: NatsServer) -> None:
    """Whatever a message says without the seal of the job. Afterwards the gateway forgets the admission."""
    async with opened_in(shared, nats, NEVER) as here, anyio.create_task_group() as tasks:
        services, ends = here.world.services, list[Job]()
        spec = await here.admit()

        async def wait() -> None:
            ends.append(await here.run(spec))

        already = await here.queue.check()
        tasks.start_soon(wait)
        await here.messages(already + 1)
        await here.queue._connection.publish(f"geomill.ended.{here.handovers.gateway}", b"damaged")
        forged = msgspec.structs.replace(spec.job, status=Status.FAILED, error_message="forged")
        await here.queue.publish_end(here.handovers.gateway, notice_of(forged, "0" * 32))
        await here.queue.publish_end(here.handovers.gateway, Notice(spec.job.id))  # which is not so yet
        await services.ledger.release(Release(job_id=spec.job.id, attempt=1, error_message="no", details={}))
        await here.queue.publish_end(here.handovers.gateway, Notice(spec.job.id))
    assert [(job.status, job.error_message) for job in ends] == [(Status.FAILED, "no")]


async def test_what_a_worker_has_recorded_is_not_looked_up(database_url: str, tmp_path: Path, nats: NatsServer) -> None:
    """The seal of the job shows that it comes from a worker that reads the same database."""
    async with opened(database_url, tmp_path, nats, NEVER) as here, anyio.create_task_group() as tasks:
        spec, ends = await here.admit(), list[Job]()

        async def wait() -> None:
            ends.append(await here.run(spec))

        already = await here.queue.check()
        tasks.start_soon(wait)
        await here.messages(already + 1)
        await here.execute("DELETE FROM job WHERE id = $1", spec.job.id)  # a look would say that it was undone
        told = msgspec.structs.replace(spec.job, status=Status.FAILED, error_message="no")
        await here.queue.publish_end(here.handovers.gateway, notice_of(told, spec.object_key))
    assert [(job.status, job.error_message) for job in ends] == [(Status.FAILED, "no")]


async def test_a_job_is_announced_once(shared: World, nats: NatsServer) -> None:
    """It is offered again only if it has not ended for long: the message has its whole input."""
    async with opened_in(shared, nats, NEVER) as here, await nats_client.connect(nats.url) as worker:
        spec, services = await here.admit(), here.world.services
        announced = await worker.subscribe(f"{STIRRED}.>")
        await caught_up(worker)

        async def end() -> None:
            await announced.next_msg(PATIENCE_SECONDS)
            for _ in range(ROUNDS):  # of what the gateway would do before it offered the job again
                await here.gateway._find_end(spec.job.id)
                await here.queue.check()
            await services.ledger.release(Release(job_id=spec.job.id, attempt=1, error_message="no", details={}))
            await here.queue.publish_end(here.handovers.gateway, Notice(spec.job.id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            assert (await here.run(spec)).error_message == "no"
        await caught_up(here.queue._connection)
        await caught_up(worker)
        assert announced.pending_msgs == 0


async def test_a_doubtful_job_that_has_ended_is_not_converted(shared: World, nats: NatsServer) -> None:
    """Its client has cancelled it while it waited for a converter; two workers may have died of it."""
    async with opened_in(shared, nats, NEVER) as here:
        services, spec = here.world.services, await here.admit()
        await services.ledger.release(Release(job_id=spec.job.id, attempt=1, error_message="no", details={}))
        path = (directory := services.work_area.new_directory()) / spec.upload
        path.write_bytes(lakes())
        upload = Upload(untrusted_name=path.name, path=path, size_bytes=len(lakes()))
        source = await detect_format(upload, Limits(), services.work_area.space)
        spec = msgspec.structs.replace(spec, source=source_spec(source, directory), is_doubtful=True)
        [ticket] = services.runner.enqueue(spec.account_id)
        before = converter_runs()
        ended = await run_job(here.parts, spec, directory, ticket, lambda: None)
        assert (ended.status, ended.error_message) == (Status.FAILED, "no")
        assert converter_runs() == before


def converter_runs() -> float:
    """How many commands converters have run."""
    return sum(sample.value for family in metrics.CONVERTER_RUNS.collect() for sample in family.samples)


async def test_an_ended_job_is_forgotten(shared: World, nats: NatsServer) -> None:
    """Otherwise a gateway would keep some memory for each job."""
    async with opened_in(shared, nats, SOON) as here:
        spec, services = await here.admit(), here.world.services
        worker = Leases(services.database, ServerId(uuid4()), LEASE)
        await worker.claim(spec.job.id, spec.account_id, services.leases.server_id, new_key())
        release = "SELECT release_job($1, 2, 'no', '{}', NULL, NULL, NULL, NULL, false)"
        await here.execute(release, spec.job.id)  # by the worker, in its process
        assert (await here.run(spec)).status is Status.FAILED
        assert not await services.ledger.is_durable(spec.job.id)  # it asks the database, because it knows nothing


async def test_a_job_that_was_not_handed_over_yet_fails(shared: World, nats: NatsServer) -> None:
    """The gateway stops while it stores the input of a job that it has not yet promised."""
    async with opened_in(shared, nats, NEVER) as here:
        spec, services = await here.admit(is_promised=True), here.world.services
        waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        stopped = anyio.CancelScope()

        async def run() -> None:
            with stopped:
                await here.run(spec)

        async with (
            anyio.create_task_group() as tasks,
            services.database.transaction() as holder,
            services.database.connection() as observer,  # a transaction would see those who wait as they were at first
        ):
            await holder.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", spec.job.id)
            tasks.start_soon(run)
            while not await observer.fetch(waiting):  # noqa: ASYNC110 -- nothing announces it
                await anyio.sleep(SOON)
            stopped.cancel()
        assert (await services.jobs.find(spec.job.id, spec.account_id)).status is Status.FAILED


async def test_a_job_that_is_lost_before_it_is_kept_is_not_promised() -> None:
    """The client gets 503 instead of 202; a job that is lost later stays promised."""
    job = Job(
        id=JobId(uuid4()),
        status=Status.PENDING,
        original_file_name="a",
        input_format=None,
        output_format=None,
        input_size_bytes=1,
        created_at=MAY,
    )
    lost, kept = Submission(job), Submission(job)
    lost.mark_lost()
    with pytest.raises(Overloaded, match="again"):
        await lost.kept()
    kept.keep()
    kept.mark_lost()
    await kept.kept()


async def test_who_waits_for_a_job_learns_that_the_store_has_failed(
    shared: World, tmp_path: Path, nats: NatsServer
) -> None:
    """And not that the service restarts, which nobody who looks for the cause could find."""

    async def run(*_: object, **_named: object) -> NoReturn:
        raise StorageUnavailable("down", "refused")

    async with opened_in(shared, nats, NEVER) as here, anyio.create_task_group() as tasks:
        services, spec = here.world.services, await here.admit()
        runner = JobRunner(services.pool, run, tasks, lambda: 1, services.ends)
        submission = runner.submit(spec, tmp_path, *runner.enqueue(spec.account_id))
        for waiting in (submission.kept, submission.outcome):
            with pytest.raises(Overloaded, match="store of results"):
                await waiting()


async def test_the_audit_misses_the_input_of_a_job_that_waits(
    database_url: str, tmp_path: Path, nats: NatsServer
) -> None:
    """Until the job has ended; a job whose input travels with its message misses none."""
    async with opened(database_url, tmp_path, nats, NEVER) as here:
        services, told = here.world.services, await here.record()
        assert await audit(services.database, services.storage) == []
        assert await here.handovers.record_input(told.job.id, new_input_key(new_key()))
        differences = await audit(services.database, services.storage)
        assert differences == [f"The input of job {told.job.id} is not in the store."]
        await services.ledger.release(Release(job_id=told.job.id, attempt=1, error_message="no", details={}))
        assert await audit(services.database, services.storage) == []


async def test_the_audit_compares_the_queue_with_the_jobs(database_url: str, tmp_path: Path) -> None:
    """What a living gateway hands over itself is no difference, nor the message of a cancelled job.

    `geomill reconcile` hands over what has no message, and removes what belongs to no job; not from a queue of others.
    """
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        settings = {"GEOMILL_DATABASE_URL": database_url, "GEOMILL_NATS_URL": nats.url}
        geomill = Geomill(tmp_path / "service", settings)
        async with opened(database_url, tmp_path / "service", nats, NEVER) as here:
            held, lost, there, cancelled = [await here.record() for _ in range(4)]
            await here.execute("UPDATE job SET server_id = gen_random_uuid() WHERE id <> $1", held.job.id)
            await here.queue.offer(message_of(stray := handover()))
            refused = await anyio.to_thread.run_sync(geomill, "reconcile")
            assert (refused.returncode, "--force" in refused.stderr) == (1, True), refused.stderr
            for told in (there, cancelled):
                await here.queue.offer(message_of(told))
            release = Release(job_id=cancelled.job.id, attempt=1, error_message="no", details={})
            await here.world.services.ledger.release(release)
            subject = f"geomill.convert.{stray.lane}.{stray.job.id}"
            found = await anyio.to_thread.run_sync(geomill, "audit", "--json")
            assert json.loads(found.stdout)["differences"] == [
                f"The message {subject} in the queue belongs to no job.",
                f"The job {lost.job.id} waits for a worker, but has no message in the queue.",
            ]
            mended = json.loads((await anyio.to_thread.run_sync(geomill, "reconcile", "--json")).stdout)
            assert (mended["handedOverJobs"], mended["deletedMessages"]) == ([str(lost.job.id)], [subject])
            async with open_contents(nats.url, LEASE.total_seconds()) as contents:
                assert set((await contents.jobs()).values()) == {told.job.id for told in (lost, there, cancelled)}
            of_queue = partial(open_contents, nats.url, LEASE.total_seconds())
            assert await audit(here.world.services.database, here.world.services.storage, of_queue) == []


async def test_a_queue_that_fails_does_not_conceal_what_was_done(database_url: str, tmp_path: Path) -> None:
    """`geomill reconcile` names the job that the queue had room for, and says that the rest is left to do."""
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        settings = {"GEOMILL_DATABASE_URL": database_url, "GEOMILL_NATS_URL": nats.url}
        geomill = Geomill(tmp_path / "service", settings)
        async with opened(database_url, tmp_path / "service", nats, NEVER) as here:
            lost = {str((await here.record()).job.id) for _ in range(3)}
            await here.execute("UPDATE job SET server_id = gen_random_uuid()")
            async with await nats_client.connect(nats.url) as operator:
                config = (await operator.jetstream().stream_info(STREAM)).config
                await operator.jetstream().update_stream(config, max_msgs=1)
            failed = await anyio.to_thread.run_sync(geomill, "reconcile", "--json")
            told = json.loads(failed.stdout)
            assert (failed.returncode, len(told["handedOverJobs"])) == (1, 1), failed
            assert {*told["handedOverJobs"]} < lost
            [difference] = told["differences"]
            assert difference.startswith("The queue could not be made to agree with the jobs: ")
            assert "maximum messages exceeded" in difference


async def test_a_lost_queue_is_filled_again_at_once(database_url: str, tmp_path: Path) -> None:
    """In full, although the first jobs looked at are there; an interrupted look is repeated."""
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        async with opened(database_url, tmp_path / "service", nats, NEVER) as here:
            jobs = sorted([await here.record() for _ in range(4)], key=lambda one: one.job.id)
            assert await hand_over_again(here.handovers, here.queue, NEVER) == 0  # their own gateway lives
            await here.execute("UPDATE job SET server_id = gen_random_uuid()")
            assert await here.queue.offer(message_of(jobs[0]))
            assert await here.handovers.unclaimed(at_once=1) == await here.handovers.unclaimed(at_once=1)
            assert await hand_over_again(here.handovers, here.queue, NEVER, at_once=1) == len(jobs) - 1
            assert await hand_over_again(here.handovers, here.queue, NEVER, at_once=1) == 0
            assert await here.queue.check() == len(jobs)


async def test_a_gateway_hands_over_again_what_it_has_dropped(shared: World, nats: NatsServer) -> None:
    """And not what still waits for its turn there."""
    async with opened_in(shared, nats, NEVER) as here:
        waits, dropped, before = await here.record(), await here.record(), await here.queue.check()
        assert await hand_over_dropped(here.handovers, here.queue, [waits.job.id, dropped.job.id]) == 0
        assert await hand_over_dropped(here.handovers, here.queue, [waits.job.id]) == 1
        assert await here.queue.check() == before + 1


async def test_an_input_that_no_message_may_contain_is_stored(database_url: str, tmp_path: Path) -> None:
    """The server's limit is below GEOMILL_INLINE_BYTES; otherwise it would refuse the message forever."""
    (directory := tmp_path / "nats").mkdir()
    (config := directory / "limits.conf").write_text("max_payload: 2KB\n")
    with nats_server(directory, options=("-c", str(config))) as nats:
        async with (
            opened(database_url, tmp_path / "service", nats, NEVER) as here,
            anyio.create_task_group() as tasks,
        ):
            spec = await here.admit()
            large = msgspec.structs.replace(spec, job=msgspec.structs.replace(spec.job, input_size_bytes=1000))
            small = await here.admit()
            for one in (large, small):
                tasks.start_soon(here.run, one, bytes(one.job.input_size_bytes))
            found = "SELECT id FROM job WHERE input_key IS NOT NULL"
            async with here.world.services.database.connection() as connection:
                while not (stored := await connection.fetch(found)):  # noqa: ASYNC110 -- nothing announces it
                    await anyio.sleep(SOON)
            assert [row["id"] for row in stored] == [large.job.id]
            await here.messages(2)  # of both: that of the large one names its input
            tasks.cancel_scope.cancel()


async def test_an_input_that_no_message_may_contain_any_more_is_stored(database_url: str, tmp_path: Path) -> None:
    """The server has lost the job, and comes back with a lower limit: it would refuse the message forever."""
    (directory := tmp_path / "nats").mkdir()
    (config := directory / "limits.conf").write_text("max_payload: 1MB\n")
    with nats_server(directory, options=("-c", str(config))) as nats:
        async with (
            opened(database_url, tmp_path / "service", nats, SOON) as here,
            anyio.create_task_group() as tasks,
        ):
            spec = await here.admit()
            spec = msgspec.structs.replace(spec, job=msgspec.structs.replace(spec.job, input_size_bytes=1000))
            tasks.start_soon(here.run, spec, bytes(1000))
            await here.messages(1)
            nats.kill()
            nats.lose_data()
            config.write_text("max_payload: 1KB\n")
            nats.start()
            with anyio.fail_after(PATIENCE_SECONDS):
                while not await here.world.services.database.fetchval(  # noqa: ASYNC110 -- nothing announces it
                    "SELECT handover IS NOT NULL FROM job WHERE id = $1", spec.job.id
                ):
                    await anyio.sleep(SOON)
                while True:
                    with suppress(QueueUnavailable):
                        await here.messages(1)
                        break
            tasks.cancel_scope.cancel()


async def test_a_job_whose_input_cannot_be_stored_is_one_that_the_service_has_interrupted(
    database_url: str, tmp_path: Path, nats: NatsServer
) -> None:
    """A repeat with its key hands it over once the store is back."""
    async with opened(database_url, tmp_path, nats, NEVER) as here:
        spec = await here.admit()
        large = msgspec.structs.replace(spec, job=msgspec.structs.replace(spec.job, input_size_bytes=2000))
        store = tmp_path / "store"
        store.rename(tmp_path / "away")
        assert (await here.run(large, bytes(2000))).status is Status.FAILED
        (tmp_path / "away").rename(store)
        assert await here.world.services.database.fetchval("SELECT interrupted FROM job WHERE id = $1", spec.job.id)


async def test_a_limit_of_messages_that_is_too_small_is_named(tmp_path: Path, nats: NatsServer) -> None:
    """By `geomill doctor`, which compares it with GEOMILL_INLINE_BYTES."""
    (config := tmp_path / "limits.conf").write_text("max_payload: 64KB\n")
    with nats_server(tmp_path, options=("-c", str(config))) as limited:
        for server, expected in ((limited, "warn"), (nats, "ok")):
            found = {one.name: one.state async for one in check_queue(Settings(nats_url=server.url), "gateway")}
            assert found["message size"] == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, {"message size": "ok", "stream": "ok"}),
        ({"max_msgs": 10**6, "max_bytes": 10**9}, {"message size": "ok", "stream": "ok"}),
        ({"max_msgs": 1}, {"message size": "ok", "stream": "fail"}),
        ({"max_bytes": 1}, {"message size": "ok", "stream": "fail"}),
        ({"max_msg_size": 100}, {"message size": "fail", "stream": "ok"}),
        ({"max_age": 60.0}, {"message size": "ok", "stream": "ok", "limits of the stream": "warn"}),
        (
            {"discard": api.DiscardPolicy.OLD, "discard_new_per_subject": False},
            {"message size": "ok", "stream": "ok", "limits of the stream": "warn"},
        ),
    ],
)
async def test_limits_of_a_stream_that_takes_or_keeps_no_jobs_are_named(
    nats: NatsServer, limits: dict[str, Any], expected: dict[str, str]
) -> None:
    """By `geomill doctor`, which finds a stream with one job; an operator may have limited it."""
    async with open_work_queue(nats.url, NEVER) as queue:
        try:
            await queue.offer(message_of(handover()))
            await queue._stream.update_stream(CONFIG.evolve(**limits))
            found = {one.name: one.state async for one in check_queue(Settings(nats_url=nats.url), "gateway")}
            assert {
                name: state for name, state in found.items() if name in {*expected, "limits of the stream"}
            } == expected
        finally:
            await queue._stream.delete_stream(STREAM)


async def test_the_known_jobs_are_hashed(shared: World, nats: NatsServer) -> None:
    """A plan that knows nothing of their number would otherwise compare each job with all of them."""
    async with opened_in(shared, nats, NEVER) as here:
        database, gateway = here.world.services.database, here.handovers.gateway
        async with database.connection() as connection:
            statement = f"EXPLAIN {load('jobs')['dropped']}"
            plan = [row[0] for row in await connection.fetch(statement, gateway, [uuid4(), uuid4()], LEASE, MANY)]
        assert any("hashed SubPlan" in line for line in plan), plan


async def test_further_workers_get_jobs_at_once(shared: World, nats: NatsServer) -> None:
    """They need not wait until another job of the account has ended."""
    known = list[KnownWorkers]()
    async with (
        opened_in(shared, nats, NEVER, lambda: known[0].most_each) as here,
        anyio.create_task_group() as tasks,
    ):
        services, before = here.world.services, await here.queue.check()
        known.append(KnownWorkers(services.leases, Offer()))
        fleet = Fleet(queue=here.queue, handovers=here.handovers, workers=known[0], gateway=here.gateway)
        for _ in range(MOST_EACH + 1):
            tasks.start_soon(here.run, await here.admit())
        await here.messages(before + MOST_EACH)
        await Leases(services.database, ServerId(uuid4()), LEASE, [], converters=2).beat()
        await know_workers(msgspec.structs.replace(services, fleet=fleet))
        await here.messages(before + MOST_EACH + 1)
        tasks.cancel_scope.cancel()


async def test_a_job_that_waits_for_a_place_hears_of_its_end(shared: World, nats: NatsServer) -> None:
    """As when its owner cancels it through another gateway; it does not wait for the job before it."""
    async with (
        opened_in(shared, nats, NEVER, lambda: 1) as here,
        anyio.create_task_group() as tasks,
    ):
        jobs, before = here.world.services.jobs, await here.queue.check()
        tasks.start_soon(here.run, await here.admit())
        await here.messages(before + 1)
        spec, ends = await here.admit(), list[Job]()

        async def wait() -> None:
            ends.append(await here.run(spec))
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait)
        await here.one_waits()
        await here.world.services.ledger.release(Release(job_id=spec.job.id, attempt=1, error_message="no", details={}))
        assert here.gateway.tell(await jobs.find(spec.job.id, spec.account_id))
        with anyio.fail_after(PATIENCE_SECONDS):
            await anyio.sleep_forever()
    assert [(job.id, job.error_message) for job in ends] == [(spec.job.id, "no")]


async def test_a_job_that_waits_for_a_place_runs_here_once_the_queue_is_away(database_url: str, tmp_path: Path) -> None:
    """In a process that converts; the one before it, which the queue has accepted, may be with a worker."""
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        async with (
            opened(database_url, tmp_path / "service", nats, SOON, lambda: 1, converts=True) as here,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(here.run, await here.admit())
            await here.messages(1)
            spec, ends = await here.admit(), list[Job]()
            source = await here.detected(spec, lakes())

            async def wait() -> None:
                ends.append(await here.run(source, lakes()))
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            await here.one_waits()
            nats.kill()
            with anyio.fail_after(PATIENCE_SECONDS):
                await anyio.sleep_forever()
        assert [(job.id, job.status, job.attempt) for job in ends] == [(spec.job.id, Status.COMPLETED, 2)]


@pytest.mark.parametrize(("size_bytes", "is_promised"), [(10, False), (2 * MOST_INSIDE, False), (10, True)])
async def test_a_job_runs_here_if_the_queue_does_not_accept_it(
    shared: World, nats: NatsServer, size_bytes: int, *, is_promised: bool
) -> None:
    """In a process that converts, whatever the size of its input and whether or not its client waits."""
    async with opened_in(shared, nats, NEVER, converts=True) as here, refusing(nats):
        spec = await here.admit(is_promised=is_promised)
        content = lakes().ljust(size_bytes)
        job = msgspec.structs.replace(spec.job, input_size_bytes=len(content))
        spec = await here.detected(msgspec.structs.replace(spec, job=job), content)
        with anyio.fail_after(PATIENCE_SECONDS):
            ended = await here.run(spec, content)
        assert (ended.id, ended.status, ended.attempt) == (spec.job.id, Status.COMPLETED, 2), ended.error_message


@pytest.mark.parametrize(("is_promised", "left"), [(True, Status.PROCESSING), (False, Status.FAILED)])
async def test_a_job_that_runs_here_is_left_to_others_if_they_can_have_it(
    database_url: str, tmp_path: Path, nats: NatsServer, left: Status, *, is_promised: bool
) -> None:
    """When this process stops: if the input is stored. Otherwise the job fails, free."""
    async with (
        opened(database_url, tmp_path, nats, NEVER, converts=True) as here,
        refusing(nats),
        anyio.create_task_group() as tasks,
    ):
        jobs, spec = here.world.services.jobs, await here.admit(is_promised=is_promised)
        spec = await here.detected(msgspec.structs.replace(spec, upload=NAME), content := endless_file())
        tasks.start_soon(here.run, spec, content)
        with anyio.fail_after(PATIENCE_SECONDS):
            while (await jobs.find(spec.job.id, spec.account_id)).status is not Status.PROCESSING:  # noqa: ASYNC110 -- nothing announces it
                await anyio.sleep(SOON)
        tasks.cancel_scope.cancel()
    async with world(database_url, tmp_path) as later:
        assert (await later.services.jobs.find(spec.job.id, spec.account_id)).status is left


@asynccontextmanager
async def refusing(nats: NatsServer) -> AsyncIterator[None]:
    """Let the queue accept no job inside the block, as if its disk were full."""
    async with await nats_client.connect(nats.url) as operator:
        config = (await operator.jetstream().stream_info(STREAM)).config
        await operator.jetstream().update_stream(config.evolve(max_bytes=1))
        try:
            yield
        finally:
            await operator.jetstream().update_stream(config)


async def all_threads_stopped(pid: int) -> None:
    """Wait until a process that was sent SIGSTOP stands still: threads on other processors stop a moment later."""
    threads = Path(f"/proc/{pid}/task")
    while {state_of(int(name)) for name in os.listdir(threads)} != {"T"}:  # noqa: ASYNC110, PTH208 -- the kernel's names
        await anyio.sleep(SOON)


async def test_a_gateway_whose_queue_accepts_nothing_refuses_conversions(shared: World, nats: NatsServer) -> None:
    """And is not ready, although it is connected: the disk of NATS is full, or its stream is."""
    async with opened_in(shared, nats, SOON) as here, anyio.create_task_group() as tasks:
        await Leases(here.world.services.database, ServerId(uuid4()), LEASE, [], converters=1).beat()
        offer = Offer()
        workers = KnownWorkers(here.world.services.leases, offer)
        await workers.look()
        fleet = Fleet(queue=here.queue, handovers=here.handovers, workers=workers, gateway=here.gateway)
        services = msgspec.structs.replace(here.world.services, fleet=fleet, offer=offer)
        async with refusing(nats):
            fleet.require_reachable()
            assert (await check_readiness(services)).ready
            tasks.start_soon(here.run, await here.admit(is_promised=True))
            await here.refused(is_so=True)
            with pytest.raises(QueueUnavailable):
                fleet.require_reachable()
            readiness = await check_readiness(services)
            assert (readiness.ready, readiness.checks["queue"]) == (False, "accepts no jobs: maximum bytes exceeded")
        await here.refused(is_so=False)
        fleet.require_reachable()
        assert (await check_readiness(services)).ready
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("is_silent", [True, False])
async def test_clients_do_not_wait_for_a_queue_that_accepts_nothing(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_silent: bool
) -> None:
    """Whether it says so or does not answer. Their jobs fail free, also those that wait for a place behind others.

    A promised job waits, and is handed over once the queue is back. One that a worker has by then is not failed.
    """
    monkeypatch.setattr(hand_over, "SILENT_SECONDS", SOON)
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        async with (
            opened(database_url, tmp_path / "service", nats, SOON, lambda: 2) as here,
            anyio.create_task_group() as tasks,
        ):
            operator = await nats_client.connect(nats.url)
            config = (await operator.jetstream().stream_info(STREAM)).config
            if is_silent:
                nats.kill()
            else:
                await operator.jetstream().update_stream(config.evolve(max_bytes=1))
            promised, held = await here.admit(is_promised=True), await here.admit()
            worker = Leases(here.world.services.database, ServerId(uuid4()), LEASE)
            await worker.beat()
            claim = await worker.claim(held.job.id, held.account_id, here.handovers.gateway, new_key())
            assert claim.verdict == "claimed"
            waiting = [await here.admit() for _ in range(3)]
            refused, all_refused = list[JobId](), anyio.Event()

            async def wait(spec: JobSpec) -> None:
                with pytest.raises(QueueUnavailable):
                    await here.run(spec)
                refused.append(spec.job.id)
                if len(refused) == len(waiting):
                    all_refused.set()

            for spec in (promised, held):  # which have all places
                tasks.start_soon(here.run, spec)
            for spec in waiting:
                tasks.start_soon(wait, spec)
            with anyio.fail_after(PATIENCE_SECONDS):
                await all_refused.wait()
            services = here.world.services
            failed = await services.jobs.of_any(refused)
            assert {(job.status, job.error_message) for job in failed} == {(Status.FAILED, UNREACHED)}
            assert await services.ledger.reservations() == 2
            if is_silent:
                nats.start()
            else:
                await operator.jetstream().update_stream(config)
            with anyio.fail_after(PATIENCE_SECONDS):
                while here.gateway.is_refused or await look(here) != 2:  # noqa: ASYNC110 -- nothing announces it
                    await anyio.sleep(SOON)
            await operator.close()
            tasks.cancel_scope.cancel()


async def look(here: Here) -> int:
    """How many jobs the queue has; none while it cannot be reached."""
    with suppress(QueueUnavailable):
        return await here.queue.check()
    return 0


async def test_a_silent_queue_does_not_delay_readiness(database_url: str, tmp_path: Path) -> None:
    """Of a process that can do without it: its load balancer may wait no longer than a second."""
    (directory := tmp_path / "nats").mkdir()
    with nats_server(directory) as nats:
        async with opened(database_url, tmp_path / "service", nats, NEVER) as here:
            fleet = Fleet(
                queue=here.queue,
                handovers=here.handovers,
                workers=KnownWorkers(here.world.services.leases, Offer()),
                gateway=here.gateway,
                worker=Worker(
                    here.parts,
                    here.world.services.leases,
                    here.queue,
                    converters=1,
                    lease_seconds=LEASE.total_seconds(),
                ),
            )
            services = msgspec.structs.replace(here.world.services, fleet=fleet)
            while not (await check_readiness(services)).ready:  # noqa: ASYNC110 -- nothing announces it
                await anyio.sleep(SOON)
            os.kill(nats.pid, signal.SIGSTOP)
            await all_threads_stopped(nats.pid)
            readiness = await check_readiness(services)
            assert readiness.ready
            assert readiness.checks["queue"] == f"no answer within {WITHOUT_SECONDS:g} seconds"
            os.kill(nats.pid, signal.SIGCONT)


async def test_own_and_claimed_jobs_end_by_the_same_time(database_url: str, tmp_path: Path, nats: NatsServer) -> None:
    """The announced one, however many jobs a process that does everything has of both kinds."""
    async with opened(database_url, tmp_path, nats, NEVER) as here, anyio.create_task_group() as tasks:
        services, queue = here.world.services, here.queue

        async def run(*_: object, **_named: object) -> NoReturn:
            await anyio.sleep_forever()
            raise AssertionError

        own, claimed = (JobRunner(services.pool, run, tasks, lambda: 1, services.ends) for _ in range(2))
        fleet = Fleet(
            queue=queue,
            handovers=here.handovers,
            workers=KnownWorkers(services.leases, services.offer),
            worker=Worker(here.parts, services.leases, queue, converters=1, lease_seconds=NEVER, runner=claimed),
        )
        services = msgspec.structs.replace(services, runner=own, fleet=fleet)
        for runner in services.runners:
            spec = await here.admit()
            runner.submit(spec, services.work_area.new_directory(), runner.readmit(spec.account_id, is_large=False))
        begin_shutdown(services, SOON)
        with anyio.fail_after(PATIENCE_SECONDS):
            await end_jobs(services, NEVER)
