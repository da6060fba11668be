"""Of the workers that wait, one hears of each job, at once, whatever the others do; nobody looks without being told.

Those that have no room hear of each lane once.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from uuid import uuid4

import anyio
import msgspec
import nats
import pytest
from anyio.lowlevel import checkpoint
from nats.aio.msg import Msg

from service.ids import JobId
from service.jobs import deliveries
from service.jobs.announcements import MOST_UNHEARD, WAITING, Announcements, _resume, _stop
from service.jobs.deliveries import Delivery
from service.jobs.handover import LARGE_BYTES, HandOver, message_of
from service.jobs.stream import CONFIG, STIRRED, STREAM, next_of, subject_of
from service.jobs.work_queue import WorkQueue, open_work_queue
from tests.fleet.nats import NatsServer, caught_up, nats_server
from tests.support.patience import PATIENCE_SECONDS, until
from tests.unit.jobs.test_handover import handover

pytestmark = pytest.mark.xdist_group("queue")

LEASE_SECONDS = 30.0
WORKERS = 8
ROUNDS = 20
BURSTS = 60
PASSES = 10
"""More of the event loop than the client needs to write what it was told to send."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all tests of this module."""
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(autouse=True)
def only_announcements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no worker look into lanes because it has not looked for long."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_SECONDS", 10 * PATIENCE_SECONDS)


class Crew:
    """Workers, each with room for one job at a time, and the gateway that hands jobs over to them."""

    def __init__(self, gateway: WorkQueue, workers: list[WorkQueue]) -> None:
        self.gateway = gateway
        self.workers = workers
        self.taken: list[Delivery] = []

    async def take(self, worker: WorkQueue, room: Callable[[], int] = lambda: 1) -> None:
        """Take one job."""
        delivery = await worker.deliveries.take(lambda: True, room)
        assert delivery is not None
        self.taken.append(delivery)
        await delivery.acknowledge()

    async def take_all(self, worker: WorkQueue) -> None:
        """Take one job after the other."""
        while True:
            await self.take(worker)

    async def all_wait(self) -> None:
        """Return when the server knows that all workers wait."""
        await until(lambda: all(map(waits, self.workers)))
        for worker in self.workers:
            await caught_up(worker._connection)

    async def offer(self, *offered: HandOver) -> None:
        """Hand jobs over, at the same time."""
        async with anyio.create_task_group() as tasks:
            for one in offered:
                tasks.start_soon(self.gateway.offer, message_of(one))

    async def have_taken(self, *offered: HandOver) -> None:
        """Return when these jobs were taken."""
        wanted = {one.job.id for one in offered}
        await until(lambda: wanted <= {delivery.job_id for delivery in self.taken})


def waits(worker: WorkQueue) -> bool:
    """Whether a worker is one of those of which one hears of each job."""
    return worker.deliveries._announcements._is_waiting


@asynccontextmanager
async def crew(url: str, workers: int) -> AsyncIterator[Crew]:
    """Such workers on an empty queue."""
    async with AsyncExitStack() as stack:
        gateway, *others = [
            await stack.enter_async_context(open_work_queue(url, LEASE_SECONDS)) for _ in range(1 + workers)
        ]
        try:
            yield Crew(gateway, others)
        finally:
            await gateway._stream.purge_stream(STREAM)


def beside(job: HandOver) -> HandOver:
    """Another job in the same lane."""
    return msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, id=JobId(uuid4())))


def of_size(job: HandOver, size_bytes: int) -> HandOver:
    """The same job, with an input of so many bytes."""
    return msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, input_size_bytes=size_bytes))


async def questions(here: Crew, url: str) -> int:
    """How often workers ask for some jobs, `ROUNDS` of them, which are handed over one after the other."""
    asked = list[str]()

    async def note(message: Msg) -> None:
        asked.append(message.subject)

    async with await nats.connect(url) as listener:
        await listener.subscribe("$JS.API.CONSUMER.MSG.NEXT.>", cb=note)
        await caught_up(listener)
        for _ in range(ROUNDS):
            await here.offer(job := handover())
            await here.have_taken(job)
            await here.all_wait()
        await caught_up(listener)
    return len(asked)


