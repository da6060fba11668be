"""The queue on a real server repairs itself, and reports a job that it did not accept."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import msgspec
import nats
import pytest
from anyio.lowlevel import checkpoint
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from structlog.testing import capture_logs

from service.errors import QueueUnavailable, QueueUnusable
from service.ids import JobId, ServerId
from service.jobs import deliveries
from service.jobs.handover import LANES, SIZES, message_of, read_handover
from service.jobs.notices import Notice
from service.jobs.queue_contents import QueueContents
from service.jobs.queue_state import look_at_queue
from service.jobs.stream import ALL_LANES, ANNOUNCED, CONFIG, STREAM, consumer, name_of
from service.jobs.work_queue import MessageTooLargeError, WorkQueue, open_work_queue
from tests.fleet.nats import NatsServer, caught_up, nats_server
from tests.support.patience import PATIENCE_SECONDS, polls, until
from tests.support.ports import free_port
from tests.support.relay import relay_to_port
from tests.unit.jobs.test_handover import handover

pytestmark = pytest.mark.xdist_group("queue")

LEASE_SECONDS = 3.0
MANY = 200
SOME = 5
PUBLISHED_AT_ONCE = 5000
LISTED_AT_ONCE = 100_000
"""The most messages that the server lists in one answer."""
_JOBS = "geomill.convert"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all tests of this module."""
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@asynccontextmanager
async def fresh_queue(server: NatsServer) -> AsyncIterator[tuple[WorkQueue, JetStreamContext]]:
    """An empty queue, and the queue of another process."""
    async with open_work_queue(server.url, 30.0) as queue:
        operator = await nats.connect(server.url)
        try:
            yield queue, operator.jetstream()
        finally:
            await operator.jetstream().purge_stream(STREAM)
            await operator.close()


async def test_lanes_that_are_missing_are_created_by_the_next_check(server: NatsServer) -> None:
    """As after a process that died while creating the queue; messages are kept."""
    async with fresh_queue(server) as (queue, operator):
        offered = handover()
        assert await queue.offer(message_of(offered))
        await operator.delete_consumer(STREAM, offered.lane.replace(".", "-"))
        assert await queue.check() == 1
        assert (await operator.stream_info(STREAM)).state.consumer_count == LANES * len(SIZES)
        delivery = await queue.deliveries.take(lambda: True)
        assert delivery is not None
        await delivery.acknowledge()


async def test_the_consumer_of_a_lane_that_writes_to_files_is_replaced(server: NatsServer) -> None:
    """As an earlier version created it. What waits in the lane stays."""
    async with fresh_queue(server) as (queue, operator):
        await queue.offer(message_of(offered := handover()))
        written = consumer(offered.lane, LEASE_SECONDS).evolve(mem_storage=False)
        await operator.delete_consumer(STREAM, name_of(offered.lane))
        await operator.add_consumer(STREAM, written)
        async with open_work_queue(server.url, LEASE_SECONDS) as worker:
            assert (await operator.consumer_info(STREAM, name_of(offered.lane))).config.mem_storage
            delivery = await worker.deliveries.take(lambda: True)
            assert delivery is not None
            assert delivery.job_id == offered.job.id


async def test_a_server_that_has_forgotten_what_workers_have_delivers_it_again(tmp_path: Path) -> None:
    """It starts anew without the consumers of lanes, which the next check creates. The database knows who has a job."""
    with nats_server(tmp_path) as own:
        async with open_work_queue(own.url, LEASE_SECONDS) as queue:
            for _ in range(SOME):
                await queue.offer(message_of(handover()))
            before = [await queue.deliveries.take(lambda: True, lambda: 1) for _ in range(SOME)]
            own.kill()
            own.start()
            after = [await queue.deliveries.take(lambda: True, lambda: 1) for _ in range(SOME)]
            assert {one and one.job_id for one in after} == {one and one.job_id for one in before}
            for delivery in after:
                assert delivery is not None
                await delivery.acknowledge()
            with anyio.fail_after(PATIENCE_SECONDS):
                while await queue.check():
                    await checkpoint()


