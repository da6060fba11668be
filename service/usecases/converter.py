"""A converter for the work of one file, and what an operator learns of it: how long it was waited for, how runs end."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sandbox.command import Command
from sandbox.pool import Slot
from sandbox.verdict import Verdict
from service.engine.workplace import Run
from service.jobs.places import Place
from service.telemetry import metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span


def _nothing() -> None:
    pass


@asynccontextmanager
async def converter(place: Place, turn_has_come: Callable[[], None] = _nothing) -> AsyncIterator[Run]:
    """Use a converter: yields what runs a command in it. The first command waits for this place's turn.

    `turn_has_come` is called then. The place is left at the end, whether there was a command or not.
    """
    slot: Slot | None = None

    async def run(command: Command) -> Verdict:
        nonlocal slot
        if slot is None:
            with stage("wait"), metrics.JOBS_WAITING.track_inprogress():
                slot = await place.turn()
            metrics.JOBS_RUNNING.inc()
            turn_has_come()
        with span("run"):
            verdict = await slot.run(command)
        metrics.CONVERTER_RUNS.labels(verdict.ending).inc()
        return verdict

    try:
        yield run
    finally:
        if slot is not None:
            metrics.JOBS_RUNNING.dec()
        place.give_up()
