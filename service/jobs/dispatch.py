"""Dispatches accepted jobs: submit a job, get its outcome.

`JobRunner` holds the jobs of this process while a function runs each of them: `usecases.run_job` in the converters of
this process, `usecases.hand_over` in those of workers on other hosts.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import structlog
from anyio import TaskHandle
from anyio.abc import TaskGroup

from sandbox.pool import Pool, QueueFull, QueueTicket, TenantLimit
from service.errors import (
    DatabaseUnavailable,
    NoRoom,
    Overloaded,
    QueueUnavailable,
    StorageUnavailable,
    TooManyRequests,
)
from service.ids import AccountId, JobId
from service.jobs.ends import EndWatch
from service.jobs.promises import FULL
from service.jobs.records import Job
from service.jobs.spec import JobSpec
from service.telemetry import events
from service.telemetry.spans import about

RETRY_AFTER_SECONDS = 2
RESTARTING = "The service is restarting."
AWAY = "The service cannot reach its database at the moment."
UNSTORED = "The store of results is unavailable at the moment."
UNKNOWN = "The service does not know how the conversion ended."
AGAIN = "Send the request again."
CANCEL_SECONDS = 5.0
"""How long a caller that cancels a job waits for its run to end; the run ends in any case."""
_Answer = TypeVar("_Answer")
_log = structlog.get_logger()


class RunJob(Protocol):
    """Runs a job to its end and returns the ended job; removes its directory and releases its queue ticket.

    Calls `keep` as soon as the client may be told of the job. Raises `QueueUnavailable` if the job has failed free, and
    its client may send the file again.
    """

    async def __call__(self, spec: JobSpec, directory: Path, ticket: QueueTicket, keep: Callable[[], None]) -> Job:
        """Run it."""


class Submission:
    """A dispatched job; any number of callers may wait for its outcome."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.since = time.monotonic()
        self._kept = asyncio.Event()
        self._ended = asyncio.Event()
        self._lost: str | None = None
        self._refusal: Overloaded | None = None
        self._was_kept = False
        self.unstored: StorageUnavailable | NoRoom | None = None
        """Why this host could not store the output of a lost job, or had no room for it, if that is why it was lost."""

    def keep(self) -> None:
        """Note that the client may be told of the job, which will end whatever happens to this process."""
        self._was_kept = True
        self._kept.set()

    async def kept(self) -> None:
        """Wait until the client may be told of the job.

        Raises:
            Overloaded: it may never be; the job is not going to be converted.
        """
        await self._kept.wait()
        if self._refusal is not None:
            raise self._refusal
        if not self._was_kept:
            raise Overloaded(f"{self._lost} {AGAIN}", RETRY_AFTER_SECONDS)

    def finish(self, job: Job) -> None:
        """Pass the ended job to all waiting callers."""
        self.job = job
        self.keep()
        self._ended.set()

    def mark_lost(self, why: str = RESTARTING) -> None:
        """Tell all waiting callers that this process will not learn the outcome, and why."""
        if not self._ended.is_set():
            self._lost = why
            self._kept.set()
            self._ended.set()

    def refuse(self, refusal: Overloaded) -> None:
        """Tell all waiting callers that the job has failed free, so that they may send the file again."""
        self._refusal = refusal
        self._kept.set()
        self._ended.set()

    async def outcome(self) -> Job:
        """Wait for the ended job.

        Raises:
            Overloaded: it has failed, and its file may be sent again; or this process will not learn it, and the record
                of the job will contain its end.
        """
        await self._ended.wait()
        if self._refusal is not None:
            raise self._refusal
        if self._lost:
            message = f"{self._lost} Query the job {self.job.id} for the result of the conversion."
            raise Overloaded(message, RETRY_AFTER_SECONDS)
        return self.job


def ended(job: Job) -> Submission:
    """Return the submission of a job that has already ended."""
    submission = Submission(job)
    submission.finish(job)
    return submission