@pytest.mark.parametrize("starts_anew", [False, True])
async def test_a_stream_that_announces_no_jobs_is_made_to(server: NatsServer, starts_anew: bool) -> None:
    """As one that an earlier version created. What an operator has given it stays."""
    async with fresh_queue(server) as (queue, operator):
        given = {"description": "ours", "max_msgs": 10_000, "compression": api.StoreCompression.S2}
        await operator.update_stream(CONFIG, republish=None, **given)
        if starts_anew:
            async with open_work_queue(server.url, LEASE_SECONDS):
                pass
        else:
            await queue.check()
        config = (await operator.stream_info(STREAM)).config
        assert config.republish == ANNOUNCED
        assert {name: getattr(config, name) for name in given} == given
        await operator.update_stream(CONFIG)


async def test_a_job_is_in_the_queue_once(server: NatsServer) -> None:
    """Whichever attempt is offered again."""
    async with fresh_queue(server) as (queue, _):
        offered = handover()
        again = msgspec.structs.replace(offered, job=msgspec.structs.replace(offered.job, attempt=2))
        assert await queue.offer(message_of(offered))
        assert not await queue.offer(message_of(offered))
        assert not await queue.offer(message_of(again))
        assert await queue.check() == 1


class Removing(Client):
    """A client of the queue beside workers, who remove the messages of a lane after each of its questions."""

    def __init__(self, others: JetStreamContext) -> None:
        super().__init__()
        self._others = others

    async def request(self, *arguments: Any, **options: Any) -> Msg:
        """Ask, and let the messages of a lane be removed before the next question."""
        answer = await super().request(*arguments, **options)
        await self._others.purge_stream(STREAM, subject=f"{_JOBS}.large.0.*")
        return answer


async def test_a_long_list_of_messages_is_complete(server: NatsServer) -> None:
    """The server lists a hundred thousand at once; messages at the beginning of the list go away meanwhile."""
    going = [f"{_JOBS}.large.0.{uuid4()}" for _ in range(SOME)]
    staying = [f"{_JOBS}.small.0.{uuid4()}" for _ in range(LISTED_AT_ONCE)]
    async with fresh_queue(server) as (queue, operator):
        await publish(server, queue, [*going, *staying])
        client = Removing(operator)
        await client.connect(server.url)
        try:
            found = await QueueContents(client, LEASE_SECONDS).jobs()
        finally:
            await client.close()
        assert set(staying).difference(found) == set()


async def publish(server: NatsServer, queue: WorkQueue, subjects: Sequence[str]) -> None:
    """Put an empty message under each subject, not faster than the server stores them: it would drop some."""
    host, _, port = server.url.removeprefix("nats://").rpartition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(b'CONNECT {"verbose":false}\r\n')
        for start in range(0, len(subjects), PUBLISHED_AT_ONCE):
            part = subjects[start : start + PUBLISHED_AT_ONCE]
            await stream.send("".join(f"PUB {subject} 0\r\n\r\n" for subject in part).encode())
            for _ in polls():
                if await queue.check() == start + len(part):
                    break


async def test_an_empty_queue_is_asked_as_a_whole(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that waits for jobs asks whether there are any, and looks into each lane only once, at the beginning."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_SECONDS", 0.0)
    lanes, asked, many_asked = LANES * len(SIZES), list[str](), anyio.Event()

    async def note(message: Msg) -> None:
        asked.append(message.subject)
        if len(asked) > 3 * lanes:
            many_asked.set()

    async with fresh_queue(server) as (queue, _), await nats.connect(server.url) as listener:
        await listener.subscribe("$JS.API.>", cb=note)
        await caught_up(listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.deliveries.take, lambda: True)
            await many_asked.wait()
            tasks.cancel_scope.cancel()
    assert sum(".MSG.NEXT." in subject for subject in asked) <= lanes


