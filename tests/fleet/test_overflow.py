"""A process that does everything hands over what is too much for it, and takes what others hand over."""

from collections.abc import Iterator

import pytest

from service.accounts.administration import Terms
from tests.fleet.site import Site, wait_until
from tests.fleet.test_losses import assert_each_ended_once, promise
from tests.support.data import lakes
from tests.support.server import Server, create_account

pytestmark = pytest.mark.xdist_group("fleet")

EVERYTHING = ("serve",)
MANY = 8


@pytest.fixture(scope="module")
def everything(shared_fleet: Site) -> Iterator[Server]:
    """A process with a role of its own choice: it receives and converts, and knows the fleet."""
    server = shared_fleet.start("everything", EVERYTHING)
    yield server
    server.stop()


def test_a_process_takes_what_gateways_hand_over(fleet: Site, everything: Server) -> None:
    """While all workers are frozen, it does their work."""
    assert everything.process.poll() is None
    with fleet.client() as client, fleet.frozen_workers():
        assert_each_ended_once(fleet, promise(client))


def test_a_process_hands_over_what_is_too_much_and_takes_it_back(fleet: Site, everything: Server) -> None:
    """Of several files, it converts some at once; the others wait in the queue, from which only it can take them."""
    files = [(f"{number}.geojson", lakes()) for number in range(MANY)]

    def handed_over() -> int:
        answers = client.batch(*files)["results"]
        assert [answer["success"] for answer in answers] == [True] * MANY
        jobs = [answer["jobId"] for answer in answers]
        return len(fleet.rows("SELECT FROM job WHERE id = ANY($1) AND worker_id IS NOT NULL", jobs))

    with create_account(everything, Terms(plan="business")) as client, fleet.frozen_workers():
        wait_until(lambda: 0 < handed_over() < MANY)
    wait_until(fleet.is_clean)
