"""The service's server in this process, on a free loopback port, for tests of intake."""

import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from service.errors import BatchTooLarge, RequestFault, UploadTimeout, UploadTooLarge
from service.http.middleware.draining import DrainingMiddleware
from service.intake.form import Form, FormSpec, IntakeLimits
from service.intake.spool import receive
from service.intake.workspace import WorkArea
from service.server.serving import serve
from service.server.site import ServerLimits


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """Serve `app` with the service's server, and yield its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.setblocking(False)
    port = listener.getsockname()[1]
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, app, listener, ServerLimits(), stop)
        try:
            await _until_it_answers(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            stop.set()


class Receiver:
    """An application that receives forms as the service does, keeps them, and responds with a status."""

    def __init__(self, area: WorkArea, form: FormSpec, limits: IntakeLimits) -> None:
        self._area = area
        self._form = form
        self._limits = limits
        self.forms: list[Form] = []
        self.failures: list[Exception] = []
        self.app = DrainingMiddleware(Starlette(routes=[Route("/", self._take, methods=["POST"])]))

    async def _take(self, request: Request) -> Response:
        length = request.headers.get("content-length")
        try:
            async with self._area.workspace() as workspace, aclosing(request.stream()) as body:
                form = await receive(
                    body,
                    content_type=request.headers.get("content-type"),
                    content_length=int(length) if length else None,
                    form=self._form,
                    workspace=workspace,
                    limits=self._limits,
                )
                self.forms.append(form)
        except (RequestFault, ClientDisconnect) as failure:
            self.failures.append(failure)
            return PlainTextResponse(str(failure), STATUSES.get(type(failure), 400))
        return PlainTextResponse("received")


STATUSES: dict[type[Exception], int] = {UploadTooLarge: 413, BatchTooLarge: 413, UploadTimeout: 408}


async def _until_it_answers(port: int) -> None:
    """Send a request that the server itself refuses, until it runs."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"nothing\r\n\r\n")
        with suppress(anyio.EndOfStream):
            while True:
                await stream.receive()


def open_descriptors() -> frozenset[tuple[str, str]]:
    """The open file descriptors of this process, each by its number and what it refers to.

    Compare them as sets, for what is new: what earlier tests left open may be closed at any time.
    """
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile, as the listing's own is
            found.add((entry.name, str(entry.readlink())))
    return frozenset(found)
