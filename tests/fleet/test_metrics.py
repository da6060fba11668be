"""What operators of a fleet see: what waits, what is delivered, and each process on its private port."""

from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from service.ids import ServerId
from service.jobs.handover import message_of
from service.jobs.leases import Leases
from service.jobs.work_queue import open_work_queue
from service.storage.port import new_key
from tests.fleet.nats import NatsServer
from tests.fleet.site import Site
from tests.fleet.test_losses import assert_each_ended_once, promise
from tests.fleet.test_taking import admitted, server, until_empty, working
from tests.support.patience import wait_until
from tests.support.world import world
from tests.unit.jobs.test_handover import handover

__all__ = ["server"]
"""The fixture of another module."""

POINT = b'{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,2]}}'


def samples(url: str, name: str) -> list[float]:
    """All values of one metric of the process whose private port this is."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    return [sample.value for family in families for sample in family.samples if sample.name == name]


def is_above_zero(url: str, name: str) -> bool:
    """Whether the process shows more than 0 of it."""
    return sum(samples(url, name)) > 0


def is_ready(url: str) -> bool:
    """Whether the process says that it can work."""
    return httpx.get(f"{url}/readyz").status_code == httpx.codes.OK


@pytest.mark.xdist_group("fleet")
def test_a_gateway_shows_what_waits_for_workers(fleet: Site) -> None:
    """While none of them takes it: how much, since when, and for how long; workers are scraped and probed, too."""
    with fleet.client() as client:
        with fleet.frozen_workers():
            jobs = promise(client)
            for name in ("jobs_waiting", "queue_age_seconds", "converter_seconds_waiting"):
                wait_until(partial(is_above_zero, fleet.gateway.private_url, f"geomill_fleet_{name}"))
        assert_each_ended_once(fleet, jobs)
    wait_until(lambda: samples(fleet.gateway.private_url, "geomill_fleet_jobs_waiting") == [0.0])
    assert sum(sum(samples(worker.url, "geomill_fleet_deliveries_total")) for worker in fleet.workers) >= len(jobs)
    assert samples(fleet.gateway.private_url, "geomill_converters") == [0.0]  # by which alerts divide what waits
    for worker in fleet.workers:
        assert httpx.get(f"{worker.url}/healthz").status_code == httpx.codes.OK
        wait_until(partial(is_ready, worker.url))


@pytest.mark.xdist_group("queue")
async def test_what_a_dead_worker_leaves_behind_is_counted(
    database_url: str, tmp_path: Path, server: NatsServer
) -> None:
    """The next one runs it alone; a message that was returned is delivered again."""

    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(f"geomill_fleet_{name}_total", labels) or 0.0

    before = counted("suspects"), counted("deliveries", delivery="first"), counted("deliveries", delivery="again")
    async with world(database_url, tmp_path / "data") as here:
        told = await admitted(here, POINT)
        dead = Leases(here.services.database, ServerId(uuid4()), here.services.leases.heartbeat * 6)
        await dead.claim(told.job.id, here.account.account_id, told.gateway, new_key())
        async with working(here, server) as queue:
            await queue.offer(message_of(told))
            await until_empty(queue)
    async with open_work_queue(server.url, 30.0) as queue:
        await queue.offer(message_of(handover()))
        returned = await queue.deliveries.take(lambda: True)
        assert returned is not None
        assert returned.is_first
        await returned.give_back()
        delivered = await queue.deliveries.take(lambda: True)
        assert delivered is not None
        assert not delivered.is_first
    after = counted("suspects"), counted("deliveries", delivery="first"), counted("deliveries", delivery="again")
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 0]
