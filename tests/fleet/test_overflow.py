"""A process that does everything hands over what is too much for it, and takes what others hand over."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.accounts.administration import Terms
from service.settings import Settings
from tests.fleet.site import Site
from tests.fleet.test_losses import assert_each_ended_once, promise
from tests.support.data import lakes, lengthy
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Client, Server, create_account

pytestmark = pytest.mark.xdist_group("fleet")

EVERYTHING = ("serve",)
INLINE_BYTES = Settings().inline_bytes
BUSINESS = Terms(plan="business")
MANY = 8
DRAIN_SECONDS = 120


@pytest.fixture(scope="module")
def everything(shared_fleet: Site) -> Iterator[Server]:
    """A process with a role of its own choice: it receives and converts, and knows the fleet.

    It starts while the queue is away, without which it can convert, and connects later.
    """
    shared_fleet.nats.kill()
    try:
        server = shared_fleet.start("everything", EVERYTHING, settings={"GEOMILL_DRAIN_SECONDS": str(DRAIN_SECONDS)})
        with create_account(server, BUSINESS) as client:
            answer = client.convert("a.geojson", lakes(), outputFormat="csv")
            assert answer["success"], answer
    finally:
        shared_fleet.nats.start()
    wait_until(lambda: shared_fleet.readiness()["checks"]["queue"] == "ok")
    yield server
    if server.process.poll() is None:
        server.stop()


def test_a_process_takes_what_gateways_hand_over(fleet: Site, everything: Server) -> None:
    """While all workers are frozen, it does their work."""
    assert everything.process.poll() is None
    with fleet.client() as client, fleet.frozen_workers():
        assert_each_ended_once(fleet, promise(client))


def claimed_of_a_batch(fleet: Site, client: Client, least_bytes: int = 0) -> int:
    """How many of a batch's files the process has claimed, which it either took back or could not hand over."""
    content = lakes().ljust(least_bytes)
    answers = client.batch(*((f"{number}.geojson", content) for number in range(MANY)))["results"]
    assert [answer["success"] for answer in answers] == [True] * MANY
    jobs = [answer["jobId"] for answer in answers]
    assert len(fleet.rows("SELECT FROM ledger WHERE job_id = ANY($1)", jobs)) == MANY
    return len(fleet.rows("SELECT FROM job WHERE id = ANY($1) AND worker_id IS NOT NULL", jobs))


@pytest.mark.parametrize("least_bytes", [0, 2 * INLINE_BYTES])
def test_a_process_converts_everything_while_the_queue_accepts_nothing(
    fleet: Site, everything: Server, least_bytes: int
) -> None:
    """It runs what it wanted to hand over, also what it has stored for that; nothing waits for the queue."""
    with create_account(everything, BUSINESS) as client, fleet.frozen_workers(), fleet.full_queue():
        wait_until(lambda: claimed_of_a_batch(fleet, client, least_bytes))
    wait_until(fleet.is_clean)


def test_a_process_hands_over_what_is_too_much_and_takes_it_back(fleet: Site, everything: Server) -> None:
    """Of several files, it converts some at once; the others wait in the queue, from which only it can take them."""
    with create_account(everything, BUSINESS) as client, fleet.frozen_workers():
        wait_until(lambda: 0 < claimed_of_a_batch(fleet, client) < MANY)
    wait_until(fleet.is_clean)


def test_a_process_that_stops_ends_what_it_has_handed_over(fleet: Site, everything: Server) -> None:
    """It takes its own jobs back while their clients wait, because nobody else can; it is the last test with it."""
    files = [(f"{number}.geojson", lengthy(1000)) for number in range(MANY)]
    with create_account(everything, BUSINESS) as client, ThreadPoolExecutor() as threads, fleet.frozen_workers():
        wait_until(lambda: claimed_of_a_batch(fleet, client))
        with fleet.held_settlements():
            batch = threads.submit(client.batch, *files)
            wait_until(fleet.messages)
            everything.process.send_signal(signal.SIGTERM)
        assert everything.process.wait(PATIENCE_SECONDS) == 0
        assert [answer["success"] for answer in batch.result()["results"]] == [True] * MANY
    wait_until(fleet.is_clean)