async def test_only_lanes_that_have_jobs_are_asked(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, because what another worker has may be delivered again, which nobody announces."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_SECONDS", 0.0)
    asked, many_asked = list[str](), anyio.Event()

    async def note(message: Msg) -> None:
        asked.append(message.subject.rpartition(".")[2])
        if len(asked) > LANES * len(SIZES) + MANY:
            many_asked.set()

    async with (
        fresh_queue(server) as (queue, _),
        open_work_queue(server.url, 30.0) as other,
        await nats.connect(server.url) as listener,
    ):
        await other.offer(message_of(offered := handover()))
        assert await other.deliveries.take(lambda: True)
        await listener.subscribe("$JS.API.CONSUMER.MSG.NEXT.>", cb=note)  # not to hear what the other worker asked
        await caught_up(listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.deliveries.take, lambda: True)
            await many_asked.wait()
            tasks.cancel_scope.cancel()
    assert set(asked[-MANY:]) == {offered.lane.replace(".", "-")}


async def test_what_comes_back_is_taken_in_its_turn(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker has returned it, which nobody announces; this one always has something to do in another lane."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_SECONDS", 0.0)
    async with fresh_queue(server) as (queue, _), open_work_queue(server.url, 30.0) as other:
        returned = elsewhere = handover()
        while elsewhere.lane == returned.lane:
            elsewhere = handover()

        async def next_taken() -> JobId:
            job = msgspec.structs.replace(elsewhere.job, id=JobId(uuid4()))
            await queue.offer(message_of(msgspec.structs.replace(elsewhere, job=job)))
            return await taken(queue)

        await queue.offer(message_of(returned))
        delivery = await other.deliveries.take(lambda: True)
        assert delivery is not None
        await queue.offer(message_of(elsewhere))
        for _ in range(2):
            await next_taken()  # all other lanes are known to be empty then
        await delivery.give_back()
        for _ in range(MANY):
            if await next_taken() == returned.job.id:
                break
        else:
            pytest.fail("it was never taken")


async def test_those_who_wait_get_jobs_of_several_lanes_at_once(server: NatsServer) -> None:
    """Whether lanes have more than their share or less, each job is taken once."""
    async with fresh_queue(server) as (queue, _):
        crowd = handover()
        offered = [handover() for _ in range(LANES)]
        offered += [
            msgspec.structs.replace(crowd, job=msgspec.structs.replace(crowd.job, id=JobId(uuid4())))
            for _ in offered * 3
        ]
        for job in offered:
            await queue.offer(message_of(job))
        taken_by: list[list[JobId]] = [[] for _ in range(SOME)]

        async def take_all(own: list[JobId]) -> None:
            while sum(map(len, taken_by)) < len(offered) and (delivery := await queue.deliveries.take(lambda: True)):
                told = read_handover(delivery.data)
                assert told is not None
                own.append(told.job.id)
                await delivery.acknowledge()
            queue.leave()

        async with anyio.create_task_group() as tasks:
            for own in taken_by:
                tasks.start_soon(take_all, own)
        assert sorted(job_id for own in taken_by for job_id in own) == sorted(one.job.id for one in offered)
        while await queue.check():  # noqa: ASYNC110 -- the server does not tell
            await anyio.sleep(0.02)


async def test_a_stray_message_is_no_answer(server: NatsServer) -> None:
    """Anyone who knows the subject of a worker's answers can send to it; the worker waits for those of the queue."""
    async with fresh_queue(server) as (queue, operator):
        await queue.offer(message_of(handover()))
        await taken(queue)
        assert queue.deliveries._subscription is not None
        for reply in ("", "geomill.reply"):
            await operator._nc.publish(queue.deliveries._subscription.subject, b"stray", reply=reply)
        await caught_up(operator._nc)
        assert await queue.offer(message_of(offered := handover()))
        assert await taken(queue) == offered.job.id


