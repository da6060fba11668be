"""Where accepted jobs run: submit a job, get its outcome.

`LocalRunner` runs them in this process's converters. A ticket is plain data, so that a queue with converters on other
hosts can take its place: nothing in it leans on the request or on this process's memory.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import TracebackType

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from sandbox.pool import Pool, PoolFull, Seat, Slot
from service.errors import Overloaded, TooManyRequests
from service.formats.detect import Source
from service.formats.format import Format
from service.formats.request import ConversionRequest
from service.identifiers import AccountId, JobId
from service.jobs.records import Job
from service.telemetry import events

_log = structlog.get_logger()

RETRY_AFTER_SECONDS = 2


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted job: everything that running it needs. `directory` is its own, and is removed at its end."""

    job: Job
    account_id: AccountId
    source: Source
    target: Format
    request: ConversionRequest
    directory: Path
    retention_hours: int


class Place:
    """A seat in the pool that counts for its account, from now until it is left: entered once, or given up."""

    def __init__(self, seat: Seat, leave: Callable[[], None]) -> None:
        self._seat = seat
        self._leave = leave
        self._left = False

    async def __aenter__(self) -> Slot:
        try:
            return await self._seat.__aenter__()
        except BaseException:
            self.give_up()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()

    def give_up(self) -> None:
        """Leave the place to others; doing it twice changes nothing."""
        self._seat.give_up()
        if not self._left:
            self._left = True
            self._leave()


RunJob = Callable[[Ticket, Place], Awaitable[Job]]
"""Runs a job to its end and returns it ended; takes its place in the pool and gives it back."""


class Submission:
    """A job on its way; anybody may wait for its outcome, and nobody needs to."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._ended = anyio.Event()
        self._lost = False

    def finish(self, job: Job) -> None:
        """Tell everybody who waits how the job ended."""
        self.job = job
        self._ended.set()

    def lose_unless_finished(self) -> None:
        """Tell everybody who still waits that this process will not see the end."""
        if not self._ended.is_set():
            self._lost = True
            self._ended.set()

    async def outcome(self) -> Job:
        """Wait for the ended job.

        Raises:
            Overloaded: this process stops before the job has ended; its record will tell.
        """
        await self._ended.wait()
        if self._lost:
            message = f"The service is being restarted. The job {self.job.id} tells how the conversion ended."
            raise Overloaded(message, RETRY_AFTER_SECONDS)
        return self.job


class LocalRunner:
    """Runs jobs in this process: bounded, fair between accounts, drained before the end."""

    def __init__(self, pool: Pool, run_job: RunJob, tasks: TaskGroup, *, max_per_account: int) -> None:
        self._pool = pool
        self._run_job = run_job
        self._tasks = tasks
        self.max_per_account = max_per_account
        self._per_account: Counter[AccountId] = Counter()
        self._submissions: dict[JobId, Submission] = {}
        self._idle: anyio.Event | None = None

    @property
    def active(self) -> frozenset[JobId]:
        """The jobs that this process holds now."""
        return frozenset(self._submissions)

    @property
    def draining(self) -> bool:
        """Whether no more jobs are taken."""
        return self._idle is not None

    def places_left(self, account_id: AccountId) -> int:
        """How many more files of the account may be under way now."""
        return max(0, self.max_per_account - self._per_account[account_id])

    def take_places(self, account_id: AccountId, files: int = 1) -> list[Place]:
        """Take places for the files of one request, all or none; give each up, or submit a job with it.

        A request of more files than an account may have under way is taken when it has no others, or it never would be.

        Raises:
            TooManyRequests: the account has its share of the waiting room already.
            Overloaded: the waiting room is full, or the service is being stopped.
        """
        if self.draining:
            message = "The service is being restarted. Send the request again."
            raise Overloaded(message, RETRY_AFTER_SECONDS)
        under_way = self._per_account[account_id]
        if under_way and under_way + files > self.max_per_account:
            message = (
                f"This account has {under_way} files under way, and may have {self.max_per_account}. "
                "Send the request again when some have ended."
            )
            raise TooManyRequests(message, RETRY_AFTER_SECONDS)
        places: list[Place] = []
        try:
            for _ in range(files):
                places.append(self._take_place(account_id))  # noqa: PERF401 -- those taken must be known below
        except PoolFull:
            for place in places:
                place.give_up()
            message = "The service has more conversions waiting than it can take. Send the request again later."
            raise Overloaded(message, RETRY_AFTER_SECONDS) from None
        return places

    def _take_place(self, account_id: AccountId) -> Place:
        place = Place(self._pool.take_seat(str(account_id)), partial(self._leave_place, account_id))
        self._per_account[account_id] += 1
        return place

    def _leave_place(self, account_id: AccountId) -> None:
        self._per_account[account_id] -= 1
        if not self._per_account[account_id]:
            del self._per_account[account_id]

    def refuse_if_full(self, account_id: AccountId) -> None:
        """Refuse before a body is read that would be refused after it; raises what `take_places` raises."""
        for place in self.take_places(account_id):
            place.give_up()

    def submit(self, ticket: Ticket, place: Place) -> Submission:
        """Run an accepted job, whoever is listening."""
        submission = Submission(ticket.job)
        self._submissions[ticket.job.id] = submission
        self._tasks.start_soon(self._run, ticket, place, submission)
        return submission

    async def drain(self, seconds: float) -> None:
        """Take no more jobs and wait for those under way, `seconds` at the most."""
        self._idle = anyio.Event()
        if self._submissions:
            with anyio.move_on_after(seconds):
                await self._idle.wait()

    async def _run(self, ticket: Ticket, place: Place, submission: Submission) -> None:
        try:
            submission.finish(await self._run_job(ticket, place))
        except Exception:  # noqa: BLE001 -- one job must not end the others
            _log.exception(events.JOB_LEFT, job_id=ticket.job.id)  # recovery ends this job
        finally:
            place.give_up()
            self._forget(ticket)
            submission.lose_unless_finished()

    def _forget(self, ticket: Ticket) -> None:
        del self._submissions[ticket.job.id]
        if self._idle is not None and not self._submissions:
            self._idle.set()
