"""Only its owner can cancel a job free of charge, or erase its result, whichever process runs it."""

from pathlib import Path

import anyio
import httpx
import pytest
from prometheus_client import REGISTRY

from service.accounts.administration import Administration, Terms
from service.db.pool import Connection
from service.metering.ledger import Release
from service.storage.disk import Disk
from service.usecases.audit import audit
from service.usecases.delete_job import CANCELLED
from service.usecases.maintenance import sweep
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import until
from tests.support.world import World, world

JOBS = "/api/geo/convert/jobs"
FILE = "/api/geo/convert/upload"
CANCELLING = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%release_job(%'
"""


class HeldStore:
    """The store of one process, which stores nothing until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, here: World) -> None:
        storage, put = here.services.storage, here.services.storage.put
        self.reached, self.let_go = anyio.Event(), anyio.Event()

        async def held(*arguments: object, **options: object) -> None:
            self.reached.set()
            await self.let_go.wait()
            await put(*arguments, **options)  # type: ignore[arg-type]  # the store's own

        monkeypatch.setitem(vars(storage), "put", held)


class Conversion:
    """A conversion in progress, and its response."""

    def __init__(self) -> None:
        self.answer: httpx.Response

    async def send(self, here: World, content: bytes = lakes(), name: str = "a.geojson") -> None:
        """Convert a file; sets `answer`."""
        files, data = {"file": (name, content)}, {"outputFormat": "Csv"}
        self.answer = await here.client.post(FILE, files=files, data=data, timeout=120)

    async def error(self) -> str:
        """Wait for the response; return the reason for the failure."""
        await until(lambda: hasattr(self, "answer"))
        assert self.answer.status_code == 200
        return str(self.answer.json()["error"])


async def open_job(here: World) -> str:
    """The id of the open job, once it exists."""
    while True:
        for job in (await here.client.get(JOBS)).json()["jobs"]:
            if job["status"] in {"Pending", "Processing"}:
                return str(job["jobId"])


async def assert_not_charged(here: World, job_id: str) -> None:
    """Neither the books nor the store have anything of it."""
    record = await here.job(job_id)
    assert (record["status"], record["errorMessage"]) == ("Failed", CANCELLED)
    balance = await here.services.ledger.balance(here.account.account_id)
    assert (balance.used_conversions, balance.used_bytes) == (0, 0)
    await sweep(here.services)
    assert await audit(here.services.database, here.services.storage) == []
    assert await here.stored() == 0


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("here", ["team"], indirect=True)
async def test_cancelling_ends_the_run_and_frees_its_place(here: World) -> None:
    """The waiting client is told; nothing is charged; repeating it has no effect."""
    async with anyio.create_task_group() as tasks:
        conversion = Conversion()
        tasks.start_soon(conversion.send, here, endless_file(), NAME)
        job_id = await open_job(here)
        while (await here.job(job_id))["status"] != "Processing":  # noqa: ASYNC110 -- as above
            await anyio.sleep(0.01)
        assert (await here.client.delete(f"{JOBS}/{job_id}")).status_code == 204
        assert (here.services.pool.queue.places_taken, here.services.runner.active) == (0, frozenset())
        assert await conversion.error() == CANCELLED
        for again in ("", "?only=open"):
            assert (await here.client.delete(f"{JOBS}/{job_id}{again}")).status_code == 204
        await assert_not_charged(here, job_id)
        await here.convert()


