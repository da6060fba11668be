"""A converter for the work of one file, and what an operator learns of it: how long it was waited for, how runs end.

A run that ends by a signal is no proof that its file is damaged: the host may have ended it. Neither is one that the
sandbox lost, or could not start. The first such run of a file raises `RunCrashed`, and the work begins anew; only the
second one counts.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from sandbox.command import Command
from sandbox.pool import Pool, QueueTicket, WorkerLease
from sandbox.verdict import Ending, Verdict
from service.engine.workspace import Run
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span

_log = structlog.get_logger()


class RunCrashed(Exception):
    """A run of this file has crashed or got lost for the first time: begin anew, without what it has written."""


_MAY_BE_THE_HOSTS = frozenset({Ending.SIGNAL, Ending.INTERNAL})


def _nothing() -> None:
    pass


@asynccontextmanager
async def converter(pool: Pool, ticket: QueueTicket, on_started: Callable[[], None] = _nothing) -> AsyncIterator[Run]:
    """Use a converter: yields what runs a command in it. The first command waits until one is free for `ticket`.

    `on_started` is called then. The ticket is released at the end, with or without a command. A command that is still
    running when the lease is over ends as one that took too long, and so do all after it. The first one that
    crashes or gets lost raises `RunCrashed`.
    """
    worker: WorkerLease | None = None
    has_crashed = False

    async def run(command: Command) -> Verdict:
        nonlocal worker, has_crashed
        if worker is None:
            with stage("wait"), metrics.JOBS_WAITING.track_inprogress():
                worker = await pool.acquire(ticket)
            metrics.JOBS_RUNNING.inc()
            on_started()
        with span("run"):
            verdict = await worker.run(command)
        metrics.CONVERTER_RUNS.labels(verdict.ending).inc()
        if verdict.ending in _MAY_BE_THE_HOSTS and not has_crashed:
            has_crashed = True
            metrics.CONVERTER_RETRIES.inc()
            _log.warning(
                events.CONVERTER_CRASHED, signal=verdict.signal, launcher=verdict.launcher, detail=verdict.detail
            )
            raise RunCrashed
        return verdict

    try:
        yield run
    finally:
        if worker is not None:
            metrics.JOBS_RUNNING.dec()
        pool.release(ticket)
