"""With `download=true`, the response of a conversion is the file itself (interface 4.1)."""

import os
from collections.abc import MutableMapping
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from service.errors import Overloaded
from service.http.api import pace
from service.http.api.result import StreamedResponse
from service.http.endpoints.files import StoredFile
from service.metering.ledger import Admission, AdmissionRequest
from service.storage.port import ObjectKey
from service.usecases.jobs import read_job
from service.usecases.read_result import PER_ACCOUNT, read_result
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service

FILE = "/api/geo/convert/file"
JOBS = "/api/geo/convert/jobs"


async def test_the_response_is_the_file_itself(here: World) -> None:
    """With its name and type, charged once per key, for as long as it is kept."""
    data, key = {"outputFormat": "Csv", "targetEPSG": "1"}, {"Idempotency-Key": "k"}
    files = {"file": ("Gew\u00e4sser.geojson", lakes())}
    response = await here.client.post(f"{FILE}?download=true", files=files, data=data, headers=key)
    assert response.status_code == 200
    assert "filename*=UTF-8''Gew%C3%A4sser.csv" in response.headers["content-disposition"]
    assert response.headers["content-length"] == str(len(response.content))
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["geomill-warnings"] == "1"  # about the unknown field
    record = await here.job(response.headers["geomill-job-id"])
    assert response.headers["link"].partition(">")[0].endswith(f"{JOBS}/{record['jobId']}/status")
    by_link = await here.client.get(record["downloadUrl"])
    assert by_link.content == response.content
    assert by_link.headers["content-type"] == response.headers["content-type"]
    again = await here.client.post(f"{FILE}?download=1", files=files, data=data, headers=key)
    assert again.content == response.content
    told = await here.client.post(FILE, files=files, data=data, headers=key)
    assert (told.json()["jobId"], told.headers["geomill-job-id"]) == (record["jobId"], record["jobId"])
    assert (await here.services.ledger.balance(here.account.account_id)).used_conversions == 1
    await here.client.delete(f"{JOBS}/{record['jobId']}")
    gone = await here.client.post(f"{FILE}?download=true", files=files, data=data, headers=key)
    assert (gone.status_code, gone.json()["code"]) == (410, "download_expired")
    assert "with another Idempotency-Key" in gone.json()["detail"]

    files = {"file": ("a.geojson", lakes())}
    lossy = await here.client.post(f"{FILE}?download=true", files=files, data={"outputFormat": "Shapefile"})
    record = await here.job(lossy.headers["geomill-job-id"])
    assert record["truncationReport"]["featureCount"] == 3
    failed = await here.client.post(f"{FILE}?download=true", files={"file": ("a.geojson", b"{")})
    assert (failed.status_code, failed.json()["success"]) == (422, False)
    assert failed.json()["jobId"] == failed.headers["geomill-job-id"]

    several = {"files": ("a.geojson", lakes())}
    for refused in (
        await here.client.post(f"{FILE}?download=yes", files=files),
        await here.client.post(f"{FILE}?download=true", files=files, headers={"Prefer": "respond-async"}),
        await here.client.post("/api/geo/convert/batch?download=true", files=several),
    ):
        assert (refused.status_code, refused.json()["parameter"]) == (400, "download")
    assert len((await here.client.get(JOBS)).json()["jobs"]) == 3


async def test_what_an_asynchronous_batch_has_converted_already_can_be_fetched(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file has ended when the second is admitted, and the second ends after the response."""
    admit, put, responded = here.services.ledger.admit, here.services.storage.put, anyio.Event()
    admitted: list[str] = []

    async def late(request: AdmissionRequest) -> Admission:
        while admitted and len(here.services.runner.active) > 1:  # noqa: ASYNC110 -- what is waited for has no event
            await anyio.sleep(0.01)
        admitted.append(request.object_name)
        return await admit(request)

    async def held(key: ObjectKey, *arguments: Any, **options: Any) -> None:
        if len(admitted) > 1:
            await responded.wait()
        await put(key, *arguments, **options)

    monkeypatch.setitem(vars(here.services.ledger), "admit", late)
    monkeypatch.setitem(vars(here.services.storage), "put", held)
    files, headers = [("files", ("a.geojson", lakes()))] * 2, {"Prefer": "respond-async"}
    response = await here.client.post("/api/geo/convert/batch", files=files, headers=headers)
    responded.set()
    assert response.status_code == 202
    ended, opened = response.json()["jobs"]
    await here.client.get(f"{JOBS}/{opened['jobId']}/status?wait=60")
    assert (ended["status"], opened["status"], "downloadUrl" in opened) == ("Completed", "Pending", False)
    assert (await here.client.get(ended["downloadUrl"])).status_code == 200


@pytest.mark.parametrize("difference", [-1, 1])
async def test_a_result_of_which_the_store_has_lost_a_part_is_not_delivered_as_whole(
    here: World, difference: int
) -> None:
    """The response breaks off, there is no preview of what is left, and operators see that the store is the cause."""
    services, record = here.services, await here.convert()
    job = (await read_job(services, here.account.account_id, record["jobId"])).job
    [path] = [found for found in (here.directory / "store").rglob("*") if found.name == job.object_key]
    os.truncate(path, path.stat().st_size + difference)
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    with capture_logs() as log:
        pieces = read_result(services, here.account.account_id, job)
        if difference < 0:
            await StreamedResponse(await anext(pieces), pieces, {})({"type": "http"}, never, send)
            assert sent[-1]["more_body"]
        else:
            with pytest.raises(Overloaded):
                await anext(pieces)
        preview = await here.client.get(f"{JOBS}/{record['jobId']}/preview")
    assert (preview.status_code, preview.json()["code"]) == (503, "overloaded")
    assert [entry["event"] for entry in log].count("storage.failed") == 2


async def never() -> MutableMapping[str, Any]:
    """The client sends nothing more."""
    await anyio.sleep_forever()
    raise AssertionError


async def test_slow_readers_take_the_places_of_their_account_alone(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While all of them are taken, a file is refused before it is charged; slow reads end, including those of links."""
    files, scope = {"file": ("a.geojson", lakes())}, {"type": "http", "method": "GET", "headers": []}
    services, account_id = here.services, here.account.account_id
    record = await here.convert()
    job = (await read_job(services, account_id, record["jobId"])).job
    reading = anyio.Semaphore(0)

    async def stuck(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            reading.release()
            await anyio.sleep_forever()

    async def read() -> None:
        pieces = read_result(services, account_id, job)
        await StreamedResponse(await anext(pieces), pieces, {})(scope, never, stuck)

    async with anyio.create_task_group() as tasks:
        for _ in range(PER_ACCOUNT):
            tasks.start_soon(read)
        for _ in range(PER_ACCOUNT):
            await reading.acquire()
        refused = await here.client.post(f"{FILE}?download=true", files=files)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert int(refused.headers["retry-after"]) > 0
        tasks.cancel_scope.cancel()
    [path] = [found for found in (here.directory / "store").rglob("*") if found.stat().st_size == job.output_size_bytes]
    with monkeypatch.context() as hurried, anyio.fail_after(PATIENCE_SECONDS):
        hurried.setattr(pace, "GRACE_SECONDS", 0.0)
        hurried.setattr(pace, "LEAST_BYTES_PER_SECOND", 10_000)
        await read()
        await StoredFile(path, stat_result=path.stat())(scope, never, stuck)
    assert (await here.client.post(f"{FILE}?download=true", files=files)).status_code == 200
    assert (await services.ledger.balance(account_id)).used_conversions == 2
