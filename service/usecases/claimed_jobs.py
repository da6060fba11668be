"""The jobs that a worker has claimed: it fetches their inputs and runs them; what it cannot end, it gives up."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from sandbox.pool import QueueTicket
from sandbox.queue import State
from service.blocking import INLINE_BYTES
from service.errors import NoRoom, Overloaded, Rejection, RetryableFault, StorageUnavailable
from service.formats.offer import Offer
from service.formats.target import choose_target
from service.ids import JobId
from service.intake.form import Upload
from service.jobs.dispatch import JobRunner, Submission
from service.jobs.handover import HandOver
from service.jobs.leases import Claim, Leases
from service.jobs.records import Job
from service.jobs.spec import JobSpec, source_spec
from service.metering.ledger import Release
from service.storage.observed import copy_observed
from service.storage.port import ObjectKey
from service.telemetry import events, metrics
from service.telemetry.tracing import span
from service.usecases.detect_format import detect_format
from service.usecases.ending import JobOutcome, JobParts, details_of, retry_while_unavailable
from service.usecases.run_lock import Displaced, RunLock

_log = structlog.get_logger()

MOST_ATTEMPTS = 12
"""A job fails once a fault of the service has ended so many attempts to fetch its input or to store its output."""
MOST_ATTEMPTS_WITHOUT_ROOM = 3
"""A result may need more room than any worker has, and each attempt takes the time of a whole conversion."""
REPLACED = "The stored file is not the one that was received. Nothing was counted; send the file again."
UNFETCHED = "The file could not be fetched for its conversion. Nothing was counted; send the file again."
_UPLOAD = "upload"
FETCHES = 2


class _OtherInputError(Exception):
    """The store has another object in the place of an input: its account would be charged for the data of others."""


class ClaimedJobs:
    """Runs claimed jobs to their ends in the converters of this process, or returns them."""

    def __init__(self, parts: JobParts, leases: Leases, runner: JobRunner, offer: Offer, tasks: TaskGroup) -> None:
        """`offer` has the formats of this host."""
        self._parts = parts
        self._leases = leases
        self._runner = runner
        self._offer = offer
        self._tasks = tasks
        self._run_lock = RunLock(self._let_go)
        self._tickets: dict[JobId, QueueTicket] = {}
        self._fetching: set[anyio.CancelScope] = set()

    @property
    def is_reserved(self) -> bool:
        """Whether a job runs alone here, or waits for the others to end."""
        return self._run_lock.is_reserved

    @property
    def lets_go(self) -> bool:
        """Whether jobs are returned at once that no converter has begun: others can have them."""
        return self._run_lock.is_closed or self._run_lock.is_reserved

    def leave(self) -> None:
        """Return the jobs that no converter has begun, and let none begin."""
        self._run_lock.close()
        self._let_go()

    def _let_go(self) -> None:
        """Return the jobs that no converter has begun."""
        for scope in self._fetching:
            scope.cancel()
        for job_id, ticket in list(self._tickets.items()):
            if ticket.state in {State.RESERVED, State.WAITING}:
                self._tasks.start_soon(self._runner.withdraw, job_id)

    @contextmanager
    def place(self, handover: HandOver, *, is_large: bool) -> Iterator[QueueTicket]:
        """Take a place before the job is claimed; the run of the job releases it if there is one."""
        ticket = self._runner.readmit(handover.account_id, is_large=is_large)
        try:
            yield ticket
        finally:
            if self._tickets.pop(handover.job.id, None) is None:
                self._parts.pool.release(ticket)

    async def end(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> Job | None:
        """Run a claimed job to its end; otherwise give it up, so that any worker can claim it.

        Returns the ended job as it is recorded; None if it failed before it could run here.
        """
        job = msgspec.structs.replace(handover.job, attempt=claim.attempt)
        try:
            async with self._run_lock.joined(alone=claim.is_suspect, is_open=lambda: self._is_open(job)):
                metrics.FLEET_SUSPECTS.inc(claim.is_doubtful)
                return await self._run(msgspec.structs.replace(handover, job=job), claim, ticket)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await retry_while_unavailable(lambda: self._leases.give_back(job.id, job.attempt))
            raise
        finally:
            self._parts.ledger.forget(job.id)

    async def _is_open(self, job: Job) -> bool:
        """Whether a claimed job has still to run, as far as can be known now."""
        try:
            return await self._parts.jobs.is_open(job)
        except RetryableFault:
            return True

    async def _run(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> Job | None:
        """Run a claimed job to its end.

        Raises:
            RetryableFault: it has not ended; this process stops, or lost it.
        """
        job = handover.job
        self._parts.ledger.note_claim(job.id, job.attempt, is_durable=claim.is_durable)
        try:
            submission = await self._submit(handover, claim, ticket)
        except Rejection as rejection:
            if isinstance(rejection, NoRoom) and not await self._was_last(job, MOST_ATTEMPTS_WITHOUT_ROOM):
                raise
            await self._fail(job, rejection, rejection.message)
        except _OtherInputError as error:
            _log.error(events.INPUT_REPLACED, job_id=job.id)
            await self._fail(job, error, REPLACED)
        except Exception as error:
            if isinstance(error, Displaced) or not await self._was_last(job, MOST_ATTEMPTS):
                raise
            report(error)
            await self._fail(job, error, UNFETCHED)
        else:
            return await self._end_of(submission, claim)
        return None

    async def _end_of(self, submission: Submission, claim: Claim) -> Job | None:
        """Wait for the end of a job; if this host has no room for its output, or cannot store it, others may try it.

        Raises:
            RetryableFault, StorageUnavailable, NoRoom: it has not ended.
        """
        try:
            return await submission.outcome()
        except Overloaded:
            if submission.unstored is None:
                raise
            most = MOST_ATTEMPTS_WITHOUT_ROOM if isinstance(submission.unstored, NoRoom) else MOST_ATTEMPTS
            if not await self._was_last(submission.job, most):
                raise submission.unstored from None
            await self._fail(submission.job, submission.unstored, submission.unstored.message, claim.output)
            return None

    async def _was_last(self, job: Job, most: int) -> bool:
        """Count an attempt that a fault has ended, unless the database is away; return whether it was the last one."""
        with suppress(RetryableFault):
            return await self._parts.jobs.count_failure(job) >= most
        return False

    async def _submit(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> Submission:
        parts, job = self._parts, handover.job
        directory = parts.work_area.new_directory(small=job.input_size_bytes <= INLINE_BYTES)
        try:
            with self._fetched():
                spec = await self._prepare(handover, claim, directory)
            submission = self._runner.submit(spec, directory, ticket)
        except BaseException:
            await parts.work_area.remove(directory)
            raise
        self._tickets[job.id] = ticket
        return submission

    @contextmanager
    def _fetched(self) -> Iterator[None]:
        """Give up whatever the block does if this job is to be returned.

        Raises:
            Displaced: it is.
        """
        with anyio.CancelScope() as scope:
            self._fetching.add(scope)
            try:
                yield
            finally:
                self._fetching.remove(scope)
        if scope.cancel_called:
            raise Displaced

    async def _prepare(self, handover: HandOver, claim: Claim, directory: Path) -> JobSpec:
        """Fetch the input of a claimed job, and detect its format, which this host must have."""
        job, path = handover.job, directory / _UPLOAD
        if handover.content is not None:
            is_little = len(handover.content) <= INLINE_BYTES
            await self._parts.work_area.run_blocking(partial(path.write_bytes, handover.content), inline=is_little)
        else:
            with span("fetch", job_id=str(job.id)):
                await self._fetch(handover, ObjectKey(claim.input or ""), path)
        source = await detect_format(
            Upload(untrusted_name=job.original_file_name, path=path, size_bytes=job.input_size_bytes),
            self._parts.engine.limits,
            self._parts.work_area.space,
            handover.account_id,
        )
        self._offer.require_readable(source.format)
        choose_target(source.format, handover.target, self._offer.unwritable())
        return JobSpec(
            job=job,
            account_id=handover.account_id,
            upload=path.name,
            source=source_spec(source, directory),
            target=handover.target,
            request=handover.request,
            retention_hours=handover.retention_hours,
            object_key=claim.output or "",
            is_doubtful=claim.is_doubtful,
        )

    async def _fetch(self, handover: HandOver, key: ObjectKey, path: Path) -> None:
        """Fetch an input; once more if it is another one than was received: it may have been damaged on its way.

        Raises:
            _OtherInputError: it is so again.
        """
        for _ in range(FETCHES):
            await copy_observed(self._parts.storage.read(key), path, found := sha256())
            _require_whole(path, handover.job)
            if handover.input_sha256 in {found.digest(), b""}:
                return
            path.unlink()  # noqa: ASYNC240 -- it takes less time than a thread
        raise _OtherInputError

    async def _fail(self, job: Job, error: Exception, message: str, output: str | None = None) -> None:
        """Fail a job that cannot be run, and whose `output` may nevertheless appear in the store."""
        change = Release(
            job_id=job.id,
            attempt=job.attempt,
            error_message=message,
            details=details_of(error).encode(),
            object_key=output,
            interrupted=isinstance(error, NoRoom) or not isinstance(error, Rejection),
        )
        if await retry_while_unavailable(lambda: self._parts.ledger.release(change)) is not None:
            metrics.JOBS_ENDED.labels(_outcome(error)).inc()


def _outcome(error: Exception) -> JobOutcome:
    if isinstance(error, Rejection):
        return "rejected"
    return "defect" if isinstance(error, _OtherInputError) else "storage"


def _require_whole(path: Path, job: Job) -> None:
    """Refuse an input that the store has lost a part of: what is left of it may be a whole file of its format.

    Raises:
        StorageUnavailable: it has another size than was received.
    """
    if (found := path.stat().st_size) != job.input_size_bytes:
        raise StorageUnavailable("down", f"the store gave {found} of the {job.input_size_bytes} bytes of an input")


def report(error: BaseException) -> None:
    """Log why a job could not be run here, unless that is an ordinary part of a worker's life."""
    if isinstance(error, StorageUnavailable):
        _log.warning(events.STORAGE_FAILED, fault=error.fault, detail=error.detail)
    elif isinstance(error, NoRoom):
        _log.error(events.DISK_FULL, reason=error.message)
    elif isinstance(error, Exception) and not isinstance(error, RetryableFault):
        _log.exception(events.DELIVERY_FAILED, exc_info=error)
