"""Provides a converter for one file, and reports to operators the time spent waiting and how runs end.

A run that ends by a signal does not prove that its file is damaged: the host may have ended it. The same holds for a
run that the sandbox lost or could not start. The first such run of a file raises `RunCrashed`, and the caller starts
over; only the second one counts.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

import structlog

from sandbox.command import Command
from sandbox.pool import ConverterLease, Pool, QueueTicket
from sandbox.verdict import Ending, Verdict
from service.engine.workspace import Run
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span

_log = structlog.get_logger()


class RunCrashed(Exception):
    """A run of this file crashed or was lost for the first time: start over and discard what it wrote."""


_MAY_BE_THE_HOSTS = frozenset({Ending.SIGNAL, Ending.INTERNAL})

metrics.start_at_zero(metrics.CONVERTER_RUNS, Ending)


async def _nothing() -> None:
    pass


def _run_span(_command: Command) -> AbstractContextManager[object]:
    return span("run")


class converter:  # noqa: N801 - used like a function
    """Use a converter; gives a `Run`, whose first command waits for its turn.

    `on_started` is awaited then, and `traced` called for the span of each run. The ticket is released at the end in any
    case. A command that is still running when the lease ends, and every later one, gets the verdict for a run that took
    too long. The first run that crashes or is lost raises `RunCrashed`.
    """

    def __init__(
        self,
        pool: Pool,
        ticket: QueueTicket,
        on_started: Callable[[], Awaitable[None]] = _nothing,
        traced: Callable[[Command], AbstractContextManager[object]] = _run_span,
    ) -> None:
        self._pool = pool
        self._ticket = ticket
        self._on_started = on_started
        self._traced = traced
        self._lease: ConverterLease | None = None
        self._has_crashed = False

    def __enter__(self) -> Run:
        return self._run

    def __exit__(self, *_: object) -> None:
        self._pool.release(self._ticket)

    async def _run(self, command: Command) -> Verdict:
        if self._lease is None:
            with stage("wait"):
                self._lease = await self._pool.acquire(self._ticket)
            await self._on_started()
        with self._traced(command):
            verdict = await self._lease.run(command)
        metrics.labeled(metrics.CONVERTER_RUNS, verdict.ending).inc()
        if verdict.ending in _MAY_BE_THE_HOSTS and not self._has_crashed:
            self._has_crashed = True
            metrics.CONVERTER_RETRIES.inc()
            _log.warning(
                events.CONVERTER_CRASHED, signal=verdict.signal, launcher=verdict.launcher, detail=verdict.detail
            )
            raise RunCrashed
        return verdict