@pytest.mark.asyncio(loop_scope="session")
async def test_a_job_that_completes_before_it_is_cancelled_keeps_its_result(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner, who wanted an open job cancelled, learns that it was charged, and where the result is."""
    held, release, may_release = HeldStore(monkeypatch, here), here.services.ledger.release, anyio.Event()
    asked = anyio.Event()

    async def late(wish: Release) -> object:
        asked.set()
        await may_release.wait()
        return await release(wish)

    answers: list[httpx.Response] = []

    async def cancel(job_id: str) -> None:
        answers.append(await here.client.delete(f"{JOBS}/{job_id}?only=open"))

    monkeypatch.setitem(vars(here.services.ledger), "release", late)
    async with anyio.create_task_group() as tasks:
        conversion = Conversion()
        tasks.start_soon(conversion.send, here)
        await held.reached.wait()
        job_id = await open_job(here)
        tasks.start_soon(cancel, job_id)
        await asked.wait()
        held.let_go.set()
        await until(lambda: hasattr(conversion, "answer"))
        may_release.set()
    [answer] = answers
    record = answer.json()
    assert (answer.status_code, record["jobId"], record["status"]) == (409, job_id, "Completed")
    assert (await here.client.get(record["downloadUrl"])).status_code == 200
    assert (await here.services.ledger.balance(here.account.account_id)).used_conversions == 1
    refused = await here.client.delete(f"{JOBS}/{job_id}?only=completed")
    assert (refused.status_code, refused.json()["parameter"]) == (400, "only")
    assert (await here.client.delete(f"{JOBS}/{job_id}")).status_code == 204
    expired = await here.client.delete(f"{JOBS}/{job_id}?only=open")
    assert (expired.status_code, expired.json()["status"]) == (409, "Expired")


async def assert_the_end_is_awaited(held: HeldStore, here: World, other: World) -> None:
    """In the job's process and in another one, but no longer than requested."""
    statuses: list[str] = []

    async def ask(process: World, seconds: int) -> None:
        response = await process.client.get(f"{JOBS}/{job_id}/status?wait={seconds}", timeout=120)
        statuses.append(response.json()["status"])

    async with anyio.create_task_group() as tasks:
        conversion, held.reached, held.let_go = Conversion(), anyio.Event(), anyio.Event()
        tasks.start_soon(conversion.send, here)
        await held.reached.wait()
        job_id = await open_job(here)
        await ask(other, 1)
        assert statuses.pop() in {"Pending", "Processing"}
        tasks.start_soon(ask, here, 60)
        tasks.start_soon(ask, other, 60)
        await until(lambda: bool(here.services.ends.watched and other.services.ends.watched))
        assert not statuses
        held.let_go.set()
    assert statuses == ["Completed", "Completed"]
    for wait in ("61", "-1", "x", "1.5", ""):
        refused = await here.client.get(f"{JOBS}/{job_id}/status?wait={wait}")
        assert (refused.status_code, refused.json()["parameter"]) == (400, "wait")


async def test_a_job_of_another_process_is_awaited_and_cancelled(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process notices while it runs; one that does not notice cannot settle, and what it stores is removed."""
    async with (
        world(database_url, tmp_path / "a") as here,
        world(database_url, tmp_path / "b") as other,
        anyio.create_task_group() as tasks,
    ):
        other.client.headers.update(here.client.headers)
        held = HeldStore(monkeypatch, here)
        for notices, is_swept in ((True, False), (False, True), (False, False)):
            if not notices:
                monkeypatch.setitem(vars(here.services.runner), "held_for", lambda _seconds: frozenset())
            conversion, held.reached, held.let_go = Conversion(), anyio.Event(), anyio.Event()
            tasks.start_soon(conversion.send, here)
            await held.reached.wait()
            job_id = await open_job(here)
            assert (await other.client.delete(f"{JOBS}/{job_id}")).status_code == 204
            if is_swept:
                await sweep(here.services)
            if not notices:
                held.let_go.set()
            assert await conversion.error() == CANCELLED
            await until(lambda: not here.services.runner.active)
            assert await here.stored() == 0
            await assert_not_charged(here, job_id)
        await assert_the_end_is_awaited(held, here, other)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_result_is_erased_at_once(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only by its owner; record, link and repeats under its key say so, and the charge remains."""
    files, headers = {"file": ("a.geojson", lakes())}, {"Idempotency-Key": "k"}
    answer = (await here.client.post(FILE, files=files, headers=headers)).json()
    address = f"{JOBS}/{answer['jobId']}"
    _, stranger = await Administration(here.services.database, here.clock).create_account("b", Terms(plan="free"))
    for key, job_id in ((stranger.api_key, answer["jobId"]), (None, stranger.account_id), (None, "x")):
        refused = await here.client.delete(f"{JOBS}/{job_id}", headers={"X-API-Key": key} if key else None)
        assert (refused.status_code, refused.json()["code"]) == (404, "job_not_found")
    assert (await here.client.get(answer["downloadUrl"])).status_code == 200
    with monkeypatch.context() as broken:
        broken.setattr(Disk, "delete", _fail)
        refused = await here.client.delete(address)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert (await here.job(answer["jobId"]))["status"] == "Expired"
        assert await here.stored() == 1
    for _ in range(2):
        response = await here.client.delete(address)
        assert (response.status_code, response.content) == (204, b"")
    assert await here.stored() == 0
    gone = await here.client.get(answer["downloadUrl"])
    assert (gone.status_code, gone.json()["code"]) == (410, "download_expired")
    record = await here.job(answer["jobId"])
    assert (record["status"], "downloadUrl" in record) == ("Expired", False)
    again = (await here.client.post(FILE, files=files, headers=headers)).json()
    assert (again["jobId"], again["status"], again["success"]) == (answer["jobId"], "Expired", True)
    assert (await here.services.ledger.balance(here.account.account_id)).used_conversions == 1
    assert await audit(here.services.database, here.services.storage) == []


def _fail(*_arguments: object) -> None:
    raise OSError(5, "Input/output error")


async def test_a_cancellation_that_is_repeated_while_the_database_is_away_is_counted_once(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client has not waited for the response, so that two requests find that the job is cancelled."""
    before = cancellations()
    async with world(database_url, tmp_path) as here, anyio.create_task_group() as tasks:
        store, conversion, database = HeldStore(monkeypatch, here), Conversion(), here.services.database
        tasks.start_soon(conversion.send, here)
        await store.reached.wait()
        job_id = await open_job(here)
        async with (
            anyio.create_task_group() as requests,
            database.transaction() as holder,
            database.connection() as observer,
        ):
            await holder.execute("SELECT FROM job WHERE id::text = $1 FOR UPDATE", job_id)
            for _ in range(2):
                requests.start_soon(here.client.delete, f"{JOBS}/{job_id}")
            lost = await two_sessions(observer)
            await observer.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", list(lost))
            while await two_sessions(observer) & lost:
                pass
        store.let_go.set()
        assert await conversion.error() == CANCELLED
        assert cancellations() - before == 1
        await assert_not_charged(here, job_id)


async def two_sessions(observer: Connection) -> set[int]:
    """Wait for two sessions that are about to cancel a job."""
    while len(found := {row["pid"] for row in await observer.fetch(CANCELLING)}) < 2:  # noqa: ASYNC110 -- nothing announces it
        await anyio.sleep(0.02)
    return found


def cancellations() -> float:
    """How many jobs have ended so, by the metrics."""
    return REGISTRY.get_sample_value("geomill_jobs_ended_total", {"outcome": "cancelled"}) or 0.0
