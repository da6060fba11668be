"""A worker converts as many large inputs at a time as it has converters, and a small one that comes overtakes them."""

import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest

from bench.load.documents import document
from service.ids import JobId
from service.jobs.handover import LARGE_BYTES, HandOver, message_of, sealed
from service.jobs.lifecycle import Status
from service.storage.port import new_key
from tests.fleet.nats import NatsServer, nats_server
from tests.fleet.test_taking import POINT, admitted, until_empty, working
from tests.support.converters import signal_converters
from tests.support.world import World, world

pytestmark = pytest.mark.xdist_group("queue")
CONVERTERS = 2
CONTENT = document(LARGE_BYTES * 5 // 4)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server with an empty stream."""
    (tmp_path / "nats").mkdir()
    with nats_server(tmp_path / "nats") as running:
        yield running


async def large(here: World, path: Path) -> HandOver:
    """An admitted job whose input is this file with `CONTENT`, in the store."""
    told = await admitted(here, None)
    await here.services.storage.put(key := new_key(), path, media_type="", download_name="a")
    async with here.services.database.connection() as connection:
        secret = await connection.fetchval(
            "UPDATE job SET input_key = $2 WHERE id = $1 RETURNING object_key", told.job.id, key
        )
    job = msgspec.structs.replace(told.job, input_size_bytes=len(CONTENT))
    return sealed(msgspec.structs.replace(told, job=job), secret)


async def test_large_inputs_have_all_converters_and_hold_up_no_small_one(
    database_url: str, tmp_path: Path, server: NatsServer
) -> None:
    """Also if all are of one account."""
    (path := tmp_path / "large").write_bytes(CONTENT)
    settings = {"converters": CONVERTERS}
    async with (
        world(database_url, tmp_path / "data", plan="business", settings=settings) as here,
        working(here, server, converters=CONVERTERS) as queue,
    ):
        told = [await large(here, path) for _ in range(CONVERTERS)]
        for one in told:
            await queue.offer(message_of(one))
        while signal_converters(signal.SIGSTOP) < CONVERTERS or here.services.pool.queue.running < CONVERTERS:
            assert await queue.check() == CONVERTERS, "one has ended before the other one began"
            await anyio.sleep(0.02)
        await queue.offer(message_of(small := await admitted(here, POINT)))
        while (await state(here, small)) is not Status.COMPLETED:  # noqa: ASYNC110 -- nothing announces it
            await anyio.sleep(0.02)
        signal_converters(signal.SIGCONT)  # until now, no small one could have come too late
        await until_empty(queue)
        assert {await state(here, one) for one in told} == {Status.COMPLETED}
        assert (await settled(here))[0] == small.job.id


async def settled(here: World) -> list[JobId]:
    """The jobs in the order of their settlements, whenever anybody looked at them."""
    async with here.services.database.connection() as connection:
        rows = await connection.fetch("SELECT job_id FROM ledger ORDER BY xmin::text::bigint")
    return [JobId(row["job_id"]) for row in rows]


async def state(here: World, told: HandOver) -> Status:
    """The status of a job."""
    return (await here.services.jobs.find(told.job.id, here.account.account_id)).status