async def test_a_job_takes_few_messages(server: NatsServer) -> None:
    """The gateway sends it; its worker hears of it, asks for it, gets it and acknowledges it."""
    async with crew(server.url, 1) as here, anyio.create_task_group() as tasks:
        [worker] = here.workers
        for _ in range(2):
            tasks.start_soon(here.take, worker, lambda: 2)
        await here.all_wait()
        before = [dict(queue._connection.stats) for queue in (here.gateway, worker)]
        await here.offer(job := handover())
        await here.have_taken(job)
        after = [queue._connection.stats for queue in (here.gateway, worker)]
        names = ("out_msgs", "in_msgs")
        assert [new[name] - old[name] for old, new in zip(before, after, strict=True) for name in names] == [1, 1, 2, 2]
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def asked_for(lane: str, url: str) -> AsyncIterator[anyio.Event]:
    """An event that happens once a worker asks for jobs of a lane."""
    asked = anyio.Event()

    async def note(_message: Msg) -> None:
        asked.set()

    async with await nats.connect(url) as listener:
        await listener.subscribe(next_of(lane), cb=note)
        await caught_up(listener)
        yield asked


async def test_one_worker_asks_for_a_job_however_many_wait(server: NatsServer) -> None:
    async with crew(server.url, WORKERS) as here, anyio.create_task_group() as tasks:
        for worker in here.workers:
            tasks.start_soon(here.take_all, worker)
        await here.all_wait()
        assert await questions(here, server.url) <= ROUNDS
        tasks.cancel_scope.cancel()


async def test_one_worker_asks_for_a_job_after_clients_have_connected_again(server: NatsServer) -> None:
    """The client then subscribes to whatever its worker has ever heard of."""
    async with crew(server.url, WORKERS) as here, anyio.create_task_group() as tasks:
        for worker in here.workers:
            tasks.start_soon(here.take_all, worker)
        await here.all_wait()
        for worker in here.workers:
            for subscription in list(worker._connection._subs.values()):
                await worker._connection._send_subscribe(subscription)
            await caught_up(worker._connection)
        await here.offer(first := handover())  # of which all hear
        await here.have_taken(first)
        await anyio.sleep(2 * deliveries.AGAIN_SECONDS)  # who has found nothing looks once more, and waits
        await here.all_wait()
        assert await questions(here, server.url) <= ROUNDS
        tasks.cancel_scope.cancel()


async def test_a_worker_without_room_passes_on_what_it_alone_has_heard(server: NatsServer) -> None:
    """It waited, and has got a job; the next ones are for the other worker."""
    async with crew(server.url, 2) as here, anyio.create_task_group() as tasks:
        busy, idle = here.workers
        tasks.start_soon(here.take, busy)
        await until(lambda: waits(busy))
        await here.offer(first := handover())
        await here.have_taken(first)
        tasks.start_soon(here.take_all, idle)
        await until(lambda: waits(idle))
        for _ in range(ROUNDS):
            await here.offer(job := handover())
            await here.have_taken(job)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("same_lane", [True, False])
async def test_a_worker_that_hears_of_two_jobs_leaves_one_to_another(server: NatsServer, same_lane: bool) -> None:
    """Each has room for one."""
    async with crew(server.url, 2) as here:
        for _ in range(ROUNDS):
            async with anyio.create_task_group() as tasks:
                for worker in here.workers:
                    tasks.start_soon(here.take, worker)
                await here.all_wait()
                first = handover()
                await here.offer(first, beside(first) if same_lane else handover())


