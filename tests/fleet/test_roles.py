"""A gateway receives and responds, workers convert: results, charges and refusals equal those of a single process."""

import io
import zipfile
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.fleet.site import Site
from tests.fleet.test_metrics import is_ready
from tests.support.data import collection, feature, lakes, point
from tests.support.geomill import Geomill
from tests.support.patience import wait_until

pytestmark = pytest.mark.xdist_group("fleet")

LARGE = collection(*(feature(point(number % 90, 1), name="x" * 100) for number in range(3000)))
"""More than travels with a message."""


def test_a_waiting_client_gets_the_result_of_a_worker(fleet: Site) -> None:
    """The input travels in the message and is never stored; the job is charged once."""
    with fleet.client() as client:
        answer = client.convert("lakes.geojson", lakes(), outputFormat="csv")
        assert (answer["success"], answer["status"]) == (True, "Completed")
        assert client.download(answer)
    [job] = fleet.rows("SELECT * FROM job WHERE id = $1", answer["jobId"])
    assert (job["attempt"], job["input_key"], job["handover"]) == (2, None, None)
    assert job["worker_id"] not in {None, job["server_id"]}
    assert len(fleet.rows("SELECT FROM ledger WHERE job_id = $1", answer["jobId"])) == 1
    assert fleet.audit() == []


def test_a_large_input_goes_through_the_store_and_is_removed(fleet: Site) -> None:
    """The audit accounts for the object while it exists, and the sweep removes it after the job."""
    assert len(LARGE) > 256 * 1024
    with fleet.client() as client:
        answer = client.convert("large.geojson", LARGE, outputFormat="csv")
    assert (answer["success"], answer["featureCount"]) == (True, 3000)
    assert fleet.audit() == []
    fleet.sweep()
    assert not [key for key in fleet.stored() if "in-" in key]
    assert fleet.audit() == []


def test_an_archive_is_recognised_again_by_the_worker(fleet: Site) -> None:
    """The gateway unpacks it only to detect the format; the worker gets the original file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("folder/lakes.geojson", lakes())
    with fleet.client() as client:
        answer = client.convert("lakes.zip", packed.getvalue(), outputFormat="csv")
        assert (answer["success"], answer["inputFormat"]) == (True, "geojson")


def test_a_file_that_cannot_be_converted_fails_free(fleet: Site) -> None:
    """The reason is the one that a single process gives."""
    with fleet.client() as client:
        answer = client.convert("broken.geojson", b'{"type": "FeatureCollection", "features": [', outputFormat="csv")
        assert (answer["success"], answer["status"]) == (False, "Failed")
        assert answer["error"]
        assert client.usage()[0] == 0


def test_a_batch_is_converted_by_all_workers(fleet: Site) -> None:
    """Each file has its own job and outcome."""
    with fleet.client() as client:
        answer = client.batch(*((f"{number}.geojson", lakes()) for number in range(4)), ("x.unknown", b"x"))
    assert [entry["success"] for entry in answer["results"]] == [True] * 4 + [False]
    assert fleet.audit() == []


def test_a_promised_job_can_be_waited_for(fleet: Site) -> None:
    """A client that comes back hears of the end as soon as its gateway does."""
    with fleet.client() as client:
        accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers={"Prefer": "respond-async"})
        job = client.wait_for(accepted["jobId"], 120)
        assert job["status"] == "Completed"
        assert client.download(job)


def test_a_waiting_job_can_be_cancelled(fleet: Site) -> None:
    """Before any worker has it: it fails at once, is free, and its input is removed."""
    with fleet.frozen_workers(), fleet.client() as client:
        accepted = client.convert("a.geojson", lakes(), outputFormat="csv", headers={"Prefer": "respond-async"})
        assert client.delete(f"/api/geo/convert/jobs/{accepted['jobId']}").status_code == httpx.codes.NO_CONTENT
        assert client.wait_for(accepted["jobId"])["status"] == "Failed"
    fleet.sweep()
    assert fleet.audit() == []
    assert fleet.rows("SELECT FROM ledger WHERE job_id = $1", accepted["jobId"]) == []


def test_a_gateway_is_ready_with_its_queue(fleet: Site) -> None:
    """The readiness probe names the queue among the parts."""
    wait_until(lambda: fleet.readiness()["ready"] and fleet.readiness()["checks"]["queue"] == "ok")
    for worker in fleet.workers:  # one that was suspended may connect again first
        wait_until(partial(is_ready, worker.url))


def test_a_queue_that_is_away_is_named(shared_fleet: Site, tmp_path: Path) -> None:
    """A worker says in one sentence which variable to check and what the cause is, without credentials."""
    own = {"GEOMILL_DATABASE_URL": shared_fleet.dsn, "GEOMILL_NATS_URL": "nats://u:secret@127.0.0.1:1"}
    done = Geomill(tmp_path, {**shared_fleet.settings, **own, "GEOMILL_LOG_LEVEL": "error"})("worker")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("geomill: The NATS server that GEOMILL_NATS_URL names cannot be used (")
    assert "NoneType" not in done.stderr
    assert "u:secret" not in done.stderr
