"""The backlog of one account delays another one by a few conversions, also if both share a lane."""

import pytest

from service.clock import utc_now
from service.jobs.handover import lane_of
from service.jobs.workers import MOST_EACH
from service.usecases.take_over import PLACES_EACH
from tests.fleet.site import Site, wait_until
from tests.fleet.test_poison import promised
from tests.support.data import lakes
from tests.support.server import Client

pytestmark = pytest.mark.xdist_group("fleet")

BACKLOG = 24
_OPEN = "SELECT FROM job WHERE id = ANY($1) AND completed_at IS NULL"


def lane(client: Client) -> str:
    """The lane of the account's small files today."""
    return lane_of(client.account.account_id, utc_now().date(), 1)


def test_a_backlog_does_not_fill_the_lane(fleet: Site) -> None:
    """Its jobs take turns in the queue; the job of the other account comes after those that were there before it."""
    converters = len(fleet.workers)
    with fleet.client("business") as busy:
        other = fleet.client()
        while lane(other) != lane(busy):
            other.close()
            other = fleet.client()
        with other:
            with fleet.frozen_workers():
                backlog = [promised(busy, lakes()) for _ in range(BACKLOG)]
                wait_until(lambda: fleet.messages() == MOST_EACH * converters)
                single = promised(other, lakes())
                wait_until(lambda: fleet.messages() == MOST_EACH * converters + 1)
            everything = [*backlog, single]
            wait_until(lambda: not fleet.rows(_OPEN, everything))
    rows = fleet.rows("SELECT id::text, status FROM job WHERE id = ANY($1) ORDER BY completed_at", everything)
    assert {row["status"] for row in rows} == {"Completed"}
    before = [row["id"] for row in rows].index(single)
    assert before <= (MOST_EACH + PLACES_EACH) * converters
    wait_until(fleet.is_clean)
