"""The job's part of a conversion: runs the steps bound to the job, which ends Completed or Failed exactly once.

In every case, including cancellation, the job is settled or released under a shield, its directories are removed, and
its queue ticket is released.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.pool import QueueTicket
from sandbox.verdict import Ending, Verdict
from service.engine.workspace import Run
from service.errors import NoRoom, StorageUnavailable
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.jobs.spec import JobSpec
from service.telemetry import events, metrics
from service.usecases.converter import RunCrashed, converter
from service.usecases.ending import JobOutcome, JobParts, details_of, release, retry_while_unavailable
from service.usecases.pipeline import ANYWHERE, CONVERT, DELIVER, Failure, Progress
from service.usecases.spent_time import SpentTime
from service.usecases.steps.converting import Assigned, Bench, start
from service.usecases.steps.delivering import Ended, ForgottenError, Outbound, Packed

_log = structlog.get_logger()

metrics.start_at_zero(metrics.JOBS_ENDED, ("completed", *get_args(JobOutcome)))

_OF_THIS_HOST = frozenset[JobOutcome]({"stopped", "storage", "forgotten"})
"""Failures that another host need not have: it may also have the job by now, if this claim of it was undone."""
MEMORY_BYTES = 64 << 20
"""How much memory the files of a job may take; if they need more, the job starts over on disk."""


class _OutgrownMemoryError(Exception):
    """The files of a job need more memory than they may take."""


class _Stopwatch:
    """How long a job has been converting: since its first command, or since its start if there is none yet."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._since = time.monotonic()

    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self._since) * 1000)


async def run_job(
    parts: JobParts, spec: JobSpec, directory: Path, ticket: QueueTicket, keep: Callable[[], None]
) -> Job:
    """Run an admitted job to its end and return the ended job; with its first argument, this is a `RunJob`.

    Raises:
        RetryableFault: the job's end could not be recorded, so recovery will end it.
        StorageUnavailable, NoRoom: the output could not be stored here, and the job is to be given back.
        ForgottenError: the claim of this attempt was undone, and the job is to be given back.
    """
    keep()
    progress = Progress(Assigned(spec=spec, job=spec.job, directory=directory), ANYWHERE)
    directories, stopwatch = [directory], _Stopwatch()
    try:
        await _convert(parts, progress, directories, ticket, stopwatch)
        ended: Ended = await progress.run(DELIVER, Outbound(parts, stopwatch.elapsed_ms))
    except BaseException as error:
        failure = progress.failure(error)
        is_of_this_host = failure is not None and (failure.outcome in _OF_THIS_HOST or isinstance(error, NoRoom))
        if failure is None or failure.outcome == "unknown" or (is_of_this_host and parts.gives_back):
            raise
        _report(spec, failure, error)
        with anyio.CancelScope(shield=True):
            failed = await _fail(parts, progress, failure, error, stopwatch.elapsed_ms())
        if not isinstance(error, Exception):
            raise
        return failed
    else:
        return ended.job
    finally:
        parts.jobs.end(spec.job.id)
        progress.on_step = progress.share = None  # they hold the job: it would be left to the garbage collector
        is_little = isinstance(progress.record, Packed) and progress.record.output.is_little
        for made in directories:
            await parts.work_area.remove(made, inline=is_little)


async def _convert(
    parts: JobParts, progress: Progress[Assigned], directories: list[Path], ticket: QueueTicket, stopwatch: _Stopwatch
) -> None:
    """Run the steps that need a converter, holding one from the first command to the last.

    If memory does not suffice or a run crashes, start over in a new directory on disk.
    """
    progress.record = begun = start(progress.record.spec, progress.record.directory)
    with SpentTime() as spent:
        progress.on_step = spent.enter_part

        async def on_started() -> None:
            if begun.spec.is_doubtful and not await retry_while_unavailable(lambda: parts.jobs.record_begin(begun.job)):
                raise ForgottenError
            stopwatch.restart()
            spent.begin(begun.source.format.token, begun.target.token)
            parts.jobs.begin(begun.job, progress.situation)

        with converter(parts.pool, ticket, on_started, spent.run) as run:
            while True:
                in_memory = parts.work_area.is_in_memory(progress.record.directory)
                try:
                    limited = _in_memory(run) if in_memory else run
                    async with parts.engine.session(limited, begun.target, spent.ask) as session:
                        bench = Bench(parts.engine, session)
                        progress.share = bench.share
                        await progress.run(CONVERT, bench)
                except (_OutgrownMemoryError, RunCrashed):
                    directories.append(parts.work_area.new_directory())
                    known = progress.record.job
                    progress.record = msgspec.structs.replace(begun, job=known, directory=directories[-1])
                else:
                    return


def _in_memory(run: Run) -> Run:
    """Limit the memory that commands may take for their files; jobs that need more run on disk."""

    async def run_in_memory(command: Command) -> Verdict:
        most = min(command.limits.directory_bytes, MEMORY_BYTES)
        limits = msgspec.structs.replace(command.limits, file_bytes=most, directory_bytes=most)
        verdict = await run(msgspec.structs.replace(command, limits=limits))
        if verdict.ending in {Ending.OUTPUT_SIZE, Ending.DISK_FULL}:
            raise _OutgrownMemoryError
        return verdict

    return run_in_memory


def _report(spec: JobSpec, failure: Failure, error: BaseException) -> None:
    """Log failures that only operators can fix."""
    if isinstance(error, StorageUnavailable):
        _log.warning(events.STORAGE_FAILED, job_id=spec.job.id, fault=error.fault, detail=error.detail)
    if failure.outcome == "defect":
        _log.exception(events.JOB_DEFECT, job_id=spec.job.id, exc_info=error)


async def _fail(
    parts: JobParts, progress: Progress[Assigned], failure: Failure, error: BaseException, elapsed_ms: int
) -> Job:
    """Release the job with what is known about it; return the ended job, which another attempt may have ended."""
    message = failure.message_for(error)
    failed = msgspec.structs.replace(
        progress.record.job,
        status=Status.FAILED,
        error_message=message,
        details=details_of(error),
        processing_time_ms=elapsed_ms,
    )
    ended, is_ours = await release(
        parts,
        progress.record.spec,
        failed,
        interrupted=failure.says_nothing_of_the_file,
        may_have_stored=progress.step is not None and progress.step.may_have_stored,
    )
    if is_ours:
        formats = {"input": failed.input_format, "output": failed.output_format}
        metrics.JOBS_ENDED.labels(failure.outcome).inc()
        _log.info(events.JOB_FAILED, job_id=failed.id, **formats, reason=message)
    return ended