async def test_a_worker_that_gets_room_looks_where_it_has_heard_of_jobs(server: NatsServer) -> None:
    """Nobody else has room: it hears of the first of them alone, and then of all."""
    async with crew(server.url, 1) as here:
        [worker] = here.workers
        room = [1]
        async with anyio.create_task_group() as tasks:
            for _ in range(ROUNDS):
                tasks.start_soon(here.take, worker, lambda: room[0])
            for _ in range(ROUNDS):
                await until(lambda: worker.deliveries._announcements._has_room)
                room[0] = 0
                worker.deliveries.wake()
                await until(lambda: not worker.deliveries._announcements._has_room)  # what it still asked for, it takes
                await here.offer(job := handover())
                await until(partial(worker.deliveries._lanes._stirred.__contains__, job.lane))
                while job.lane not in await here.gateway.deliveries._occupied():
                    await checkpoint()  # its consumer may get it later than the server is asked to wait for it
                room[0] = 1
                worker.deliveries.wake()
                await here.have_taken(job)


@pytest.mark.parametrize(("size_bytes", "has_room"), [(2, True), (2, False), (LARGE_BYTES + 1, True)])
async def test_a_worker_gets_a_job_that_its_consumer_gets_late(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch, size_bytes: int, has_room: bool
) -> None:
    """The server says that it has it before its lane's consumer counts it; here, the worker even asks before."""
    monkeypatch.setattr(deliveries, "LATE_SECONDS", PATIENCE_SECONDS / 2)
    async with crew(server.url, 1) as here, anyio.create_task_group() as tasks:
        [worker] = here.workers
        room = [1]
        tasks.start_soon(here.take, worker, lambda: room[0])
        await here.all_wait()
        if not has_room:
            room[0] = 0
            worker.deliveries.wake()
            await until(lambda: not worker.deliveries._announcements._has_room)
        late = message_of(of_size(handover(), size_bytes))
        await here.gateway._stream.update_stream(CONFIG.evolve(republish=None))
        async with asked_for(late.lane, server.url) as was_asked:
            await here.gateway.deliveries.announce(late.lane)
            if not has_room:
                await until(partial(worker.deliveries._lanes._stirred.__contains__, late.lane))
                room[0] = 1
                worker.deliveries.wake()
            await was_asked.wait()
        await here.gateway._stream.publish(subject_of(late.lane, late.job_id), late.data)
        await until(lambda: [delivery.job_id for delivery in here.taken] == [late.job_id])


