"""Hands jobs over to workers on other hosts, and waits for their ends.

The input of a small file for which a client waits travels with the message, because this process can hand it over again
for as long as the client waits. Any other input is put into the store first, under a key that the job has recorded
before, and what workers are told is recorded after that: from then on the job survives this process.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import file_digest
from pathlib import Path

import anyio
import msgspec
import structlog

from sandbox.pool import QueueTicket
from service.blocking import INLINE_BYTES
from service.db.batching import Batcher
from service.errors import QueueUnavailable, RetryableFault, StorageUnavailable
from service.ids import JobId
from service.jobs.dispatch import RunJob
from service.jobs.handover import HandOver, Message, message_of, sealed
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.lifecycle import ENDED, Status
from service.jobs.notices import Notice, end_in
from service.jobs.queue_faults import stated_reason, unreachable
from service.jobs.records import Job
from service.jobs.spec import JobSpec
from service.jobs.windows import Turn, Windows
from service.jobs.work_queue import MessageTooLargeError, WorkQueue
from service.storage.port import ObjectKey, new_input_key, new_key
from service.telemetry import events, metrics
from service.telemetry.tracing import current_traceparent, span
from service.usecases.ending import (
    FORGOTTEN,
    STOPPED,
    UNREACHED,
    JobOutcome,
    JobParts,
    release,
    retry_while_unavailable,
)
from service.usecases.steps.delivering import ForgottenError

_log = structlog.get_logger()

INPUT_MEDIA_TYPE = "application/octet-stream"
AWAY_SECONDS = 0.5
"""How long to wait before retrying while the queue is unreachable."""
DOUBT_SECONDS = 5.0
"""How long the queue counts as accepting nothing after it has not accepted a job."""
REFUSED_SECONDS = 2.0
"""How long a client waits for a queue that says that it accepts nothing: workers may be making room."""
SILENT_SECONDS = 15.0
"""How long a client waits for a queue that cannot be reached, as while its servers elect another leader."""
_LOOKED_UP_AT_ONCE = 500


class _Awaited:
    """The end of a job, once it is known; `event` says that it may be, or that its turn may have come.

    With the `secret`, notices of its end are sealed.
    """

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.event = anyio.Event()
        self.job: Job | None = None

    def wake(self) -> None:
        """Make the waiters check again."""
        self.event.set()


class Converter(msgspec.Struct, frozen=True):
    """What a process needs to run a job itself that the queue has not accepted."""

    leases: Leases
    run: RunJob
    run_recorded: RunJob
    """Runs a job that others can have, too, and leaves it to them if this process stops."""


class _NotQueuedError(Exception):
    """The queue has not accepted a job, which this process has claimed as `spec` and runs with the `converter`."""

    def __init__(self, spec: JobSpec, converter: Converter) -> None:
        self.spec = spec
        self.converter = converter


class Gateway:
    """Hands the jobs that this process admits over to workers."""

    def __init__(
        self,
        parts: JobParts,
        handovers: HandOvers,
        queue: WorkQueue,
        *,
        windows: Windows,
        inline_bytes: int,
        again_seconds: float,
        converter: Converter | None = None,
    ) -> None:
        """Send inputs of up to `inline_bytes` within the message, each once `windows` has a place for its account.

        With a `converter`, run a job here if the queue does not accept it.

        A job that has not ended is handed over again every `again_seconds`, which changes nothing while its message is
        in the queue.
        """
        self._parts = parts
        self._handovers = handovers
        self._queue = queue
        self._windows = windows
        self._inline_bytes = inline_bytes
        self._again_seconds = again_seconds
        self._converter = converter
        self._doubtful_until: float | None = None
        self._refused_since = -math.inf
        self._has_given_up = False
        self.refusal = ""
        """Why the queue has not accepted a job the last time that it did not."""
        self._awaited: dict[JobId, _Awaited] = {}
        self._look_up = Batcher(self._look_all_up, _LOOKED_UP_AT_ONCE)

    async def run(self, spec: JobSpec, directory: Path, ticket: QueueTicket, keep: Callable[[], None]) -> Job:
        """Hand a job over and return it when it has ended; see `RunJob`.

        Raises:
            QueueUnavailable: the queue has not accepted it for a while, and it has failed: its client need not wait.
            RetryableFault: another process has the job, and has not ended it.
        """
        is_recorded = False

        async def record(handover: HandOver) -> Message:
            nonlocal is_recorded
            message = await self._store(spec, handover, directory)
            is_recorded = True
            keep()
            return message

        try:
            with self._awaiting(spec) as awaited, span("hand_over"):
                handover, message = self._handover(spec), None
                if spec.is_promised or not self._may_be_inside(spec.job.input_size_bytes):
                    message = await record(handover)
                with self._windows.turn(spec.account_id, awaited.wake) as turn:
                    await self._await_turn(turn, awaited, spec)
                    if message is None:
                        content = await self._read(directory / spec.upload)
                        message = _sealed(spec, msgspec.structs.replace(handover, content=content))
                    try:
                        return await self._end_of(message, awaited, spec)
                    except MessageTooLargeError:  # by what is told besides, or the server's limit is lower than it was
                        return await self._end_of(await record(handover), awaited, spec)
        except _NotQueuedError as refusal:
            run = refusal.converter.run_recorded if is_recorded else refusal.converter.run
            return await run(refusal.spec, directory, ticket, keep)
        except StorageUnavailable as error:
            _log.warning(events.STORAGE_FAILED, job_id=spec.job.id, fault=error.fault, detail=error.detail)
            return await self._fail(spec, "storage", error.message)
        except ForgottenError:
            return await self._fail(spec, "forgotten", FORGOTTEN)
        except anyio.get_cancelled_exc_class():
            if not is_recorded:  # nobody could hand it over again
                with anyio.CancelScope(shield=True), suppress(RetryableFault):
                    await self._fail(spec, "stopped", STOPPED)
            raise
        finally:
            self._parts.ledger.forget(spec.job.id)
            self._parts.pool.release(ticket)
            await self._parts.work_area.remove(directory, inline=spec.job.input_size_bytes <= INLINE_BYTES)

    def may_accept(self) -> bool:
        """Whether the queue is likely to accept a job; after a refusal, one may try every few seconds."""
        if not self._queue.is_connected:
            return False
        if self._doubtful_until is None:
            return True
        if (now := time.monotonic()) < self._doubtful_until:
            return False
        self._doubtful_until = now + DOUBT_SECONDS
        return True

    @property
    def is_refused(self) -> bool:
        """Whether the queue, although it may be connected, accepts nothing: jobs wait for it, or have just failed."""
        doubtful_until = self._doubtful_until
        return doubtful_until is not None and (bool(self._awaited) or time.monotonic() < doubtful_until)

    def require_acceptance(self) -> None:
        """Raise `QueueUnavailable` while the queue accepts nothing; what waits for it shows when it does again."""
        if self.is_refused:
            raise unreachable()

    def note_workers(self) -> None:
        """Hand over jobs that waited for their turn and no longer need to, as there may be further workers."""
        self._windows.give_all()

    def on_notice(self, notice: Notice) -> None:
        """Take the end of a job from a worker that has recorded it, or look for it if the notice does not prove it."""
        if awaited := self._awaited.get(notice.job_id):
            awaited.job = awaited.job or end_in(notice, awaited.secret)
            awaited.wake()

    def tell(self, ended: Job) -> bool:
        """Pass an ended job to its waiters; return whether this process handed it over."""
        awaited = self._awaited.get(ended.id)
        if awaited is None:
            return False
        awaited.job = ended
        awaited.wake()
        return True

    async def _await_turn(self, turn: Turn, awaited: _Awaited, spec: JobSpec) -> None:
        """Wait for a place in the queue, or for the end of a job that someone ends before.

        Raises:
            _NotQueuedError: the queue is away, and the job is to run here.
            QueueUnavailable: as `run`.
        """
        while not turn.has_come and awaited.job is None:
            if self._is_away:
                await self._claim(spec)
            await self._refuse(spec)
            await awaited.event.wait()
            awaited.event = anyio.Event()
        awaited.event = anyio.Event()  # only its turn has woken it

    async def _end_of(self, message: Message, awaited: _Awaited, spec: JobSpec) -> Job:
        """Offer a job to the queue until that has accepted it, and wait for its end.

        Raises:
            _NotQueuedError: it is to run here.
            QueueUnavailable: as `run`.
            MessageTooLargeError: it is to be handed over without its input.
            ForgottenError: a crash of the database has undone the job's admission.
        """
        was_accepted = False
        while awaited.job is None:
            pause = self._again_seconds
            try:
                await self._queue.offer(message)
                self._doubtful_until = None
                self._has_given_up, was_accepted = False, True
            except QueueUnavailable as refusal:
                pause = AWAY_SECONDS
                self._note_refusal(refusal)
                if not was_accepted:
                    await self._claim(spec)
                    await self._refuse(spec)
            with anyio.move_on_after(pause):
                await awaited.event.wait()
            awaited.event = anyio.Event()
            if awaited.job is None:
                awaited.job = await self._find_end(message.job_id)
        return awaited.job

    @property
    def _is_away(self) -> bool:
        """Whether the queue accepts nothing, as far as is known."""
        return self._doubtful_until is not None or not self._queue.is_connected

    def _note_refusal(self, refusal: QueueUnavailable) -> None:
        """Note that the queue has not accepted a job; those that wait for a place need not, if they can run here."""
        reason, now = stated_reason(refusal), time.monotonic()
        was_known = self._doubtful_until is not None
        if self._doubtful_until is None or now >= self._doubtful_until:
            self._refused_since = now
        self._doubtful_until = now + DOUBT_SECONDS
        self.refusal = reason or "no answer"
        patience = REFUSED_SECONDS if reason else SILENT_SECONDS
        self._has_given_up = now - self._refused_since >= patience
        if not was_known:
            _log.warning(events.QUEUE_ACCEPTS_NOTHING, reason=str(refusal.__cause__))
        if not was_known or self._has_given_up:
            self._windows.tell_all()

    async def _refuse(self, spec: JobSpec) -> None:
        """Fail a job for which a client waits, if the queue accepts nothing and no worker has the job nevertheless.

        Raises:
            QueueUnavailable: it has failed.
        """
        if not self._has_given_up or spec.is_promised:
            return
        try:
            ended = await self._fail(spec, "queue", UNREACHED)
        except RetryableFault:  # a worker has it, or the database is away
            return
        if ended.error_message == UNREACHED:
            raise unreachable()
        self.tell(ended)

    async def _claim(self, spec: JobSpec) -> None:
        """Claim a job that the queue may or may not have accepted, unless a worker has it or this process runs none.

        Raises:
            _NotQueuedError: this process has it now.
        """
        if (converter := self._converter) is None:
            return
        gateway, account_id = self._handovers.gateway, spec.account_id
        claim = await retry_while_unavailable(
            lambda: converter.leases.claim(spec.job.id, account_id, gateway, new_key())
        )
        if claim.verdict == "claimed" and claim.attempt is not None and claim.output is not None:
            job = msgspec.structs.replace(spec.job, attempt=claim.attempt)
            claimed = msgspec.structs.replace(spec, job=job, object_key=claim.output, is_doubtful=claim.is_doubtful)
            raise _NotQueuedError(claimed, converter)

    async def _find_end(self, job_id: JobId) -> Job | None:
        """Look for the end of a job in the database; None if it has not ended, or the database is away.

        Raises:
            ForgottenError: a crash of the database has undone the job's admission.
        """
        try:
            found = await self._look_up.submit(job_id)
        except RetryableFault:
            return None
        if found is None:
            raise ForgottenError
        return found if found.status in ENDED else None

    async def _look_all_up(self, job_ids: Sequence[JobId]) -> list[Job | None]:
        found = {job.id: job for job in await self._parts.jobs.of_any(job_ids)}
        return [found.get(job_id) for job_id in job_ids]

    async def _store(self, spec: JobSpec, handover: HandOver, directory: Path) -> Message:
        """Store the input of a job, and record the message that tells workers of it."""
        key, path = new_input_key(ObjectKey(spec.object_key)), directory / spec.upload
        if not await retry_while_unavailable(lambda: self._handovers.record_input(spec.job.id, key)):
            raise ForgottenError
        with span("store_input"):
            is_little = spec.job.input_size_bytes <= INLINE_BYTES
            digest = spec.upload_sha256 or await self._parts.work_area.run_blocking(
                partial(_sha256_of, path), inline=is_little
            )
            await self._parts.own_store.put(
                key, path, media_type=INPUT_MEDIA_TYPE, download_name=spec.upload, sha256=digest
            )
        message = _sealed(spec, msgspec.structs.replace(handover, input_sha256=digest))
        if not await retry_while_unavailable(lambda: self._handovers.record(message)):
            raise ForgottenError
        return message

    async def _read(self, path: Path) -> bytes:
        return await self._parts.work_area.run_blocking(path.read_bytes, inline=True)

    def _may_be_inside(self, size_bytes: int) -> bool:
        """Whether an input is small enough to travel with the message."""
        return size_bytes <= self._inline_bytes and self._queue.takes(size_bytes)

    def _handover(self, spec: JobSpec) -> HandOver:
        return HandOver(
            job=spec.job,
            account_id=spec.account_id,
            request=spec.request,
            target=spec.target,
            retention_hours=spec.retention_hours,
            gateway=self._handovers.gateway,
            traceparent=current_traceparent(),
        )

    async def _fail(self, spec: JobSpec, outcome: JobOutcome, message: str) -> Job:
        """Fail a job that no worker has claimed; return the ended job, which another process may have ended."""
        failed = msgspec.structs.replace(spec.job, status=Status.FAILED, error_message=message)
        ended, is_ours = await release(self._parts, spec, failed, interrupted=True, may_have_stored=False)
        if is_ours:
            formats = {"input": ended.input_format, "output": ended.output_format}
            metrics.JOBS_ENDED.labels(outcome).inc()
            _log.info(events.JOB_FAILED, job_id=ended.id, **formats, reason=message)
        return ended

    @contextmanager
    def _awaiting(self, spec: JobSpec) -> Iterator[_Awaited]:
        self._awaited[spec.job.id] = awaited = _Awaited(spec.object_key)
        try:
            yield awaited
        finally:
            del self._awaited[spec.job.id]


def _sealed(spec: JobSpec, handover: HandOver) -> Message:
    return message_of(sealed(handover, spec.object_key))


def _sha256_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