async def test_a_question_that_was_sent_in_part_is_forgotten(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers, which nobody has waited for, are not taken for those to the next question."""
    async with fresh_queue(server) as (queue, _):
        publish, asked, offered = queue._connection.publish, list[str](), handover()
        other = next(lane for lane in ALL_LANES if lane != offered.lane)

        async def publish_once(subject: str, *arguments: Any, **named: Any) -> None:
            asked.append(subject)
            if len(asked) > 1:
                raise nats.errors.OutboundBufferLimitError
            await publish(subject, *arguments, **named)

        monkeypatch.setattr(queue._connection, "publish", publish_once)
        with pytest.raises(QueueUnavailable):
            await queue.deliveries._look_into({offered.lane: 1, other: 1})
        monkeypatch.undo()
        # The queue answers in order: it has no older question any more.
        await queue.deliveries._look_into({offered.lane: 1})
        assert not queue.deliveries._found
        await queue.offer(message_of(offered))
        while await queue.deliveries._occupied() != [offered.lane]:
            pass  # the server acknowledges a job a moment before it delivers it
        await queue.deliveries._look_into({offered.lane: 1})
        assert [delivery.lane for delivery in queue.deliveries._found] == [offered.lane]
        await queue.deliveries._found.popleft().acknowledge()


async def taken(queue: WorkQueue) -> JobId:
    """Take a job and end it; its id."""
    delivery = await queue.deliveries.take(lambda: True)
    assert delivery is not None
    await delivery.acknowledge()
    told = read_handover(delivery.data)
    assert told is not None
    return told.job.id


async def test_a_full_queue_has_not_taken_the_job(server: NatsServer) -> None:
    """An operator has limited its size; the refusal differs from that of a job already queued."""
    async with fresh_queue(server) as (queue, operator):
        config = (await operator.stream_info(STREAM)).config
        await operator.update_stream(config.evolve(max_bytes=4096))
        with pytest.raises(QueueUnavailable):
            await queue.offer(message_of(handover(bytes(8192))))
        assert await queue.check() == 0
        await operator.update_stream(config)


async def test_a_stream_that_takes_smaller_messages_than_its_server_is_told_where_the_input_is(
    server: NatsServer,
) -> None:
    """Its limit was lowered: it would refuse the message with the input without end."""
    async with fresh_queue(server) as (queue, operator):
        config = (await operator.stream_info(STREAM)).config
        await operator.update_stream(config.evolve(max_msg_size=4096))
        state = await look_at_queue(server.url)
        assert (state.message_bytes, [part.isdecimal() for part in state.version.split(".")]) == (4096, [True] * 3)
        with pytest.raises(MessageTooLargeError):
            await queue.offer(message_of(handover(bytes(8192))))
        assert await queue.offer(message_of(handover(None)))
        await operator.update_stream(config)


async def test_a_server_that_has_vanished_without_a_word_is_left(server: NatsServer) -> None:
    """The connection stays open and says nothing; the queue connects again, and the job is there."""
    port = int(server.url.rpartition(":")[2])
    async with (
        relay_to_port(port) as (relay, own_port),
        open_work_queue(f"nats://127.0.0.1:{own_port}", LEASE_SECONDS) as queue,
    ):
        assert await queue.offer(message_of(handover()))
        relay.silence(new=False)
        delivery = await queue.deliveries.take(lambda: True)
        assert delivery is not None
        await delivery.acknowledge()


async def test_a_server_that_has_just_gone_is_left(tmp_path: Path) -> None:
    """What was to be sent is lost, whether or not the loss of the connection has been noticed."""
    for looks_before in range(SOME):
        (directory := tmp_path / str(looks_before)).mkdir()
        with nats_server(directory) as own:
            async with open_work_queue(own.url, LEASE_SECONDS) as queue:
                own.kill()
                for _ in range(looks_before):
                    await checkpoint()
                await queue.publish_end(ServerId(uuid4()), Notice(JobId(uuid4())))
            assert not queue.is_connected


async def test_a_process_does_not_wait_forever_for_a_server_that_is_away() -> None:
    """At its start; once connected, it reconnects without end."""
    with pytest.raises(QueueUnavailable):
        async with open_work_queue(f"nats://127.0.0.1:{free_port()}", LEASE_SECONDS):
            pass


async def test_refused_credentials_are_named_once(tmp_path: Path) -> None:
    """A process that needs the queue does not start; one that does not tries on, and says what to do."""
    with nats_server(tmp_path, options=("--user", "geomill", "--pass", "right")) as server:
        wrong = server.url.replace("//", "//geomill:wrong@")
        with pytest.raises(QueueUnavailable) as refused:
            async with open_work_queue(wrong, LEASE_SECONDS):
                pass
        assert "Authorization Violation" in str(refused.value.__cause__)
        with capture_logs() as log:
            async with (
                open_work_queue(wrong, LEASE_SECONDS, is_needed=False) as queue,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(queue.connect)
                await until(lambda: queue.refusal)
                tasks.cancel_scope.cancel()
        assert [entry["event"] for entry in log] == ["queue.refused"]
        async with open_work_queue(wrong.replace("wrong", "right"), LEASE_SECONDS) as queue:
            assert not queue.refusal


async def test_a_server_without_the_tls_that_its_url_promises_is_told_nothing(tmp_path: Path) -> None:
    """Not even the password; an operator is told why it is not used."""
    with nats_server(tmp_path, options=("--user", "geomill", "--pass", "right", "-DV")) as server:
        url = server.url.replace("nats://", "tls://geomill:right@")
        with pytest.raises(QueueUnusable, match=r"it has no TLS, .* write nats://"):
            await look_at_queue(url)
        with capture_logs() as log, pytest.raises(QueueUnavailable) as refused:
            async with open_work_queue(url, LEASE_SECONDS):
                pass
        assert "no TLS" in str(refused.value.__cause__)
        assert [entry["event"] for entry in log] == ["queue.refused"]
        trace = (tmp_path / "log").read_text()
        assert (trace.count("Client connection created") >= 2, "CONNECT {" in trace) == (True, False)


async def test_a_server_without_jetstream_is_told_apart_from_one_that_is_away(tmp_path: Path) -> None:
    """To an operator: it is off here for the account."""
    (tmp_path / "conf").write_text("accounts { A { users: [{ user: geomill, password: right }] } }")
    options = ("-c", str(tmp_path / "conf"))
    with nats_server(tmp_path, options=options) as server, pytest.raises(QueueUnusable, match="no JetStream"):
        await look_at_queue(server.url.replace("//", "//geomill:right@"))


async def test_every_server_of_a_cluster_gets_the_credentials(tmp_path: Path) -> None:
    """Servers tell clients of each other; the setting may name only one, and its password may have percent signs."""
    route = free_port()
    with ExitStack() as stack:
        servers = []
        for number in range(2):
            (directory := tmp_path / str(number)).mkdir()
            own = (f"--cluster=nats://127.0.0.1:{route}",) if number == 0 else ("--cluster=nats://127.0.0.1:-1",)
            joined = ("--routes", f"nats://127.0.0.1:{route}", "--cluster_name", "queue", "-n", str(number))
            account = ("--user", "geomill", "--pass", "p@ss")
            servers.append(stack.enter_context(nats_server(directory, options=(*own, *joined, *account))))
        url = servers[0].url.replace("//", "//geomill:p%40ss@")
        async with open_work_queue(url, LEASE_SECONDS, is_needed=False) as queue, anyio.create_task_group() as tasks:
            tasks.start_soon(queue.connect)
            await until(lambda: len(queue._connection.servers) > 1 or queue.refusal)
            assert not queue.refusal
            first = queue._connection.connected_url
            servers[0].kill()
            await until(lambda: queue._connection.connected_url not in {first, None} or queue.refusal)
            assert not queue.refusal
