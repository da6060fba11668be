"""A converter for the work of one file, and what an operator learns of it: how long it was waited for, how runs end."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import msgspec

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

    `turn_has_come` is called then. The place is left at the end, whether there was a command or not. A command that is
    still running when the place's time is over ends as one that took too long, and so do all after it.
    """
    slot: Slot | None = None
    until = math.inf

    async def run(command: Command) -> Verdict:
        nonlocal slot, until
        if slot is None:
            with stage("wait"), metrics.JOBS_WAITING.track_inprogress():
                slot = await place.turn()
            until = anyio.current_time() + place.most_seconds
            metrics.JOBS_RUNNING.inc()
            turn_has_come()
        with span("run"):
            verdict = await slot.run(_within(command, until - anyio.current_time()))
        metrics.CONVERTER_RUNS.labels(verdict.ending).inc()
        return verdict

    try:
        yield run
    finally:
        if slot is not None:
            metrics.JOBS_RUNNING.dec()
        place.give_up()


def _within(command: Command, seconds: float) -> Command:
    """The command with no more time than is left."""
    if seconds >= command.limits.wall_seconds:
        return command
    limits = msgspec.structs.replace(command.limits, wall_seconds=max(0.0, seconds))
    return msgspec.structs.replace(command, limits=limits)