@pytest.mark.parametrize("size_bytes", [2, LARGE_BYTES + 1])
async def test_a_worker_that_finds_none_of_what_it_has_heard_of_looks_once_more(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """The server itself waited for a core, for longer than it was asked to wait for the job."""
    monkeypatch.setattr(deliveries, "LATE_SECONDS", 0.0)
    monkeypatch.setattr(deliveries, "AGAIN_SECONDS", PATIENCE_SECONDS)
    async with crew(server.url, 1) as here, anyio.create_task_group() as tasks:
        [worker] = here.workers
        tasks.start_soon(here.take, worker)
        await here.all_wait()
        late = message_of(of_size(handover(), size_bytes))
        await here.gateway._stream.update_stream(CONFIG.evolve(republish=None))
        await here.gateway.deliveries.announce(late.lane)
        await until(lambda: late.lane in worker.deliveries._doubted)
        await here.gateway._stream.publish(subject_of(late.lane, late.job_id), late.data)
        monkeypatch.setattr(deliveries, "AGAIN_SECONDS", 0.0)
        worker.deliveries.wake()
        await until(lambda: [delivery.job_id for delivery in here.taken] == [late.job_id])
        assert not worker.deliveries._doubted


@pytest.mark.parametrize("connects_again", [False, True])
async def test_a_worker_without_room_hears_of_each_lane_once(server: NatsServer, connects_again: bool) -> None:
    """However many jobs come; it finds all of them once it has room."""
    async with crew(server.url, 1) as here, anyio.create_task_group() as tasks:
        [worker] = here.workers
        await here.offer(first := handover())
        await here.take(worker)
        if connects_again:  # the client then subscribes to whatever its worker has ever heard of
            for subscription in list(worker._connection._subs.values()):
                await worker._connection._send_subscribe(subscription)
        await caught_up(worker._connection)
        before = worker._connection.stats["in_msgs"]
        jobs = [beside(first) for _ in range(ROUNDS)]
        for job in jobs:
            await here.offer(job)
        await caught_up(here.gateway._connection)
        await caught_up(worker._connection)
        heard = worker._connection.stats["in_msgs"] - before
        assert heard <= (ROUNDS // 2 if connects_again else 2)  # one of them says that it has caught up
        tasks.start_soon(here.take_all, worker)
        await here.have_taken(*jobs)
        tasks.cancel_scope.cancel()


async def test_no_job_waits_for_a_worker_that_looks_without_being_told(server: NatsServer) -> None:
    """While workers get room, take jobs, wait and lose their room again, in whatever order."""
    chance = random.Random(5)
    async with crew(server.url, 3) as here, anyio.create_task_group() as tasks:
        room = dict.fromkeys(here.workers, 1)

        async def take_and_pause(worker: WorkQueue) -> None:
            while True:
                await here.take(worker, lambda: room[worker])
                await anyio.sleep(chance.choice([0, 0, 0.001, 0.005]))

        async def change_room(worker: WorkQueue) -> None:
            while True:
                room[worker] = 1 - room[worker]
                worker.deliveries.wake()
                await anyio.sleep(chance.choice([0, 0.002, 0.01]))

        for worker in here.workers:
            tasks.start_soon(take_and_pause, worker)
            tasks.start_soon(take_and_pause, worker)
        tasks.start_soon(change_room, here.workers[0])
        offered = list[HandOver]()
        for _ in range(BURSTS):
            burst = [handover() for _ in range(chance.choice([1, 1, 2, 8]))]
            burst += [beside(burst[0]) for _ in range(chance.choice([0, 0, 5]))]
            await here.offer(*burst)
            if chance.random() < 0.3:
                await here.have_taken(*burst)
            offered += burst
        await here.have_taken(*offered)
        tasks.cancel_scope.cancel()


async def test_the_client_sends_at_once_what_changes_what_it_hears(server: NatsServer) -> None:
    """For this, announcements use private parts of the client, which may be others in its next version."""
    heard = list[bytes]()

    async def note(message: Msg) -> None:
        heard.append(message.data)

    async with await nats.connect(server.url) as listener, await nats.connect(server.url) as operator:
        announcements = Announcements(listener, lambda _: None)
        subscription = await listener.subscribe("changes", cb=note)

        async def tell(*numbers: bytes) -> None:
            for number in numbers:
                await operator.publish("changes", number)
            await caught_up(operator)

        await caught_up(listener)  # the first question sends more, and that later
        await announcements._send(_stop(subscription))
        await caught_up(listener)
        await tell(b"while it hears nothing")
        await announcements._send(_resume(subscription, most=2))
        for _ in range(PASSES):
            await checkpoint()
        assert not listener.pending_data_size
        await caught_up(listener)
        await tell(b"first", b"second", b"third")
        await announcements._send(_resume(subscription, most=1))
        await caught_up(listener)
        await tell(b"anew", b"too late")
        await until(lambda: len(heard) >= 3)
        await caught_up(listener)
        await until(lambda: not subscription.pending_msgs)
        assert heard == [b"first", b"second", b"anew"]


async def test_a_worker_that_hears_nothing_gets_no_more_announcements(server: NatsServer) -> None:
    """It is frozen, or its host has vanished: the others hear of the jobs that come."""
    heard = list[Msg]()

    async def note(message: Msg) -> None:
        heard.append(message)

    async with crew(server.url, 2) as here, anyio.create_task_group() as tasks:
        deaf, other = here.workers
        tasks.start_soon(deaf.deliveries.take, lambda: True)
        await until(lambda: waits(deaf))
        deaf._connection._remove_sub(deaf.deliveries._announcements._alone._id)  # what the server sends it is lost
        await other._connection.subscribe(f"{STIRRED}.small.*", queue=WAITING, cb=note)
        await caught_up(other._connection)
        for _ in range(10 * MOST_UNHEARD):
            await here.gateway.deliveries.announce("small.1")
        await caught_up(here.gateway._connection)
        await caught_up(other._connection)
        assert len(heard) >= 9 * MOST_UNHEARD
        tasks.cancel_scope.cancel()
