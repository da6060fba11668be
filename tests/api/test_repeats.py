"""A repeated request counts once, and a client that does not wait gets a response at once (interface 3)."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.data import lakes, lengthy
from tests.support.endless import NAME, endless_file
from tests.support.server import Client

FILE = "/api/geo/convert/file"
ASYNC = {"Prefer": "respond-async"}


def test_the_same_key_converts_once(client: Client) -> None:
    """The second response equals the first; nothing more is counted."""
    key = {"Idempotency-Key": "order 1"}
    first = client.convert("a.geojson", lakes(), headers=key, includeWallet="true")
    second = client.convert("a.geojson", lakes(), headers=key, includeWallet="true")
    links = {"downloadUrl", "downloadExpiresAt"}
    assert {name: value for name, value in first.items() if name not in links} == {
        name: value for name, value in second.items() if name not in links
    }
    assert client.download(second) == client.download(first)
    assert client.usage()[0] == 1


def test_a_refusal_is_repeated_too(client: Client) -> None:
    """Word for word."""
    key = {"Idempotency-Key": "k"}
    refusals = [client.convert("a.geojson", b"{", headers=key) for _ in range(2)]
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    ("name", "content", "output"),
    [("a.geojson", lakes() + b" ", "Csv"), ("b.geojson", lakes(), "Csv"), ("a.geojson", lakes(), "Kml")],
    ids=["content", "name", "field"],
)
def test_a_key_is_for_one_request(client: Client, name: str, content: bytes, output: str) -> None:
    """Another file or field with the same key gets 422."""
    key = {"Idempotency-Key": "k"}
    client.convert("a.geojson", lakes(), headers=key, outputFormat="Csv")
    response = client.post(FILE, files={"file": (name, content)}, data={"outputFormat": output}, headers=key)
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_malformed_key_is_refused(client: Client, key: str) -> None:
    """A key has 1 to 255 printable characters."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())}, headers={"Idempotency-Key": key})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_parameter")


def test_many_at_once_with_one_key_convert_once(client: Client) -> None:
    """Requests during the first one get 409, and one conversion is counted."""
    start = threading.Barrier(8)

    def send(_number: int) -> tuple[int, str]:
        start.wait()
        response = client.post(FILE, files={"file": ("a.geojson", lakes())}, headers={"Idempotency-Key": "k"})
        return response.status_code, response.json().get("jobId", "")

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8)))
    assert {status for status, _ in answers} <= {200, 409}
    assert len({job for status, job in answers if status == 200}) == 1
    assert client.usage()[0] == 1


def test_a_repeat_is_told_the_jobs_of_a_request_whose_response_was_lost(client: Client) -> None:
    """While they run, of a single file and of a batch, in the order of the files."""
    endless = endless_file()
    for path, files in (
        (FILE, [("file", (NAME, endless))]),
        ("/api/geo/convert/batch", [("files", (NAME, endless)), ("files", ("b.xyz", b"x"))]),
    ):
        headers = {"Idempotency-Key": path, **ASYNC}
        accepted, repeated = (client.post(path, files=files, headers=headers) for _ in range(2))
        assert accepted.status_code == 202, accepted.text
        jobs = [job["jobId"] for job in accepted.json().get("jobs", [accepted.json()])]
        problem = repeated.json()
        assert (repeated.status_code, problem["code"], problem["jobIds"]) == (409, "idempotency_key_in_use", jobs)
        assert all(job_id in problem["detail"] for job_id in jobs)
        assert client.delete(f"/api/geo/convert/jobs/{problem['jobIds'][0]}").status_code == 204


def test_a_batch_is_repeated_whole(client: Client) -> None:
    """Its entries are repeated in order."""
    key = {"Idempotency-Key": "k"}
    files = [("a.geojson", lakes()), ("b.geojson", b"{")]
    first, second = (client.batch(*files, headers=key) for _ in range(2))
    assert [entry["jobId"] for entry in first["results"]] == [entry["jobId"] for entry in second["results"]]
    assert [entry["success"] for entry in second["results"]] == [True, False]
    assert client.usage()[0] == 1


def test_a_client_that_will_not_wait_gets_the_job(client: Client) -> None:
    """202 with the job record and its location; the result is there in the end."""
    many = lengthy(20_000)
    response = client.post(FILE, files={"file": ("a.geojson", many)}, headers=ASYNC)
    assert response.status_code == 202, response.text
    assert response.headers["preference-applied"] == "respond-async"
    job = response.json()
    assert job["status"] == "Pending"
    assert response.headers["location"].endswith(f"/api/geo/convert/jobs/{job['jobId']}/status")
    assert client.get(response.headers["location"]).json()["jobId"] == job["jobId"]
    ended = client.wait_for(job["jobId"])
    assert (ended["status"], ended["featureCount"]) == ("Completed", 20_000)


def test_a_file_that_is_refused_at_once_is_answered_at_once(client: Client) -> None:
    """There is nothing to wait for."""
    response = client.post(FILE, files={"file": ("a.xyz", b"x")}, headers=ASYNC)
    assert (response.status_code, response.json()["success"]) == (200, False)


def test_a_batch_that_will_not_wait_gets_its_jobs(client: Client) -> None:
    """202 with a record for each file, in order."""
    many = lengthy(20_000)
    response = client.post(
        "/api/geo/convert/batch", files=[("files", ("a.geojson", many)), ("files", ("b.xyz", b"x"))], headers=ASYNC
    )
    assert response.status_code == 202, response.text
    jobs = response.json()["jobs"]
    assert [job["originalFileName"] for job in jobs] == ["a.geojson", "b.xyz"]
    assert [client.wait_for(job["jobId"])["status"] for job in jobs] == ["Completed", "Failed"]
    listed = client.get(response.headers["location"]).json()["jobs"]
    assert {job["jobId"] for job in listed} == {job["jobId"] for job in jobs}
