"""One stage per store: the real store, a clock that tests move, and a client that has only the link."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.session
import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from service.clock import DatabaseClock
from service.errors import (
    DownloadExpired,
    DownloadRefused,
    NotFound,
    Overloaded,
    RangeNotSatisfiable,
    RequestFault,
    StorageFault,
    StorageUnavailable,
)
from service.http.endpoints.files import download_file
from service.storage.bucket_config import HOME, BucketConfig
from service.storage.clients import Effort
from service.storage.local import open_local
from service.storage.port import Link, ObjectKey, Storage, new_key
from service.storage.s3 import open_s3

from .servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server

# The clients of a store read a megabyte of API descriptions, which takes most of the time of a small test. Once is
# enough for all stores.
botocore.session.create_loader = cache(botocore.session.create_loader)

SECRET = b"a secret that signs links in tests"
REFUSED = {400, 403, 410}
"""How a store refuses a link: AWS and the local store with 403 or 410, the S3 server of these tests also with 400."""
STATUS = {DownloadRefused: 403, DownloadExpired: 410, NotFound: 404, RangeNotSatisfiable: 416, Overloaded: 503}

PATIENT = Effort(timeout_seconds=200)
"""As long as a busy host takes: rclone says too early that it has a part that is sent again while it writes it."""
HASTY = msgspec.structs.replace(PATIENT, attempts=2)
"""Gives up soon where a server is away."""


class MovableClock(DatabaseClock):
    """This host's time plus an offset that tests set; the clock of the host itself is wrong by another one."""

    def __init__(self) -> None:
        super().__init__(host=lambda: self() + self.host_off)
        self.ahead = timedelta()
        self.host_off = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Stage(msgspec.Struct, frozen=True):
    """What a test of either store uses."""

    storage: Storage
    client: httpx.AsyncClient
    clock: MovableClock
    directory: Path
    head_status: int

    async def put(self, content: bytes, key: ObjectKey | None = None, *, name: str = "roads.zip") -> ObjectKey:
        """Store `content` as a converter's output, and leave no other name for the file."""
        key = key or new_key()
        output = self.directory / "output"
        output.write_bytes(content)
        await self.storage.put(key, output, media_type="application/zip", download_name=name)
        output.unlink()
        return key

    async def link(
        self,
        key: ObjectKey,
        *,
        lasts: timedelta = timedelta(hours=4),
        name: str = "roads.zip",
        media_type: str = "application/zip",
    ) -> Link:
        """A link that is valid for that long from now, by the stage's clock."""
        expires_at = self.clock() + lasts
        link = await self.storage.link(key, expires_at=expires_at, download_name=name, media_type=media_type)
        assert link is not None
        return link

    async def get(self, key: ObjectKey, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Fetch the object through a fresh link."""
        return await self.client.get((await self.link(key)).url, headers=headers)

    async def keys(self) -> set[ObjectKey]:
        """Return all keys in the store."""
        return {found.key for region in ("", *self.storage.regions) async for found in self.storage.objects(region)}


@asynccontextmanager
async def local_stage(root: Path, clock: MovableClock, directory: Path) -> AsyncIterator[Stage]:
    """Open a local store and the endpoint that serves its links."""
    async with AsyncExitStack() as stack:
        storage = await stack.enter_async_context(open_local(root, [SECRET], clock=clock))
        transport = httpx.ASGITransport(gateway(storage))
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://gateway"))
        yield Stage(storage, client, clock, directory, head_status=200)


@asynccontextmanager
async def s3_stage(
    places: Mapping[str, BucketConfig], clock: MovableClock, directory: Path, effort: Effort = PATIENT
) -> AsyncIterator[Stage]:
    """Open an S3 store; its links lead to the server, and are signed for GET alone."""
    async with open_s3(places, effort, clock=clock) as storage, httpx.AsyncClient() as client:
        yield Stage(storage, client, clock, directory, head_status=403)


def place(endpoint: str) -> BucketConfig:
    """The bucket of a test's server, with its access keys."""
    return BucketConfig(bucket=BUCKET, endpoint=endpoint, access_key=ACCESS_KEY, secret_key=SECRET_KEY)


def gateway(storage: Storage) -> Callable[..., Awaitable[None]]:
    """A program that serves only the links of a local store."""

    async def fault(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestFault)
        return PlainTextResponse(error.message, STATUS[type(error)])

    routes = [Route("/files/{key}/{name}", download_file)]
    app = Starlette(routes=routes, exception_handlers={RequestFault: fault})

    async def with_services(scope: dict[str, Any], receive: Any, send: Any) -> None:
        state = {"services": SimpleNamespace(storage=storage), "request_id": "0" * 32}
        await app({**scope, "state": state}, receive, send)

    return with_services


@contextmanager
def failing(fault: StorageFault) -> Iterator[None]:
    """Expect a failure of the store of this kind, with nothing of the store in its message to clients."""
    with pytest.raises(StorageUnavailable) as failure:
        yield
    assert failure.value.fault == fault, failure.value.detail
    assert failure.value.message == str(failure.value)
    assert "try again" in failure.value.message


@pytest.fixture
def clock() -> MovableClock:
    """A clock that starts with the host's time."""
    return MovableClock()


@pytest.fixture
async def local(tmp_path: Path, clock: MovableClock) -> AsyncIterator[Stage]:
    """The local store."""
    (tmp_path / "work").mkdir()
    async with local_stage(tmp_path / "store", clock, tmp_path / "work") as stage:
        yield stage


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server for the whole run."""
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
async def s3(server: S3Server, tmp_path: Path, clock: MovableClock) -> AsyncIterator[Stage]:
    """The S3 store with its own prefix in a bucket that all tests share."""
    (tmp_path / "work").mkdir()
    places = {HOME: msgspec.structs.replace(place(server.url), prefix=f"{new_key()}/")}
    async with s3_stage(places, clock, tmp_path / "work") as stage:
        yield stage


@pytest.fixture(params=["local", "s3"])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Each store in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Stage)
    return found
