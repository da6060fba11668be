"""A converter for the work of one file, and what an operator learns of it: how long it was waited for, how runs end."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from sandbox.command import Command
from sandbox.pool import Slot
from sandbox.verdict import Verdict
from service.engine.workplace import Run
from service.jobs.places import Place
from service.telemetry import metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span


@asynccontextmanager
async def converter(place: Place) -> AsyncIterator[Run]:
    """Wait for this place's turn and hold a converter; yields what runs a command in it."""
    async with AsyncExitStack() as stack:
        with stage("wait"), metrics.JOBS_WAITING.track_inprogress():
            slot = await stack.enter_async_context(place)
        with metrics.JOBS_RUNNING.track_inprogress():
            yield partial(_run, slot)


async def _run(slot: Slot, command: Command) -> Verdict:
    with span("run"):
        verdict = await slot.run(command)
    metrics.CONVERTER_RUNS.labels(verdict.ending).inc()
    return verdict
