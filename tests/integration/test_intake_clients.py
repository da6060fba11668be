"""Uploads by common client libraries, through a real server."""

import asyncio
import io
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import anyio
import httpx
import pytest
import urllib3
from anyio import to_thread
from msgspec.structs import replace
from starlette.requests import ClientDisconnect

from service.errors import UploadTimeout
from service.intake.form import MEBIBYTE, FormSpec, IntakeLimits
from service.intake.workspace import WorkArea, open_work_area
from tests.integration.intake_server import Receiver, open_descriptors, serving
from tests.support.patience import until
from tests.unit.intake.forms import BOUNDARY, Part, build

FORM = FormSpec(file_field="file", fields=frozenset({"outputFormat"}))
LIMITS = IntakeLimits(max_file_bytes=8 * MEBIBYTE)
HEAD = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary={BOUNDARY.decode()}\r\n"

Send = Callable[[str, Path], Awaitable[int]]


@pytest.fixture
async def area(tmp_path: Path) -> AsyncIterator[WorkArea]:
    async with open_work_area(tmp_path / "work") as area:
        yield area


def content_of(file: Path) -> bytes:
    return file.read_bytes()


async def with_httpx(url: str, file: Path) -> int:
    async with httpx.AsyncClient(timeout=120) as client:
        files = {"file": (file.name, content_of(file))}
        answer = await client.post(url, files=files, data={"outputFormat": "Kml"})
        return answer.status_code


async def with_aiohttp(url: str, file: Path) -> int:
    form = aiohttp.FormData({"outputFormat": "Kml"}, quote_fields=False)
    form.add_field("file", io.BytesIO(content_of(file)), filename=file.name)
    async with aiohttp.ClientSession() as session, session.post(url, data=form) as answer:
        return answer.status


async def with_urllib3(url: str, file: Path) -> int:
    def post() -> int:
        fields: dict[str, str | tuple[str, bytes]] = {"file": (file.name, content_of(file)), "outputFormat": "Kml"}
        with urllib3.PoolManager() as pool:
            return pool.request("POST", url, fields=fields, retries=False).status

    return await to_thread.run_sync(post)


def with_curl(*options: str) -> Send:
    async def post(url: str, file: Path) -> int:
        form = [
            "-F",
            "file=@" + '"' + str(file).replace("\\", "\\\\").replace('"', '\\"') + '"',
            "-F",
            "outputFormat=Kml",
        ]
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *form, *options, url]
        return int(await to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, check=False).stdout))

    return post


CLIENTS: dict[str, Send] = {
    "httpx": with_httpx,
    "aiohttp": with_aiohttp,
    "urllib3": with_urllib3,
    "curl": with_curl(),
    "curl in chunks": with_curl("-H", "Transfer-Encoding: chunked"),
    "curl with old escapes": with_curl("--form-escape"),
}


@pytest.mark.parametrize("name", ["a.geojson", "Zürich 東京 (1).geojson", 'a "b" 50%.geojson', "semi; name=x.csv"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_what_clients_send_arrives(area: WorkArea, tmp_path: Path, client: str, name: str) -> None:
    """Every client's file arrives under the user's name for it, with the field beside it."""
    file = tmp_path / name
    file.write_bytes(os.urandom(3 * MEBIBYTE))
    receiver = Receiver(area, FORM, LIMITS)
    async with serving(receiver.app) as address:
        assert await CLIENTS[client](address + "/", file) == 200
    [form] = receiver.forms
    [upload] = form.files
    assert (upload.untrusted_name, upload.size_bytes) == (name, 3 * MEBIBYTE)
    assert form.fields == {"outputFormat": ("Kml",)}
    assert not upload.directory.exists()


async def half_an_upload(address: str, headers: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the head and the first half of an upload of 4 MB."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = build([Part("file", bytes(4 * MEBIBYTE), "a.geojson")])
    writer.write(HEAD.encode() + headers.format(length=len(body)).encode() + b"\r\n" + body[: 2 * MEBIBYTE])
    await writer.drain()
    return reader, writer


def directories(root: Path) -> list[Path]:
    return [directory for area in (root / "work").iterdir() for directory in area.iterdir()]


async def test_a_client_that_leaves_midway_leaves_nothing(area: WorkArea, tmp_path: Path) -> None:
    """A client that disconnects during its upload leaves no file, task or descriptor."""
    receiver = Receiver(area, FORM, LIMITS)
    async with serving(receiver.app) as address:
        tasks, descriptors = len(asyncio.all_tasks()), open_descriptors()
        _, writer = await half_an_upload(address, "Content-Length: {length}\r\n")
        await until(lambda: directories(tmp_path) != [])
        writer.transport.abort()
        await until(lambda: len(receiver.failures) == 1)
        assert isinstance(receiver.failures[0], ClientDisconnect)
        await until(lambda: directories(tmp_path) == [])
        await until(lambda: len(asyncio.all_tasks()) <= tasks and open_descriptors() <= descriptors)


async def test_a_client_that_falls_silent_is_told(area: WorkArea, tmp_path: Path) -> None:
    """A client that stops sending gets 408, its connection ends, and nothing remains."""
    receiver = Receiver(area, FORM, replace(LIMITS, idle_seconds=0.5))
    async with serving(receiver.app) as address:
        tasks = len(asyncio.all_tasks())
        reader, writer = await half_an_upload(address, "Content-Length: {length}\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408")
        assert [type(failure) for failure in receiver.failures] == [UploadTimeout]
        assert directories(tmp_path) == []
        writer.close()
        await writer.wait_closed()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_file_above_the_ceiling_is_told(area: WorkArea, tmp_path: Path, client: str) -> None:
    """Every client receives the 413 for a file above the ceiling, and nothing remains."""
    file = tmp_path / "a.geojson"
    file.write_bytes(bytes(30 * MEBIBYTE))
    receiver = Receiver(area, FORM, LIMITS)
    async with serving(receiver.app) as address:
        assert await CLIENTS[client](address + "/", file) == 413
    assert directories(tmp_path) == []


async def test_uploads_at_once_do_not_mix(area: WorkArea, tmp_path: Path) -> None:
    """Fifty concurrent uploads each arrive whole, and leave nothing."""
    receiver = Receiver(area, FORM, LIMITS)
    files = []
    for number in range(50):
        files.append(tmp_path / f"{number}.geojson")
        files[-1].write_bytes(os.urandom(number * 10_000))
    async with serving(receiver.app) as address, anyio.create_task_group() as clients:
        for file in files:
            clients.start_soon(with_httpx, address + "/", file)
    received = {form.files[0].untrusted_name: form.files[0].size_bytes for form in receiver.forms}
    assert received == {file.name: file.stat().st_size for file in files}
    assert directories(tmp_path) == []
