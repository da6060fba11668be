"""Several files of one request, each on its own, with the outcome of a strictly sequential run (contract 4).

Conversions of one batch overlap. That cannot change an outcome: what runs holds its reservation, so a file that is
admitted beside it would be admitted after it too. Only a refusal may be premature, while an earlier file can still fail
and give back what it holds; then the batch waits for that file and tries again.
"""

from collections.abc import Sequence

from service.errors import Limit, LimitRefusal
from service.jobs.dispatch import Submission
from service.jobs.lifecycle import ENDED
from service.metering.books import Admission
from service.usecases.accept_upload import Attempt, Order, accept_upload
from service.usecases.services import Services

SHARED: frozenset[Limit | None] = frozenset({"conversions", "data", "wallet"})
"""Limits that the files of a batch use up together: once one refuses, it refuses every later file."""


async def convert_batch(services: Services, orders: Sequence[Order]) -> list[Submission]:
    """Accept the files in their order; those that wait for nothing more are under way when this returns.

    Raises:
        Overloaded, TooManyRequests: there is no room for the whole batch now; none of it was accepted.
    """
    places = services.runner.enqueue(orders[0].account_id, len(orders))
    submissions: list[Submission] = []
    gate = _BatchGate(submissions)
    try:
        for order in orders:
            submission = await accept_upload(services, order, places.pop(), gate.admit)
            submissions.append(submission)
    finally:
        for place in places:
            services.pool.release(place)
    return submissions


class _BatchGate:
    """Admits the next file of a batch as if all before it had ended."""

    def __init__(self, earlier: Sequence[Submission]) -> None:
        self._earlier = earlier
        self._final: LimitRefusal | None = None

    async def admit(self, attempt: Attempt) -> Admission:
        while self._final is None:
            running = next((one for one in self._earlier if one.job.status not in ENDED), None)
            try:
                return await attempt()
            except LimitRefusal as refusal:
                if refusal.limit not in SHARED:
                    raise
                if running is None:
                    self._final = refusal
            if running is not None:
                await running.outcome()
        raise self._final
