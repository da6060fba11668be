"""The backlog of one account delays another one by a few conversions, also if both share a lane."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from threading import Event

import pytest

from service.clock import utc_now
from service.jobs.handover import lane_of
from service.jobs.workers import MOST_EACH
from service.usecases.take_over import PLACES_EACH
from tests.fleet.site import LEASE_SECONDS, Site
from tests.fleet.test_poison import promised
from tests.support.data import lakes
from tests.support.patience import wait_until
from tests.support.server import Client

pytestmark = pytest.mark.xdist_group("fleet")

BACKLOG = 24
_OPEN = "SELECT FROM job WHERE id = ANY($1) AND completed_at IS NULL"
_NOW = "SELECT service_time() AS at"
_ALIVE = "SELECT heartbeat_at > $2 AS has_beaten FROM server WHERE heartbeat_at >= service_time() - $1::interval"
_WORKERS = "SELECT id FROM server WHERE formats IS NOT NULL AND heartbeat_at >= service_time() - $1::interval"
_KEEP = "UPDATE server SET heartbeat_at = now() + interval '1 minute' WHERE id = ANY($1) RETURNING id"
_AHEAD = "SELECT FROM server WHERE heartbeat_at > now()"
_LEASE = timedelta(seconds=LEASE_SECONDS)


def lane(client: Client) -> str:
    """The lane of the account's small files today."""
    return lane_of(client.account.account_id, utc_now().date(), 1)


def all_have_beaten(fleet: Site, since: datetime) -> bool:
    """Whether all processes have sent a heartbeat since then, and the leases of all others are over."""
    expected = len(fleet.gateways) + len(fleet.workers)
    return [row["has_beaten"] for row in fleet.rows(_ALIVE, _LEASE, since)] == [True] * expected


def living(fleet: Site) -> list[str]:
    """The ids of the workers, once the leases of processes of earlier tests are over and the gateway knows it."""
    for _ in range(2):  # what the gateway knows may be as old as its last heartbeat
        wait_until(partial(all_have_beaten, fleet, fleet.rows(_NOW)[0]["at"]))
    return [row["id"] for row in fleet.rows(_WORKERS, _LEASE)]


@contextmanager
def suspended(fleet: Site) -> Iterator[None]:
    """Suspend all workers inside the block; they count on, because the places of an account depend on those alive."""
    workers, ended = living(fleet), Event()

    def keep() -> None:
        while not ended.wait(0.2):  # the gateway takes back what is in the future
            assert len(fleet.rows(_KEEP, workers)) == len(workers)

    with ThreadPoolExecutor(1) as beside:
        keeping = beside.submit(keep)
        try:
            with fleet.frozen_workers():
                yield
        finally:
            ended.set()
            keeping.result()


def test_a_backlog_does_not_fill_the_lane(fleet: Site) -> None:
    """Its jobs take turns in the queue; the job of the other account comes after those that were there before it.

    One worker converts them: which of two is faster is the host's business.
    """
    places = MOST_EACH * len(fleet.workers)
    with fleet.client("business") as busy:
        other = fleet.client()
        while lane(other) != lane(busy):
            other.close()
            other = fleet.client()
        with other, suspended(fleet):
            backlog = [promised(busy, lakes()) for _ in range(BACKLOG)]
            wait_until(lambda: fleet.messages() == places)
            single = promised(other, lakes())
            wait_until(lambda: fleet.messages() == places + 1)
            fleet.workers[0].process.send_signal(signal.SIGCONT)
            everything = [*backlog, single]
            wait_until(lambda: not fleet.rows(_OPEN, everything))
    rows = fleet.rows("SELECT id::text, status FROM job WHERE id = ANY($1) ORDER BY completed_at", everything)
    assert {row["status"] for row in rows} == {"Completed"}
    before = [row["id"] for row in rows].index(single)
    assert before <= places + PLACES_EACH
    wait_until(lambda: not fleet.rows(_AHEAD))  # they send heartbeats again
    wait_until(fleet.is_clean)
