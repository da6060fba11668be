"""A server that does nothing but receive uploads, and measures itself while it does.

POST /intake receives a form as the service does; POST /discard reads the body and throws it away: the floor.
POST /measure begins a measurement, GET /measure ends it: lag of the event loop, CPU time and memory since.

`upload_server [plain] [DIRECTORY]`: connections as the service has them, or as Hypercorn makes them; uploads go below
DIRECTORY.
"""

import asyncio
import os
import resource
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
from service.server.serving import ServerLimits, serve

TICK_SECONDS = 0.002
PLAIN = "plain"
FORM = FormSpec(file_field="file")
HASHED_FORM = FormSpec(file_field="file", digest=True)


class Probe:
    """How late the event loop is, asked every two milliseconds."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self._cpu_seconds = 0.0

    async def run(self) -> None:
        """Ask for ever."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.lags.append(loop.time() - due)

    def begin(self) -> dict[str, float]:
        """Begin a measurement; return what the memory is now."""
        self.lags.clear()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._cpu_seconds = cpu_seconds()
        return {"rssMb": memory_mb("VmRSS")}

    def figures(self) -> dict[str, float]:
        """Return what was measured since."""
        lags = sorted(self.lags)
        return {
            "lagP50Ms": 1000 * lags[len(lags) // 2],
            "lagP99Ms": 1000 * lags[len(lags) * 99 // 100],
            "lagMaxMs": 1000 * lags[-1],
            "cpuSeconds": cpu_seconds() - self._cpu_seconds,
            "peakRssMb": memory_mb("VmHWM"),
        }


class State(TypedDict):
    """What a request finds in its state."""

    area: WorkArea
    probe: Probe


def cpu_seconds() -> float:
    """CPU time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def memory_mb(field: str) -> float:
    """A field of /proc/self/status in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


async def take(request: Request) -> JSONResponse:
    """Receive a form and forget it."""
    length = request.headers.get("content-length")
    form = HASHED_FORM if "digest" in request.query_params else FORM
    async with request.state.area.workspace() as workspace, aclosing(request.stream()) as body:
        received = await receive(
            body,
            content_type=request.headers.get("content-type"),
            content_length=int(length) if length else None,
            form=form,
            workspace=workspace,
            limits=IntakeLimits(),
        )
        return JSONResponse({"received": received.files[0].size_bytes})


async def discard(request: Request) -> JSONResponse:
    """Read the body and throw it away."""
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
    return JSONResponse({"received": received})


async def measure(request: Request) -> JSONResponse:
    """Begin a measurement or end it."""
    probe: Probe = request.state.probe
    return JSONResponse(probe.figures() if request.method == "GET" else probe.begin())


@asynccontextmanager
async def lifespan(_application: Starlette) -> AsyncIterator[State]:
    """Open a work area, in the directory that the command names, and begin to ask the loop."""
    probe = Probe()
    directory = next((argument for argument in sys.argv[1:] if argument != PLAIN), None)
    with tempfile.TemporaryDirectory(dir=directory) as root:
        async with open_work_area(Path(root)) as area, anyio.create_task_group() as tasks:
            tasks.start_soon(probe.run)
            yield {"area": area, "probe": probe}
            tasks.cancel_scope.cancel()


async def main() -> None:
    """Serve on a free port, whose number is printed, until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    routes = [
        Route("/intake", take, methods=["POST"]),
        Route("/discard", discard, methods=["POST"]),
        Route("/measure", measure, methods=["GET", "POST"]),
    ]
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
    """Return when the program that started this one has gone, or says so."""
    await anyio.to_thread.run_sync(lambda: os.read(0, 1), abandon_on_cancel=True)


if __name__ == "__main__":
    anyio.run(main)
