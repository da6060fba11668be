"""Owners, and nobody else, can read single jobs and lists of jobs (interface 2.3, 4.6, 4.7)."""

import json
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from service.usecases.jobs import LISTS_PER_ACCOUNT
from tests.api.conftest import NewClient
from tests.support.data import bare_points, lakes
from tests.support.server import Client

COMPLETED = {
    "jobId", "originalFileName", "status", "downloadUrl", "downloadExpiresAt", "featureCount", "geometryType",
    "inputSizeBytes", "outputSizeBytes", "processingTimeMs", "createdAt", "completedAt",
}  # fmt: skip


def test_a_job_shows_what_its_conversion_answered(client: Client) -> None:
    """The status endpoint returns every field of the record and a working link."""
    answer = client.convert("lakes.geojson", lakes(), outputFormat="Kml")
    job = client.get(f"/api/geo/convert/jobs/{answer['jobId']}/status").json()
    assert set(job) == COMPLETED
    for member in ("jobId", "status", "featureCount", "geometryType", "outputSizeBytes", "processingTimeMs"):
        assert job[member] == answer[member]
    assert job["inputSizeBytes"] == len(lakes())
    assert job["createdAt"] <= job["completedAt"]
    assert client.download(job) == client.download(answer)


def test_a_job_in_progress_shows_how_much_is_done(client: Client) -> None:
    """The share of its stage, as soon as the converter has reported one, in steps."""
    accepted = client.post(
        "/api/geo/convert/file",
        files={"file": ("many.shp", bare_points(400_000))},
        data={"outputFormat": "GeoPackage", "sourceEpsg": "4326"},
        headers={"Prefer": "respond-async"},
    ).json()
    path, progress = f"/api/geo/convert/jobs/{accepted['jobId']}", accepted["progress"]
    assert progress == {"stage": "waiting"}
    while "share" not in progress:
        progress = client.get(f"{path}/status").json()["progress"]
    assert progress["stage"] in {"reading", "converting", "verifying"}
    assert progress["share"] in {step / 20 for step in range(21)}
    client.delete(path)


def test_a_refused_file_has_a_job_that_says_why(client: Client) -> None:
    """A client can recover a refusal that it did not receive (interface 3)."""
    answer = client.convert("a.geojson", lakes(), outputFormat="GeoJson")
    job = client.get(f"/api/geo/convert/jobs/{answer['jobId']}/status").json()
    assert job["status"] == "Failed"
    assert job["errorMessage"] == answer["error"]
    assert "downloadUrl" not in job


def test_recent_jobs_come_newest_first(client: Client) -> None:
    """The list has the caller's jobs in order, each Completed one with a link."""
    ids = [client.convert(f"{number}.geojson", lakes(), outputFormat="Csv")["jobId"] for number in range(3)]
    answer = client.get("/api/geo/convert/jobs").json()
    assert answer["success"] is True
    assert [job["jobId"] for job in answer["jobs"]] == ids[::-1]
    assert all(client.download(job) for job in answer["jobs"])
    limited = client.get("/api/geo/convert/jobs", params={"limit": 2}).json()
    assert [job["jobId"] for job in limited["jobs"]] == ids[:0:-1]


@pytest.mark.parametrize("limit", ["0", "101", "-1", "ten", "", "1.5", "9" * 40])
def test_a_limit_outside_its_bounds_is_refused(client: Client, limit: str) -> None:
    """`limit` is a whole number from 1 to 100."""
    response = client.get("/api/geo/convert/jobs", params={"limit": limit})
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_parameter"
    assert response.json()["parameter"] == "limit"


@pytest.mark.parametrize("job_id", ["0193f1c2-0000-7000-8000-000000000000", "nonsense", "0", "%00"])
def test_an_unknown_job_is_not_found(client: Client, job_id: str) -> None:
    """Whatever the id looks like."""
    response = client.get(f"/api/geo/convert/jobs/{job_id}/status")
    assert response.status_code == 404
    assert response.json()["code"] == "job_not_found"


def test_the_job_of_another_account_is_not_found(client: Client, new_client: NewClient) -> None:
    """The response does not reveal that the job exists, and it is in no other account's list."""
    answer = client.convert("lakes.geojson", lakes())
    other = new_client("free")
    assert other.get(f"/api/geo/convert/jobs/{answer['jobId']}/status").status_code == 404
    assert other.get("/api/geo/convert/jobs").json()["jobs"] == []


def test_a_client_that_does_not_read_has_few_lists_in_memory(client: Client) -> None:
    """Each may have a hundred jobs of a megabyte: more wait until the first ones are read, or their clients leave."""
    columns = {f"{'n' * 200}{number:05}": 1 for number in range(1900)}
    point = {"type": "Point", "coordinates": [1, 2]}
    wide = json.dumps({"type": "Feature", "properties": columns, "geometry": point}).encode()
    for _ in range(8):
        assert client.convert("wide.geojson", wide, outputFormat="Shapefile")["success"]
    address = urlsplit(client.server.url)
    request = f"GET /api/geo/convert/jobs HTTP/1.1\r\nHost: {address.netloc}\r\nX-API-Key: {client.key.api_key}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(LISTS_PER_ACCOUNT):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect((str(address.hostname), address.port or 80))
            reader.sendall(request.encode())
            assert reader.recv(12) == b"HTTP/1.1 200"
        with pytest.raises(httpx.ReadTimeout):
            client.get("/api/geo/convert/jobs", timeout=2)
    assert len(client.get("/api/geo/convert/jobs").json()["jobs"]) == 8
