"""The object server of measurements does what the service asks of a store while it converts."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import httpx
import pytest

from bench.fleet.object_server import ObjectServer
from service.errors import ObjectMissing
from service.storage.bucket_config import HOME
from service.storage.observed import copy_observed
from service.storage.port import new_key
from service.storage.upload import SMALL_BYTES
from tests.support.patience import until

from .conftest import MovableClock, Stage, place, s3_stage
from .servers import BUCKET, s3_server

LARGE = 3 << 20


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[ObjectServer]:
    """A server without objects."""
    (tmp_path / "objects").mkdir()
    with s3_server(tmp_path / "objects", kind=ObjectServer) as running:
        assert isinstance(running, ObjectServer)
        yield running


@pytest.fixture
async def stage(objects: ObjectServer, tmp_path: Path, clock: MovableClock) -> AsyncIterator[Stage]:
    """A store on it."""
    async with s3_stage({HOME: place(objects.url)}, clock, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("size", [0, 1000, SMALL_BYTES + 1, LARGE])
async def test_it_gives_what_it_was_given(stage: Stage, tmp_path: Path, size: int) -> None:
    """Also in place of what was there before."""
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    key = await stage.put(b"before")
    await stage.put(content, key)
    await copy_observed(stage.storage.read(key), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    await stage.storage.check()


async def test_it_deletes_what_it_is_told(stage: Stage, objects: ObjectServer, tmp_path: Path) -> None:
    """And nothing else; it does not mind what is not there, and says so to whoever reads it."""
    kept, gone = await stage.put(b"kept"), await stage.put(b"gone")
    await stage.storage.delete([gone, new_key()])
    assert objects.files() == [kept]
    with pytest.raises(ObjectMissing):
        await copy_observed(stage.storage.read(gone), tmp_path / "copy")


async def test_it_refuses_what_was_changed_on_the_way(objects: ObjectServer) -> None:
    """The client has signed another content."""
    async with httpx.AsyncClient() as client:
        url, headers = f"{objects.url}/{BUCKET}/results/{new_key()}", {"x-amz-content-sha256": "0" * 64}
        answer = await client.put(url, content=b"changed", headers=headers)
    assert answer.status_code == 400
    assert files_below(objects) == []


async def test_it_keeps_nothing_of_an_upload_that_breaks_off(objects: ObjectServer) -> None:
    """Neither under its name nor as a draft."""
    stream = await anyio.connect_tcp(*objects.host_and_port())
    await stream.send(f"PUT /{BUCKET}/results/{new_key()} HTTP/1.1\r\nContent-Length: {LARGE}\r\n\r\n".encode())
    await stream.send(bytes(LARGE // 2))
    await until(lambda: files_below(objects))
    with suppress(OSError):
        await stream.aclose()
    await until(lambda: not files_below(objects))


def files_below(objects: ObjectServer) -> list[str]:
    """All files of the server."""
    return [path.name for path in objects.directory.rglob("*") if path.is_file()]
