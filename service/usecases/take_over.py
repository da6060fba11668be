"""The worker's part of a job that was handed over: claim it, fetch and detect the input, run the job, report its end.

A message is acknowledged once its job has ended. Until then it is kept by signs of life. Those of a process that dies,
or has lost its database, end, and the message is delivered to another worker.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from sandbox.pool import QueueTicket
from sandbox.queue import State
from service.blocking import INLINE_BYTES
from service.errors import GeomillError, Overloaded, Rejection, RetryableFault, StorageUnavailable
from service.formats.offer import Offer, can
from service.formats.target import choose_target
from service.ids import JobId
from service.intake.form import Upload
from service.jobs.deliveries import MOST_AT_ONCE, Delivery
from service.jobs.dispatch import JobRunner, Submission
from service.jobs.handover import HandOver, is_sealed, read_handover
from service.jobs.leases import Claim
from service.jobs.records import Job
from service.jobs.spec import JobSpec, source_spec
from service.jobs.work_queue import WorkQueue
from service.metering.ledger import Release
from service.storage.observed import copy_observed
from service.storage.port import ObjectKey, new_key
from service.telemetry import events, metrics
from service.telemetry.tracing import continued_span, span
from service.usecases import preview_result, search_systems
from service.usecases.company import Company, Displaced
from service.usecases.detect_format import detect_format
from service.usecases.ending import details_of, retry_while_unavailable
from service.usecases.fitness import Fitness, probe_means
from service.usecases.large_inputs import LargeInputs
from service.usecases.services import Services

_log = structlog.get_logger()

PLACES_EACH = 2
"""Jobs per converter that a worker holds at a time, so that it can fetch and store some while it converts others."""
HELD_SECONDS = 1.0
"""When to check again a job whose worker may have died."""
LATER_SECONDS = 5.0
"""When a worker may try again a job that this one cannot run now."""
MOST_ATTEMPTS = 12
"""A job fails once a fault of the service has ended so many attempts to fetch its input or to store its output."""
UNFETCHED = "The file could not be fetched for its conversion. Nothing was counted; send the file again."
_UPLOAD = "upload"

_FIRST, _AGAIN = "first", "again"
_ANSWERS: Mapping[str, Callable[[Services, bytes], Awaitable[bytes]]] = {
    preview_result.TOPIC: preview_result.answer_preview,
    search_systems.TOPIC: search_systems.answer_search,
}
"""What gateways have workers do beside jobs, because it takes GDAL or PROJ."""

metrics.start_at_zero(metrics.JOBS_ENDED, ("poison",))
metrics.start_at_zero(metrics.FLEET_DELIVERIES, (_FIRST, _AGAIN))


class Worker:
    """Takes jobs from the queue and runs them in the converters of this process."""

    def __init__(
        self, queue: WorkQueue, *, converters: int, lease_seconds: float, runner: JobRunner | None = None
    ) -> None:
        """With a `runner` of its own for what it claims, take jobs only while a converter is idle."""
        self._services: Services
        self._offer: Offer
        self._runner: JobRunner
        self._tasks: TaskGroup
        self.runner = runner
        self._queue = queue
        self._converters = converters
        self._sign_seconds = lease_seconds / 3
        self._large = LargeInputs(converters, converters * PLACES_EACH)
        self.fitness = Fitness(lambda: probe_means(self._services))
        self._company = Company(self._let_go)
        self._tickets: dict[JobId, QueueTicket] = {}
        self._kept: set[Delivery] = set()
        self._fetching: set[anyio.CancelScope] = set()
        self._finished = anyio.Event()

    async def work(self, services: Services) -> None:
        """Take and run jobs until `leave`."""
        self._services = services
        self._offer = Offer(services.engine.capabilities.formats)
        self._runner = self.runner or services.runner
        if not await self._queue.connected():
            self._finished.set()
            return
        await self._queue.deliveries.listen()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for topic, answer in _ANSWERS.items():
                await self._queue.questions.answer(topic, partial(_answer, services, answer), tasks)
            tasks.start_soon(self.fitness.recover)
            tasks.start_soon(self._give_signs)
            async with anyio.create_task_group() as takers:
                for _ in range(self._converters * PLACES_EACH):
                    takers.start_soon(self._take_one_after_the_other)
            self._finished.set()
            tasks.cancel_scope.cancel()

    async def leave(self) -> None:
        """Take no further jobs, and return those that no converter has begun."""
        self._queue.leave()
        await self._company.close()
        self._let_go()
        await self._queue.questions.leave()

    def _let_go(self) -> None:
        """Return the jobs that no converter has begun."""
        for scope in self._fetching:
            scope.cancel()
        for job_id, ticket in list(self._tickets.items()):
            if ticket.state in {State.RESERVED, State.WAITING}:
                self._tasks.start_soon(self._runner.withdraw, job_id)

    @property
    def _lets_go(self) -> bool:
        """Whether jobs are returned at once that no converter has begun: others can have them."""
        return self._company.is_closed or self._company.is_reserved

    async def finished(self) -> None:
        """Wait until every job that was taken has ended or was returned."""
        await self._finished.wait()

    async def _take_one_after_the_other(self) -> None:
        while delivery := await self._queue.deliveries.take(self._large.may_take, self._room):
            metrics.FLEET_DELIVERIES.labels(_FIRST if delivery.is_first else _AGAIN).inc()
            with self._large.counted(delivery):
                try:
                    await self._see_to(delivery)
                except BaseException as error:
                    _report(error)
                    self.fitness.note_failure(error)
                    with anyio.CancelScope(shield=True):  # others may have at once what this worker leaves behind
                        await delivery.give_back(0.0 if self._lets_go else LATER_SECONDS)
                    if not isinstance(error, Exception):  # one job must not end the others
                        raise
            if delivery.is_large:
                self._queue.deliveries.wake()  # another one may come

    def note_release(self) -> None:
        """Note that a converter may be idle now: what waits for a place elsewhere may come."""
        if self.runner is not None or self._large:
            self._queue.deliveries.wake()

    def _room(self) -> int:
        """How many jobs this process may take now."""
        if self._company.is_reserved or not self.fitness.is_fit:
            return 0
        return MOST_AT_ONCE if self.runner is None else int(self._services.pool.queue.is_idle)

    async def _see_to(self, delivery: Delivery) -> None:
        """Run the job of a message to its end, or return the message."""
        try:
            handover = read_handover(delivery.data)
        except msgspec.DecodeError:
            _log.exception(events.DELIVERY_DAMAGED)
            await delivery.acknowledge()  # its job is handed over again
            return
        if handover is None or handover.job.id in self._runner.active:
            await delivery.give_back(LATER_SECONDS)  # for a newer worker; or until this one knows that it has lost it
            return
        with self._runner.admitting(handover.job.id):
            if not await self._is_genuine(handover):
                await delivery.acknowledge()  # the true one is handed over again
            elif await self._suits_another(handover):
                await delivery.give_back(LATER_SECONDS)
            else:
                await self._claim(delivery, handover)

    async def _claim(self, delivery: Delivery, handover: HandOver) -> None:
        """Claim a job and run it to its end, or return the message."""
        if self._lets_go:
            raise Displaced
        with self._place(delivery, handover) as ticket:
            claim = await self._services.leases.claim(handover.job.id, handover.account_id, handover.gateway, new_key())
            if claim.verdict == "ended":
                await delivery.acknowledge()
            elif claim.verdict == "held":
                await delivery.give_back(HELD_SECONDS)
            elif claim.verdict == "given up":
                _log.error(events.JOB_POISONOUS, job_id=handover.job.id, input=handover.job.input_format)
                metrics.JOBS_ENDED.labels("poison").inc()
                await self._tell(delivery, handover)
            else:
                job_id, attempt = str(handover.job.id), claim.attempt or 0
                with continued_span(handover.traceparent, "job", job_id=job_id, attempt=attempt):
                    self._kept.add(delivery)
                    try:
                        await self._end(handover, claim, ticket)
                    finally:
                        self._kept.discard(delivery)
                self.fitness.note_success()
                await self._tell(delivery, handover)

    async def _give_signs(self) -> None:
        """Keep the messages of claimed jobs, until this process has lost its lease, and with it these jobs."""
        while True:
            await anyio.sleep(self._sign_seconds)
            if not self._services.leases.is_held:
                self._kept.clear()
            for delivery in tuple(self._kept):
                await delivery.keep()

    async def _is_genuine(self, handover: HandOver) -> bool:
        """Whether the gateway that admitted an open job tells of it; nobody else can change anything of the job."""
        secret = await self._services.leases.secret(handover.job.id)
        if secret is not None and not is_sealed(handover, secret):
            _log.error(events.DELIVERY_FORGED, job_id=handover.job.id)
            return False
        return secret is not None

    async def _suits_another(self, handover: HandOver) -> bool:
        """Whether this host lacks a format of the job that another worker has, and perhaps all had until now."""
        source, target = handover.job.input_format, handover.target
        if self._offer.can(source, target):
            return False
        return any(can(formats, source, target) for formats in await self._services.leases.offers())

    @contextmanager
    def _place(self, delivery: Delivery, handover: HandOver) -> Iterator[QueueTicket]:
        """Take a place before the job is claimed; the run of the job releases it if there is one."""
        ticket = self._runner.readmit(handover.account_id, is_large=delivery.is_large)
        self._large.note_ticket(delivery, ticket)
        try:
            yield ticket
        finally:
            if self._tickets.pop(handover.job.id, None) is None:
                self._services.pool.release(ticket)

    async def _end(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> None:
        """Run a claimed job to its end; otherwise give it up, so that any worker can claim it."""
        job = msgspec.structs.replace(handover.job, attempt=claim.attempt)
        try:
            async with self._company.joined(alone=claim.is_suspect, is_open=lambda: self._is_open(job)):
                metrics.FLEET_SUSPECTS.inc(claim.is_doubtful)
                await self._run(msgspec.structs.replace(handover, job=job), claim, ticket)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await retry_while_unavailable(lambda: self._services.leases.give_back(job.id, job.attempt))
            raise
        finally:
            self._services.ledger.forget(job.id)

    async def _is_open(self, job: Job) -> bool:
        """Whether a claimed job has still to run, as far as can be known now."""
        try:
            return await self._services.jobs.is_open(job)
        except RetryableFault:
            return True

    async def _tell(self, delivery: Delivery, handover: HandOver) -> None:
        await self._queue.tell_ended(handover.gateway, handover.job.id)
        await delivery.acknowledge()

    async def _run(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> None:
        """Run a claimed job to its end.

        Raises:
            RetryableFault: it has not ended; this process stops, or lost it.
        """
        job = handover.job
        self._services.ledger.note_durable(job.id)
        try:
            submission = await self._submit(handover, claim, ticket)
        except Rejection as rejection:
            await self._fail(job, rejection, rejection.message)
        except Exception as error:
            if isinstance(error, Displaced) or not await self._was_last(job):
                raise
            _report(error)
            await self._fail(job, error, UNFETCHED)
        else:
            await self._end_of(submission, claim)

    async def _end_of(self, submission: Submission, claim: Claim) -> None:
        """Wait for the end of a job; if its output cannot be stored, this was the last attempt or it is left to others.

        Raises:
            RetryableFault, StorageUnavailable: it has not ended.
        """
        try:
            await submission.outcome()
        except Overloaded:
            if submission.unstored is None:
                raise
            if not await self._was_last(submission.job):
                raise submission.unstored from None
            await self._fail(submission.job, submission.unstored, submission.unstored.message, claim.output)

    async def _was_last(self, job: Job) -> bool:
        """Count an attempt that a fault has ended, unless the database is away; return whether it was the last one."""
        with suppress(RetryableFault):
            return await self._services.jobs.count_failure(job) >= MOST_ATTEMPTS
        return False

    async def _submit(self, handover: HandOver, claim: Claim, ticket: QueueTicket) -> Submission:
        services, job = self._services, handover.job
        directory = services.work_area.new_directory(small=job.input_size_bytes <= INLINE_BYTES)
        try:
            with self._fetched():
                spec = await self._prepare(handover, claim, directory)
            submission = self._runner.submit(spec, directory, ticket)
        except BaseException:
            await services.work_area.remove(directory)
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
            await self._services.work_area.run_blocking(partial(path.write_bytes, handover.content), inline=is_little)
        else:
            with span("fetch", job_id=str(job.id)):
                await copy_observed(self._services.storage, ObjectKey(claim.input or ""), path)
        source = await detect_format(
            Upload(untrusted_name=job.original_file_name, path=path, size_bytes=job.input_size_bytes)
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

    async def _fail(self, job: Job, error: Exception, message: str, output: str | None = None) -> None:
        """Fail a job that cannot be run, and whose `output` may nevertheless appear in the store."""
        change = Release(
            job_id=job.id,
            attempt=job.attempt,
            error_message=message,
            details=details_of(error).encode(),
            object_key=output,
            interrupted=not isinstance(error, Rejection),
        )
        await retry_while_unavailable(lambda: self._services.ledger.release(change))


async def _answer(services: Services, answer: Callable[[Services, bytes], Awaitable[bytes]], question: bytes) -> bytes:
    """Answer a question; no bytes if that is not possible now."""
    try:
        return await answer(services, question)
    except GeomillError as error:
        _log.warning(events.QUESTION_UNANSWERED, reason=type(error).__name__)
    except Exception:  # noqa: BLE001 -- one question must not end the worker
        _log.exception(events.QUESTION_UNANSWERED)
    return b""


def _report(error: BaseException) -> None:
    """Log why a job could not be run here, unless that is an ordinary part of a worker's life."""
    if isinstance(error, StorageUnavailable):
        _log.warning(events.STORAGE_FAILED, fault=error.fault, detail=error.detail)
    elif isinstance(error, Exception) and not isinstance(error, RetryableFault):
        _log.exception(events.DELIVERY_FAILED, exc_info=error)
