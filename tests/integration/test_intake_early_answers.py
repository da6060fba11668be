"""What clients see, and what the server keeps, if the response is ready before the body has been read."""

import asyncio
import io
import subprocess
from collections.abc import Awaitable, Callable

import aiohttp
import anyio
import httpx
import pytest
import urllib3
from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.middleware.draining import DrainingMiddleware
from tests.integration.intake_server import open_descriptors, serving
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.processes import resident_bytes

MEBIBYTE = 1024 * 1024
REFUSAL = b'{"error": "refused"}'

Answer = Callable[[str, Send], Awaitable[None]]
Client = Callable[[str, bytes], Awaitable[int]]


def early(answer: Answer) -> ASGIApp:
    """An application that responds through `answer` without reading, once the server has had time to fill its queue."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["type"] != "http":
            raise NotImplementedError
        await anyio.sleep(0.01)
        await answer(scope["path"], send)

    return DrainingMiddleware(application)


async def refuse(path: str, send: Send) -> None:
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(REFUSAL)).encode())]
    await send({"type": "http.response.start", "status": int(path.removeprefix("/")), "headers": headers})
    await send({"type": "http.response.body", "body": REFUSAL})


async def break_down(path: str, send: Send) -> None:
    del path, send
    raise RuntimeError("a defect")


async def break_down_midway(path: str, send: Send) -> None:
    del path
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("a defect")


async def forget_to_answer(path: str, send: Send) -> None:
    del path, send


async def with_httpx(url: str, body: bytes) -> int:
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
        return (await client.post(url, content=body)).status_code


async def with_aiohttp(url: str, body: bytes) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, data=io.BytesIO(body)) as answer:
        await answer.read()
        return answer.status


async def with_urllib3(url: str, body: bytes) -> int:
    def post() -> int:
        with urllib3.PoolManager() as pool:
            return pool.request("POST", url, body=body, retries=False, timeout=PATIENCE_SECONDS).status

    return await to_thread.run_sync(post)


def with_curl(*options: str) -> Client:
    arguments = [
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-m",
        str(PATIENCE_SECONDS),
        "-w",
        "%{http_code}",
        "--data-binary",
        "@-",
        *options,
    ]

    async def post(url: str, body: bytes) -> int:
        def run() -> bytes:
            return subprocess.run([*arguments, url], input=body, capture_output=True, check=False).stdout

        return int(await to_thread.run_sync(run))

    return post


CLIENTS: dict[str, Client] = {
    "httpx": with_httpx,
    "aiohttp": with_aiohttp,
    "urllib3": with_urllib3,
    "curl with Expect": with_curl("-H", "Expect: 100-continue"),
    "curl without Expect": with_curl("-H", "Expect:"),
}


@pytest.mark.parametrize("size_bytes", [100, 4 * MEBIBYTE, 30 * MEBIBYTE, 90 * MEBIBYTE])
@pytest.mark.parametrize("status", [401, 413, 500])
@pytest.mark.parametrize("client", CLIENTS)
async def test_an_early_answer_reaches_the_client(client: str, status: int, size_bytes: int) -> None:
    """Every client receives a status that is sent before its body has been read."""
    async with serving(early(refuse)) as address:
        assert await CLIENTS[client](f"{address}/{status}", bytes(size_bytes)) == status


async def test_a_small_refused_body_keeps_the_connection() -> None:
    """A refused request with a small body leaves its connection open for the next one."""
    async with serving(early(refuse)) as address, httpx.AsyncClient() as client:
        answers = [await client.post(f"{address}/503", content=b"x" * 2000) for _ in range(2)]
        ports = {answer.extensions["network_stream"].get_extra_info("client_addr") for answer in answers}
    assert [answer.status_code for answer in answers] == [503, 503]
    assert len(ports) == 1


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"0")]])
async def test_requests_without_a_body_pass_untouched(headers: list[tuple[bytes, bytes]]) -> None:
    """A request without a body reaches the application with the server's own channels, at no cost."""
    seen: list[object] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([scope, receive, send])

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        raise NotImplementedError

    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/", "headers": headers}
    await DrainingMiddleware(application)(scope, receive, send)
    assert seen == [scope, receive, send]


async def test_a_body_that_was_read_keeps_the_connection() -> None:
    """A response after the body does not end the connection, which serves the next request."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        received, more = 0, True
        while more:
            message = await receive()
            received, more = received + len(message["body"]), message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(received).encode()})

    async with serving(DrainingMiddleware(application)) as address, httpx.AsyncClient() as client:
        answers = [await client.post(address, content=bytes(4 * MEBIBYTE)) for _ in range(2)]
        ports = {answer.extensions["network_stream"].get_extra_info("client_addr") for answer in answers}
    assert [answer.text for answer in answers] == [str(4 * MEBIBYTE)] * 2
    assert len(ports) == 1


@pytest.mark.parametrize("defect", [break_down, forget_to_answer])
async def test_a_defect_is_answered(defect: Answer) -> None:
    """An application that raises, or returns without a response, gives the client a 500."""
    async with serving(early(defect)) as address:
        assert await with_httpx(f"{address}/", bytes(4 * MEBIBYTE)) == 500


async def begin_upload(address: str, size_bytes: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the head and the first quarter of a body."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /401 HTTP/1.1\r\nhost: {host}\r\ncontent-length: {size_bytes}\r\n\r\n".encode())
    writer.write(bytes(size_bytes // 4))
    return reader, writer


async def vanish(address: str, size_bytes: int) -> None:
    """Begin an upload and disconnect without reading."""
    _, writer = await begin_upload(address, size_bytes)
    with anyio.move_on_after(0.05):
        await writer.drain()
    writer.transport.abort()


@pytest.mark.parametrize("answer", [refuse, break_down, break_down_midway, forget_to_answer])
async def test_clients_that_vanish_leave_nothing(answer: Answer) -> None:
    """Clients that disconnect during the response leave no task or descriptor behind."""
    async with serving(early(answer)) as address:
        tasks, descriptors = len(asyncio.all_tasks()), open_descriptors()
        for _ in range(10):
            await vanish(address, 8 * MEBIBYTE)
        await until(lambda: len(asyncio.all_tasks()) <= tasks and open_descriptors() <= descriptors)


async def test_a_client_that_stalls_is_let_go() -> None:
    """A client that stops sending gets its response, and is not awaited for longer than the linger time."""
    async with serving(early(refuse)) as address:
        tasks = len(asyncio.all_tasks())
        reader, writer = await begin_upload(address, 4 * MEBIBYTE)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.startswith(b"HTTP/1.1 401")
        await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def refused_uploads(address: str, body: bytes, count: int) -> None:
    """Start `count` uploads that are refused; half of the clients disconnect without reading."""
    async with anyio.create_task_group() as clients:
        for _ in range(count // 2):
            clients.start_soon(vanish, address, 4 * len(body))
            clients.start_soon(with_aiohttp, f"{address}/401", body)


async def test_three_hundred_refused_uploads_leave_nothing() -> None:
    """After three hundred refused uploads of 4 MB, the server has no more tasks, descriptors and memory than before."""
    body = bytes(4 * MEBIBYTE)
    async with serving(early(refuse)) as address:
        tasks, descriptors = len(asyncio.all_tasks()), open_descriptors()
        await refused_uploads(address, body, count=20)
        memory = resident_bytes("self")
        for _ in range(14):
            await refused_uploads(address, body, count=20)
        await until(lambda: len(asyncio.all_tasks()) <= tasks and open_descriptors() <= descriptors)
        assert resident_bytes("self") - memory < 32 * MEBIBYTE
