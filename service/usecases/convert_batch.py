"""Converts the files of one request with the same outcome as a strictly sequential run (interface 6).

Conversions of one batch overlap. This cannot change an outcome: a running job holds its reservation, so a file that is
admitted while it runs would also be admitted after it. Only a refusal may be premature, because an earlier file can
still fail and release its reservation; the batch then waits for that file and tries again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.errors import Limit, LimitRefusal, Overloaded
from service.jobs.dispatch import Submission, ended
from service.jobs.lifecycle import ENDED
from service.jobs.records import Job
from service.metering.ledger import Admission
from service.usecases.accept_upload import accept_upload, refuse_upload
from service.usecases.services import Services
from service.usecases.steps.accepting import Attempt, ConversionOrder

SHARED: frozenset[Limit | None] = frozenset({"conversions", "data", "wallet"})
"""Limits that the files of a batch share: once one of them refuses a file, it refuses all later files."""

AS_BEFORE = "This file was not converted because an earlier file of the batch reached a limit: "


async def convert_batch(services: Services, files: Sequence[ConversionOrder | Job]) -> list[Submission]:
    """Accept the files in order; files that need not wait for others are in progress when this returns.

    A file that an earlier request has already finished is passed as its job, and is returned unchanged.

    Raises:
        Overloaded: there is no room for the whole batch, or it broke off; the message names the jobs that it has then.
        TooManyRequests: there is no room for the whole batch; no file was accepted.
    """
    orders = [file for file in files if isinstance(file, ConversionOrder)]
    tickets = services.runner.enqueue(orders[0].account_id, len(orders)) if orders else []
    submissions: list[Submission] = []
    gate = _BatchGate(submissions)
    try:
        with naming(submissions):
            for file in files:
                if isinstance(file, Job):
                    submission = ended(file)
                    gate.remember(file)
                elif gate.refusal is not None:
                    submission = await refuse_upload(services, file, gate.refusal)
                else:
                    submission = await accept_upload(services, file, tickets.pop(), gate.admit)
                submissions.append(submission)
    finally:
        for ticket in tickets:
            services.pool.release(ticket)
    return submissions


async def outcomes(submissions: Sequence[Submission]) -> list[Job]:
    """Wait for the ended jobs of a request.

    Raises:
        Overloaded: this process will not learn how one of them ends; of several files, the message names all jobs.
    """
    with naming(submissions if len(submissions) > 1 else ()):
        return [await submission.outcome() for submission in submissions]


@contextmanager
def naming(submissions: Sequence[Submission]) -> Iterator[None]:
    """Name the jobs in an error that ends their request: a client that sends their files again is charged again."""
    try:
        yield
    except Overloaded as error:
        if not submissions:
            raise
        jobs = ", ".join(str(submission.job.id) for submission in submissions)
        message = f"{error.message} Before you send files of this batch again, query its jobs: {jobs}."
        raise Overloaded(message, error.retry_after_seconds) from error


class _BatchGate:
    """Admits the next file of a batch as if all earlier files had ended."""

    def __init__(self, earlier: Sequence[Submission]) -> None:
        self._earlier = earlier
        self.refusal: LimitRefusal | None = None
        """The refusal that applies to every later file, whatever its content."""

    def remember(self, job: Job) -> None:
        """Take a job of an earlier request into account like one of this request."""
        if job.details.limit in SHARED:
            self._refuse_all_later(job.error_message or "", job.details.limit)

    async def admit(self, attempt: Attempt) -> Admission:
        """Admit the next file, or refuse it once no earlier file can change the refusal."""
        while True:
            running = next((one for one in self._earlier if one.job.status not in ENDED), None)
            try:
                return await attempt()
            except LimitRefusal as refusal:
                if refusal.limit not in SHARED:
                    raise
                if running is None:
                    self._refuse_all_later(refusal.message, refusal.limit)
                    raise
            await running.outcome()

    def _refuse_all_later(self, message: str, limit: Limit | None) -> None:
        reason = message.removeprefix(AS_BEFORE)
        self.refusal = LimitRefusal(f"{AS_BEFORE}{reason}", limit=limit, needs_upgrade=True)
