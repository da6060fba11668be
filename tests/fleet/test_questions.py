"""What gateways ask workers, on a real server: gateways and workers of different versions, during an update."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import anyio
import msgspec
import pytest

from service.errors import Overloaded
from service.ids import AccountId, JobId
from service.jobs import questions
from service.jobs.questions import VERSION, subject_of
from service.jobs.work_queue import open_work_queue
from service.usecases import preview_result, search_systems
from service.usecases.preview_result import Question
from service.usecases.search_systems import System
from tests.fleet.nats import NatsServer, caught_up, nats_server
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.xdist_group("queue")

NEVER = 3600.0
ONE, TWO = UUID(int=1), UUID(int=2)
PREVIEW_OF = (
    b"\x82\xaaaccount_id\xd9$00000000-0000-0000-0000-000000000001\xa6job_id\xd9$00000000-0000-0000-0000-000000000002"
)
SYSTEMS = b"\x91\x93\xcd\x10\xe6\xa6WGS 84\xa5World"
"""Messages of the present version. What a change of them adds or removes takes a new version."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all tests of this module."""
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.mark.parametrize(
    ("read", "asked", "is_answered"),
    [
        ((VERSION,), VERSION, True),
        ((VERSION,), VERSION + 1, False),
        ((VERSION, VERSION + 1), VERSION, True),
        ((VERSION, VERSION + 1), VERSION + 1, True),
    ],
)
async def test_a_question_comes_only_to_workers_that_understand_it(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch, read: tuple[int, ...], asked: int, *, is_answered: bool
) -> None:
    """A gateway that is newer than all workers is told at once that there is no answer."""
    heard = list[bytes]()

    async def reply(question: bytes) -> bytes:
        heard.append(question)
        return b"answer"

    topic = f"topic-{uuid4()}"  # which no worker of an earlier test, about to leave, may take
    monkeypatch.setattr(questions, "READS", read)
    monkeypatch.setattr(questions, "VERSION", asked)
    async with (
        open_work_queue(server.url, NEVER) as worker,
        open_work_queue(server.url, NEVER) as gateway,
        anyio.create_task_group() as tasks,
    ):
        await worker.questions.answer(topic, reply, tasks)
        await caught_up(worker._connection)
        with anyio.fail_after(PATIENCE_SECONDS):
            if is_answered:
                assert await gateway.questions.ask(topic, b"question", NEVER) == b"answer"
            else:
                with pytest.raises(Overloaded):
                    await gateway.questions.ask(topic, b"question", NEVER)
    assert heard == [b"question"] * is_answered


def test_messages_change_only_with_their_version() -> None:
    """The subject of the first version is that of gateways and workers whose messages had none."""
    assert (VERSION, subject_of(preview_result.TOPIC, 1)) == (1, "geomill.ask.preview")
    assert subject_of(search_systems.TOPIC, 2) == "geomill.ask.systems.2"
    assert msgspec.msgpack.encode(Question(AccountId(ONE), JobId(TWO))) == PREVIEW_OF
    assert msgspec.msgpack.decode(SYSTEMS, type=list[System]) == [(4326, "WGS 84", "World")]
