"""The capabilities that the use cases need, opened once by `app`."""

from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from service.accounts.idempotency import IdempotencyKeys
from service.accounts.identity import TrustedGateway
from service.accounts.keys import Authenticator
from service.clock import DatabaseClock
from service.db.pool import Database
from service.formats.offer import Offer
from service.ids import JobId
from service.intake.form import IntakeLimits
from service.jobs.dispatch import JobRunner
from service.jobs.ends import EndWatch
from service.jobs.handovers import HandOvers
from service.jobs.leases import Leases
from service.jobs.promises import Promises
from service.jobs.records import Job
from service.jobs.workers import KnownWorkers
from service.metering.history import History
from service.metering.usage import UsageReports
from service.siblings import Siblings
from service.usecases.ending import JobParts
from service.usecases.recent_success import RecentSuccess

if TYPE_CHECKING:  # loading the client of the queue is of no use without a fleet
    from service.jobs.questions import Questions
    from service.jobs.work_queue import WorkQueue
    from service.usecases.hand_over import Gateway
    from service.usecases.take_over import Worker

Role = Literal["all", "gateway", "worker"]
"""What a process of the service does: everything, or one side of the queue between hosts."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """What connects a process with those on other hosts."""

    queue: "WorkQueue"
    handovers: HandOvers
    workers: KnownWorkers
    gateway: "Gateway | None" = None
    worker: "Worker | None" = None

    def require_reachable(self) -> None:
        """Raise `Overloaded` if no worker could be told of a job, or none is known."""
        self.queue.require_connection()
        if self.gateway is not None:
            self.gateway.require_acceptance()
        self.workers.require()

    def tell_ended(self, job: Job) -> bool:
        """Pass an ended job to the request that waits for it; return whether this process had handed it over."""
        return self.gateway is not None and self.gateway.tell(job)


class Services(JobParts, frozen=True, kw_only=True):
    """All capabilities: those that running a job needs, and the others."""

    clock: DatabaseClock
    database: Database
    authenticator: Authenticator
    gateway: TrustedGateway
    idempotency: IdempotencyKeys
    history: History
    usage: UsageReports
    leases: Leases
    offer: Offer
    promises: Promises
    ends: EndWatch
    most_wait_seconds: float
    runner: JobRunner
    intake: IntakeLimits
    siblings: Siblings
    fleet: Fleet | None = None
    asked: "Questions | None" = None
    """Asks workers for what takes GDAL or PROJ; None in processes that have both."""
    database_works: RecentSuccess = msgspec.field(default_factory=RecentSuccess)
    storage_works: RecentSuccess = msgspec.field(default_factory=RecentSuccess)
    objects_work: RecentSuccess = msgspec.field(default_factory=partial(RecentSuccess, 30.0))

    @property
    def runners(self) -> tuple[JobRunner, ...]:
        """What runs the jobs that this process has admitted, and what runs those that it has claimed, if both exist."""
        worker = self.fleet.worker if self.fleet is not None else None
        claimed = worker.runner if worker is not None else None
        return (self.runner,) if claimed is None else (self.runner, claimed)

    @property
    def converts(self) -> bool:
        """Whether this process may convert what it admits; otherwise workers detect all again and tell what is lost."""
        return self.asked is None

    @property
    def active(self) -> frozenset[JobId]:
        """The jobs that this process holds or is admitting, whichever process admitted them."""
        return frozenset().union(*(runner.active for runner in self.runners))
