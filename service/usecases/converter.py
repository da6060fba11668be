"""A converter for the work of one file, and what an operator learns of it: how long it was waited for, how runs end.

A run that ends by a signal is no proof that its file is damaged: the host may have ended it. So the first one of a file
is reported as `RunCrashed`, and the work is begun anew; only the second one counts.
"""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.pool import Slot
from sandbox.verdict import Ending, Verdict
from service.engine.workplace import Run
from service.jobs.places import Place
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span

_log = structlog.get_logger()


class RunCrashed(Exception):
    """A run of this file has ended by a signal for the first time: begin the work anew, without what it has written."""


def _nothing() -> None:
    pass


@asynccontextmanager
async def converter(place: Place, turn_has_come: Callable[[], None] = _nothing) -> AsyncIterator[Run]:
    """Use a converter: yields what runs a command in it. The first command waits for this place's turn.

    `turn_has_come` is called then. The place is left at the end, whether there was a command or not. A command that is
    still running when the place's time is over ends as one that took too long, and so do all after it. The first one
    that ends by a signal raises `RunCrashed`.
    """
    slot: Slot | None = None
    until = math.inf
    has_crashed = False

    async def run(command: Command) -> Verdict:
        nonlocal slot, until, has_crashed
        if slot is None:
            with stage("wait"), metrics.JOBS_WAITING.track_inprogress():
                slot = await place.turn()
            until = anyio.current_time() + place.most_seconds
            metrics.JOBS_RUNNING.inc()
            turn_has_come()
        with span("run"):
            verdict = await slot.run(_within(command, until - anyio.current_time()))
        metrics.CONVERTER_RUNS.labels(verdict.ending).inc()
        if verdict.ending is Ending.SIGNAL and not has_crashed:
            has_crashed = True
            metrics.CONVERTER_RETRIES.inc()
            _log.warning(events.CONVERTER_CRASHED, signal=verdict.signal, launcher=verdict.launcher)
            raise RunCrashed
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
