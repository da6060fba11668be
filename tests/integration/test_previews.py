"""Previews cost little, however many are requested and however slowly they are read (interface 4.10)."""

from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import anyio
import httpx
import pytest
from prometheus_client import REGISTRY
from starlette.types import Message

from service.accounts.administration import Administration, Terms
from service.engine.convert import Engine
from service.engine.preview import MOST_BYTES
from service.errors import StorageFault
from service.ids import JobId
from service.storage.port import READ_BYTES, ObjectKey, new_key
from service.usecases.preview_result import AT_ONCE, MEDIA_TYPE, PER_ACCOUNT
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service

FAULTS = get_args(StorageFault)


def path_of(job_id: str) -> str:
    """The URL path of a job's preview."""
    return f"/api/geo/convert/jobs/{job_id}/preview"


async def record_key(here: World, job_id: str) -> ObjectKey:
    """Record a key for a job's preview under which nothing is stored."""
    key = await here.services.jobs.preview_key(JobId(UUID(job_id)), here.account.account_id, new_key())
    assert key is not None
    return ObjectKey(key)


class Reader:
    """A client that reads a response's head, and its body only when told to."""

    def __init__(self, here: World, path: str, read_on: anyio.Event) -> None:
        self._here = here
        self._path = path
        self._read_on = read_on
        self.has_head = anyio.Event()
        self.pieces: list[int] = []

    async def read(self) -> None:
        """Read a whole response."""
        headers = [(b"x-api-key", self._here.client.headers["x-api-key"].encode()), (b"host", b"geomill.test")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self._here.application(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            self.has_head.set()
            await self._read_on.wait()
        else:
            self.pieces.append(len(message["body"]))


async def test_slow_readers_hold_one_piece_each_and_are_few(here: World, tmp_path: Path) -> None:
    """A preview is sent in pieces; an account at its limit of readers gets no other until one of them ends."""
    async with anyio.create_task_group() as tasks:
        job_id = (await here.convert())["jobId"]
        large, read_on = tmp_path / "large", anyio.Event()
        large.write_bytes(b" " * MOST_BYTES)
        key = await record_key(here, job_id)
        await here.services.storage.put(key, large, media_type=MEDIA_TYPE, download_name="preview.geojson")
        readers = [Reader(here, path_of(job_id), read_on) for _ in range(PER_ACCOUNT)]
        with anyio.fail_after(PATIENCE_SECONDS):
            for reader in readers:
                tasks.start_soon(reader.read)
                await reader.has_head.wait()
            refused = await here.client.get(path_of(job_id))
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            read_on.set()
            while any(sum(reader.pieces) < MOST_BYTES for reader in readers):  # noqa: ASYNC110 -- there is no event
                await anyio.sleep(0.01)
        assert max(max(reader.pieces) for reader in readers) <= READ_BYTES
        assert (await here.client.get(path_of(job_id))).content == b" " * MOST_BYTES


class HeldEngine:
    """Holds the previews of some results until released, and counts all that are started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.reached, self.let_go, self.is_holding = anyio.Event(), anyio.Event(), True
        preview = Engine.preview

        async def held(engine: Engine, *arguments: Any) -> Path:
            self.begun += 1
            self.reached.set()
            if self.is_holding:
                await self.let_go.wait()
            return await preview(engine, *arguments)

        monkeypatch.setattr(Engine, "preview", held)


@pytest.mark.parametrize("here", ["team"], indirect=True)
async def test_the_same_preview_is_made_once(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients request it meanwhile."""
    job_id = (await here.convert())["jobId"]
    engine = HeldEngine(monkeypatch)
    seen: list[httpx.Response] = []

    async def ask() -> None:
        seen.append(await here.client.get(path_of(job_id), timeout=PATIENCE_SECONDS))

    async with anyio.create_task_group() as tasks:
        for _ in range(PER_ACCOUNT):
            tasks.start_soon(ask)
        await engine.reached.wait()
        engine.let_go.set()
    assert engine.begun == 1
    assert {response.status_code for response in seen} == {200}
    assert len({response.content for response in seen}) == 1


@pytest.mark.parametrize("here", ["team"], indirect=True)
async def test_one_account_leaves_places_to_others(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one account requests as many previews as can be made at once, other accounts are not delayed."""
    jobs = [(await here.convert())["jobId"] for _ in range(AT_ONCE)]
    _, key = await Administration(here.services.database, here.clock).create_account("b", Terms(plan="free"))
    other = {"X-API-Key": key.api_key}
    files = {"file": ("a.geojson", lakes())}
    answer = await here.client.post("/api/geo/convert/upload", files=files, headers=other)
    engine = HeldEngine(monkeypatch)
    async with anyio.create_task_group() as tasks:
        for job_id in jobs:
            tasks.start_soon(here.client.get, path_of(job_id))
        await engine.reached.wait()
        engine.is_holding = False  # those that have begun are held on
        with anyio.fail_after(PATIENCE_SECONDS):
            response = await here.client.get(path_of(answer.json()["jobId"]), headers=other)
        assert response.status_code == 200
        assert engine.begun == 2
        engine.let_go.set()


async def test_a_preview_that_is_not_there_yet_is_no_failure_of_the_store(here: World) -> None:
    """Otherwise clients could page the operator."""

    def failures() -> float:
        return sum(
            REGISTRY.get_sample_value("geomill_storage_failures_total", {"fault": fault}) or 0.0 for fault in FAULTS
        )

    job_id = (await here.convert())["jobId"]
    await record_key(here, job_id)
    before = failures()
    assert (await here.client.get(path_of(job_id))).status_code == 200
    assert failures() == before
