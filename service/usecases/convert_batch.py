"""Several files of one request, each on its own, with the outcome of a strictly sequential run (interface 6).

Conversions of one batch overlap. That cannot change an outcome: what runs holds its reservation, so a file that is
admitted beside it would be admitted after it too. Only a refusal may be premature, while an earlier file can still fail
and give back what it holds; then the batch waits for that file and tries again.
"""

from collections.abc import Sequence

from service.errors import Limit, LimitRefusal
from service.jobs.dispatch import Submission, ended
from service.jobs.lifecycle import ENDED
from service.jobs.records import Job
from service.metering.ledger import Admission
from service.usecases.accept_upload import accept_upload, refuse_upload
from service.usecases.services import Services
from service.usecases.steps.accepting import Attempt, ConversionOrder

SHARED: frozenset[Limit | None] = frozenset({"conversions", "data", "wallet"})
"""Limits that the files of a batch use up together: once one refuses, it refuses every later file."""

AS_BEFORE = "This file was not converted because an earlier one of the batch met a limit: "


async def convert_batch(services: Services, files: Sequence[ConversionOrder | Job]) -> list[Submission]:
    """Accept the files in their order; those that wait for nothing more are under way when this returns.

    A file that an earlier request has brought to its end comes as its job, and stays as it is.

    Raises:
        Overloaded, TooManyRequests: there is no room for the whole batch now; none of it was accepted.
    """
    orders = [file for file in files if isinstance(file, ConversionOrder)]
    tickets = services.runner.enqueue(orders[0].account_id, len(orders)) if orders else []
    submissions: list[Submission] = []
    gate = _BatchGate(submissions)
    try:
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


class _BatchGate:
    """Admits the next file of a batch as if all before it had ended."""

    def __init__(self, earlier: Sequence[Submission]) -> None:
        self._earlier = earlier
        self.refusal: LimitRefusal | None = None
        """What refuses every later file, whatever is in it."""

    def remember(self, job: Job) -> None:
        """Go on after a file of an earlier request as after one of this."""
        if job.details.limit in SHARED:
            self._refuse_all_later(job.error_message or "", job.details.limit)

    async def admit(self, attempt: Attempt) -> Admission:
        """Admit the next file, or refuse it because no earlier one can lift its refusal any more."""
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
        told = message.removeprefix(AS_BEFORE)
        self.refusal = LimitRefusal(f"{AS_BEFORE}{told}", limit=limit, needs_upgrade=True)
