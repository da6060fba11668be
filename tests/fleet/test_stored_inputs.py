"""Workers convert what a gateway has received, whatever becomes of it in the bucket."""

import pytest
from anyio.from_thread import start_blocking_portal

from service.usecases.claimed_jobs import REPLACED
from tests.fleet.site import WORKER, Site
from tests.integration.storage.servers import wire_to
from tests.support.data import lakes

pytestmark = pytest.mark.xdist_group("fleet")
_INPUT = "SELECT input_key FROM job WHERE id::text = $1"


@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_input_that_was_replaced_is_not_converted(fleet: Site, *, is_replaced: bool) -> None:
    """By another one of the same size: the job fails free at once. One that was only written again is converted."""
    with fleet.client() as client:
        with fleet.frozen_workers():
            accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers={"Prefer": "respond-async"})
            [row] = fleet.rows(_INPUT, accepted["jobId"])
            other = lakes().replace(b"0", b"1")
            assert (len(other), other != lakes()) == (len(lakes()), True)
            fleet.replace(row["input_key"], other if is_replaced else lakes())
        ended = client.wait_for(accepted["jobId"])
        expected = ("Failed", REPLACED) if is_replaced else ("Completed", None)
        assert (ended["status"], ended.get("errorMessage")) == expected
        assert client.usage()[0] == (not is_replaced)
    assert fleet.rows("SELECT attempt FROM job WHERE id::text = $1", accepted["jobId"]) == [{"attempt": 2}]


def test_an_input_that_is_damaged_on_its_way_to_a_worker_is_fetched_again(fleet: Site) -> None:
    """Over plain HTTP, nothing else would notice it."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(wire_to(fleet.s3)) as wire,
        fleet.client() as client,
        fleet.frozen_workers(),
    ):
        wire.damaged = b"coordinates"
        worker = fleet.start("behind-a-wire", WORKER, settings={"GEOMILL_S3_ENDPOINT": wire.url})
        try:
            accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers={"Prefer": "respond-async"})
            ended = client.wait_for(accepted["jobId"])
            assert (ended["status"], wire.damaged) == ("Completed", b"")
        finally:
            worker.process.kill()
            worker.process.wait()
    assert fleet.rows("SELECT attempt FROM job WHERE id::text = $1", accepted["jobId"]) == [{"attempt": 2}]