class JobRunner:
    """Runs the jobs of this process: bounded, fair between accounts, drained at shutdown.

    `retry_after` returns the seconds after which a refused client may retry; `ends` hears of the end of each job.
    `require_reachable` raises `Overloaded` while nothing can run jobs.
    """

    def __init__(
        self,
        pool: Pool,
        run_job: RunJob,
        tasks: TaskGroup,
        retry_after: Callable[[], int],
        ends: EndWatch,
        *,
        require_reachable: Callable[[], None] = lambda: None,
    ) -> None:
        self.require_reachable = require_reachable
        self._pool = pool
        self._run_job = run_job
        self._tasks = tasks
        self._retry_after = retry_after
        self._ends = ends
        self._submissions: dict[JobId, Submission] = {}
        self._handles: dict[JobId, TaskHandle[None]] = {}
        self._admitting: set[JobId] = set()
        self._end_by = math.inf
        self._idle: anyio.Event | None = None
        self.is_shutting_down = False
        """Whether this process is about to stop: it still accepts jobs, but asks for them to be sent elsewhere."""

    @property
    def active(self) -> frozenset[JobId]:
        """The jobs that this process holds or is admitting."""
        return frozenset(self._submissions) | self._admitting

    def held_for(self, seconds: float) -> frozenset[JobId]:
        """The jobs that this process has held for at least so long."""
        latest = time.monotonic() - seconds
        return frozenset(job_id for job_id, submission in self._submissions.items() if submission.since <= latest)

    @property
    def draining(self) -> bool:
        """Whether new jobs are refused."""
        return self._idle is not None

    def enqueue(self, account_id: AccountId, files: int = 1) -> list[QueueTicket]:
        """Take places for all files of one request or none; release each ticket or submit a job with it.

        Raises:
            TooManyRequests: the account has reached its limit of files in progress.
            Overloaded: the queue has no place for them, or the service is shutting down.
        """
        return self._ask(self._pool.queue.enqueue, str(account_id), files)

    def readmit(self, account_id: AccountId, *, is_large: bool) -> QueueTicket:
        """Take a place for a claimed job, however many are taken: a worker bounds the number that it claims.

        Jobs with large inputs take turns with the others of their account as if they were those of another one.

        Raises:
            Overloaded: the service is shutting down.
        """
        return self._ask(self._pool.queue.readmit, f"{account_id}/large" if is_large else str(account_id))

    def refuse_if_full(self, account_id: AccountId) -> None:
        """Refuse a request before its body is read, if it would be refused afterwards; raises what `enqueue` raises."""
        self._ask(self._pool.queue.require, str(account_id))

    @contextmanager
    def admitting(self, job_id: JobId) -> Iterator[None]:
        """Count a job as held while it is being admitted; a job that is not submitted by then will not run."""
        self._admitting.add(job_id)
        try:
            yield
        finally:
            self._admitting.discard(job_id)

    def submit(self, spec: JobSpec, directory: Path, ticket: QueueTicket) -> Submission:
        """Run an accepted job, whose files are in `directory`, whether or not a client is waiting."""
        submission = Submission(spec.job)
        self._submissions[spec.job.id] = submission
        self._handles[spec.job.id] = self._tasks.start_soon(self._run, spec, directory, ticket, submission)
        return submission

    async def withdraw(self, job_id: JobId) -> None:
        """End the run of a job without an outcome; no effect if this process does not run it."""
        if handle := self._handles.get(job_id):
            await _end(handle)

    async def cancel(self, ended_job: Job) -> None:
        """End the run of a job that has ended otherwise, pass it to all waiting callers, and free its place.

        No effect if this process does not run it.
        """
        submission = self._submissions.get(ended_job.id)
        if submission is None:
            return
        handle = self._handles[ended_job.id]
        submission.finish(ended_job)
        await _end(handle)

    def begin_shutdown(self, seconds: float) -> None:
        """Announce that this process will stop within `seconds`; stop waiting for other jobs."""
        self.is_shutting_down = True
        self._ends.stop()
        self._end_by = anyio.current_time() + seconds

    async def drain(self, seconds: float) -> None:
        """Refuse new jobs, wait `seconds` or the announced time for open ones, and end the rest."""
        self.is_shutting_down = True
        self._ends.stop()
        self._idle = self._idle or anyio.Event()
        if self._submissions:
            with anyio.CancelScope(deadline=min(self._end_by, anyio.current_time() + seconds)):
                await self._idle.wait()
        for handle in self._handles.values():
            handle.cancel()

    def _ask(self, question: Callable[..., _Answer], tenant: str, *counts: int) -> _Answer:
        """Ask the queue, turning its refusals into errors for the client; refuse at once while draining."""
        if self.draining:
            raise Overloaded(f"{RESTARTING} {AGAIN}", RETRY_AFTER_SECONDS)
        try:
            return question(tenant, *counts)
        except TenantLimit as limit:
            message = (
                f"This account has {limit.taken} files in progress; its limit is {self._pool.queue.per_tenant}. "
                "Send the request again when some of them have finished."
            )
            raise TooManyRequests(message, RETRY_AFTER_SECONDS) from None
        except QueueFull:
            raise Overloaded(FULL, self._retry_after()) from None

    async def _run(self, spec: JobSpec, directory: Path, ticket: QueueTicket, submission: Submission) -> None:
        about.set({"job_id": str(spec.job.id)})
        lost = RESTARTING
        try:
            submission.finish(await self._run_job(spec, directory, ticket, submission.keep))
        except (StorageUnavailable, NoRoom) as error:
            lost, submission.unstored = UNSTORED, error
        except QueueUnavailable as refusal:
            submission.refuse(refusal)
        except Exception as error:  # noqa: BLE001 - one job must not end the others
            lost = AWAY if isinstance(error, DatabaseUnavailable) else UNKNOWN
            _log.exception(events.JOB_LEFT, job_id=spec.job.id)  # recovery ends this job
        finally:
            self._pool.release(ticket)
            self._forget(spec.job.id)
            submission.mark_lost(lost)

    def _forget(self, job_id: JobId) -> None:
        del self._submissions[job_id], self._handles[job_id]
        self._ends.wake(job_id)
        if self._idle is not None and not self._submissions:
            self._idle.set()


async def _end(handle: TaskHandle[None]) -> None:
    handle.cancel()
    with anyio.move_on_after(CANCEL_SECONDS):
        await handle.wait()
