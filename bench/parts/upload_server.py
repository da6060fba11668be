"""A server that only receives uploads.

POST /intake receives a form as the service does; POST /discard reads the body and discards it.

`upload_server [plain]`: with the service's connections, or with those of plain Hypercorn.
"""

import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TypedDict, cast

import anyio
from hypercorn.asyncio import serve as serve_with_hypercorn
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from service.http.middleware.draining import DrainingMiddleware
from service.intake.form import FormSpec, IntakeLimits
from service.intake.spool import receive
from service.intake.workspace import WorkArea, open_work_area
from service.server.serving import serve
from service.server.site import ServerLimits

PLAIN = "plain"
FORM = FormSpec(file_field="file")
HASHED_FORM = FormSpec(file_field="file", digest=True)


class RequestState(TypedDict):
    """The state of a request."""

    area: WorkArea


async def take(request: Request) -> JSONResponse:
    """Receive a form and delete it."""
    length = request.headers.get("content-length")
    async with request.state.area.workspace() as workspace, aclosing(request.stream()) as body:
        received = await receive(
            body,
            content_type=request.headers.get("content-type"),
            content_length=int(length) if length else None,
            form=HASHED_FORM if "digest" in request.query_params else FORM,
            workspace=workspace,
            limits=IntakeLimits(),
        )
        return JSONResponse({"received": received.files[0].size_bytes})


async def discard(request: Request) -> JSONResponse:
    """Read the body and discard it."""
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
    return JSONResponse({"received": received})


@asynccontextmanager
async def lifespan(_application: Starlette) -> AsyncIterator[RequestState]:
    """Open a work area in the temporary directory."""
    with tempfile.TemporaryDirectory() as root:
        async with open_work_area(Path(root)) as area:
            yield {"area": area}


async def main() -> None:
    """Serve on a free port, whose number is printed, until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    routes = [Route("/intake", take, methods=["POST"]), Route("/discard", discard, methods=["POST"])]
    application = DrainingMiddleware(Starlette(routes=routes, lifespan=lifespan))
    if PLAIN in sys.argv[1:]:
        await _serve_plainly(application, listener)
        return
    ended = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, application, listener, ServerLimits(), ended)
        await input_ended()
        ended.set()


async def _serve_plainly(application: ASGIApp, listener: socket.socket) -> None:
    config = Config()
    config.errorlog = None
    config.bind = [f"fd://{listener.detach()}"]
    await serve_with_hypercorn(cast("ASGIFramework", application), config, shutdown_trigger=input_ended)


async def input_ended() -> None:
    """Return when the parent process closes standard input."""
    await anyio.to_thread.run_sync(lambda: os.read(0, 1), abandon_on_cancel=True)


if __name__ == "__main__":
    anyio.run(main)
