"""The worker's part of a job that was handed over: take its message, claim it, have it run, report its end.

A message is acknowledged once its job has ended. Until then it is kept by signs of life. Those of a process that dies,
or has lost its database, end, and the message is delivered to another worker.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from service.errors import NoRoom
from service.formats.offer import Offer, can
from service.ids import JobId, ServerId
from service.jobs.deliveries import MOST_AT_ONCE, Delivery
from service.jobs.dispatch import JobRunner
from service.jobs.handover import HandOver, proof_of, read_handover
from service.jobs.leases import Leases
from service.jobs.notices import Notice, notice_of
from service.jobs.questions import Questions
from service.jobs.work_queue import WorkQueue
from service.storage.port import new_key
from service.telemetry import events, metrics
from service.telemetry.tracing import continued_span
from service.usecases.claimed_jobs import ClaimedJobs, report
from service.usecases.ending import JobParts
from service.usecases.large_inputs import LargeInputs
from service.usecases.outdated import end_if_outdated
from service.usecases.run_lock import Displaced
from service.usecases.worker_health import WorkerHealth, probe_means

_log = structlog.get_logger()

PLACES_EACH = 2
"""Jobs per converter that a worker holds at a time, so that it can fetch and store some while it converts others."""
HELD_SECONDS = 1.0
"""When to check again a job whose worker may have died."""
LATER_SECONDS = 5.0
"""When a worker may try again a job that this one cannot run now."""
TIMES_LEFT_TO_OTHERS = 2
"""How often a worker that had no room for a job leaves it to others before it tries it again."""
_MOST_REMEMBERED = 1000
_FIRST, _AGAIN = "first", "again"
metrics.start_at_zero(metrics.JOBS_ENDED, ("poison",))
metrics.start_at_zero(metrics.FLEET_DELIVERIES, (_FIRST, _AGAIN))


class Worker:
    """Takes jobs from the queue and runs them in the converters of this process."""

    def __init__(
        self,
        parts: JobParts,
        leases: Leases,
        queue: WorkQueue,
        *,
        converters: int,
        lease_seconds: float,
        runner: JobRunner | None = None,
    ) -> None:
        """With a `runner` of its own for what it claims, take jobs only while a converter is idle."""
        self._parts = parts
        self._leases = leases
        self._offer = Offer(parts.engine.capabilities.formats)
        self._runner: JobRunner
        self.runner = runner
        self._queue = queue
        self._converters = converters
        self._sign_seconds = lease_seconds / 3
        self._large = LargeInputs(converters, converters * PLACES_EACH)
        self.fitness = WorkerHealth(partial(probe_means, parts, leases), leases.beat)
        leases.takes_jobs = lambda: self.fitness.is_fit
        self._claimed: ClaimedJobs | None = None
        self._kept: set[Delivery] = set()
        self._without_room = deque[JobId](maxlen=_MOST_REMEMBERED)
        """The jobs for which there was no room here, each as often as it is still to be left to others."""
        self._finished = anyio.Event()

    async def work(self, runner: JobRunner, answer: Callable[[Questions, TaskGroup], Awaitable[None]]) -> None:
        """Take and run jobs until `leave`, by `runner` if it has none of its own, and `answer` what gateways ask."""
        self._runner = self.runner or runner
        if not await self._queue.connected():
            self._finished.set()
            return
        async with anyio.create_task_group() as tasks:
            self._claimed = claimed = ClaimedJobs(self._parts, self._leases, self._runner, self._offer, tasks)
            await answer(self._queue.questions, tasks)
            tasks.start_soon(self.fitness.recover)
            tasks.start_soon(self._give_signs)
            async with anyio.create_task_group() as takers:
                for _ in range(self._converters * PLACES_EACH):
                    takers.start_soon(self._take_one_after_the_other, claimed)
            self._finished.set()
            tasks.cancel_scope.cancel()

    async def leave(self) -> None:
        """Take no further jobs, and return those that no converter has begun."""
        self._queue.leave()
        if self._claimed is not None:
            self._claimed.leave()
        await self._queue.questions.leave()

    async def finished(self) -> None:
        """Wait until every job that was taken has ended or was returned."""
        await self._finished.wait()

    async def _take_one_after_the_other(self, claimed: ClaimedJobs) -> None:
        while delivery := await self._queue.deliveries.take(self._large.may_take, lambda: self._room(claimed)):
            metrics.FLEET_DELIVERIES.labels(_FIRST if delivery.is_first else _AGAIN).inc()
            with self._large.counted(delivery):
                try:
                    await self._process(delivery, claimed)
                except BaseException as error:
                    report(error)
                    self.fitness.note_failure(error)
                    if isinstance(error, NoRoom) and delivery.job_id is not None:
                        self._without_room.extend([delivery.job_id] * TIMES_LEFT_TO_OTHERS)
                    with anyio.CancelScope(shield=True):  # others may have at once what this worker leaves behind
                        await delivery.give_back(0.0 if claimed.lets_go else LATER_SECONDS)
                    if not isinstance(error, Exception):  # one job must not end the others
                        raise
            if delivery.is_large:
                self._queue.deliveries.wake()  # another one may come

    def note_release(self) -> None:
        """Note that a converter may be idle now: what waits for a place elsewhere may come."""
        if self.runner is not None or self._large:
            self._queue.deliveries.wake()

    def _room(self, claimed: ClaimedJobs) -> int:
        """How many jobs this process may take now."""
        if claimed.is_reserved or not self.fitness.is_fit:
            return 0
        return MOST_AT_ONCE if self.runner is None else int(self._parts.pool.queue.is_idle)

    async def _process(self, delivery: Delivery, claimed: ClaimedJobs) -> None:
        """Run the job of a message to its end, or return the message."""
        try:
            handover = read_handover(delivery.data)
        except msgspec.DecodeError:
            _log.exception(events.DELIVERY_DAMAGED)
            await delivery.acknowledge()  # its job is handed over again
            return
        if handover is None and await end_if_outdated(self._parts, self._leases, delivery):
            await delivery.acknowledge()
            return
        if handover is None or handover.job.id in self._runner.active:
            await delivery.give_back(LATER_SECONDS)  # for another version; or until this one knows that it has lost it
            return
        with self._runner.admitting(handover.job.id):
            if await self._suits_another(handover):
                await delivery.give_back(LATER_SECONDS)
            else:
                await self._claim(delivery, handover, claimed)

    async def _claim(self, delivery: Delivery, handover: HandOver, claimed: ClaimedJobs) -> None:
        """Claim a job and run it to its end, or return the message."""
        if claimed.lets_go:
            raise Displaced
        with claimed.place(handover, is_large=delivery.is_large) as ticket:
            self._large.note_ticket(delivery, ticket)
            claim = await self._leases.claim(
                handover.job.id,
                handover.account_id,
                handover.gateway,
                new_key(),
                proof_of(delivery.data, handover.seal),
                durable=not self._parts.ledger.will_flush,
            )
            if claim.verdict == "ended":
                await delivery.acknowledge()
            elif claim.verdict == "forged":
                _log.error(events.DELIVERY_FORGED, job_id=handover.job.id)
                await delivery.acknowledge()  # the true one is handed over again
            elif claim.verdict == "held":
                await delivery.give_back(HELD_SECONDS)
            elif claim.verdict == "given up":
                _log.error(events.JOB_POISONOUS, job_id=handover.job.id, input=handover.job.input_format)
                metrics.JOBS_ENDED.labels("poison").inc()
                await self._tell(delivery, handover.gateway, Notice(handover.job.id))
            else:
                job_id, attempt = str(handover.job.id), claim.attempt or 0
                with continued_span(handover.traceparent, "job", job_id=job_id, attempt=attempt):
                    self._kept.add(delivery)
                    try:
                        ended = await claimed.end(handover, claim, ticket)
                    finally:
                        self._kept.discard(delivery)
                self.fitness.note_success()
                notice = notice_of(ended, claim.secret or "") if ended is not None else Notice(handover.job.id)
                await self._tell(delivery, handover.gateway, notice)

    async def _give_signs(self) -> None:
        """Keep the messages of claimed jobs, until this process has lost its lease, and with it these jobs."""
        while True:
            await anyio.sleep(self._sign_seconds)
            if not self._leases.is_held:
                self._kept.clear()
            for delivery in tuple(self._kept):
                await delivery.keep()

    async def _suits_another(self, handover: HandOver) -> bool:
        """Whether this host lacks a format of the job that another worker has, and perhaps all had until now.

        Or has had no room for it: others may have.
        """
        if handover.job.id in self._without_room:
            self._without_room.remove(handover.job.id)
            return True
        source, target = handover.job.input_format, handover.target
        if self._offer.can(source, target):
            return False
        return any(can(formats, source, target) for formats in await self._leases.offers())

    async def _tell(self, delivery: Delivery, gateway: ServerId, notice: Notice) -> None:
        await self._queue.publish_end(gateway, notice)
        await delivery.acknowledge()
