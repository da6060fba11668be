"""Hands over again the jobs whose message or gateway is gone."""

from collections.abc import Collection

import anyio

from service.ids import JobId
from service.jobs.handovers import HandOvers
from service.jobs.work_queue import WorkQueue

_AT_ONCE = 200


async def hand_over_again(handovers: HandOvers, queue: WorkQueue, seconds: float, at_once: int = _AT_ONCE) -> int:
    """Hand jobs of gateways that are gone over again that no living worker and no message has; return their number.

    Looks at some, and at more while any were missing or the queue has fewer messages than there are recorded jobs, but
    begins with no more after `seconds`.

    Raises:
        QueueUnavailable: the queue is away.
    """
    end_by = anyio.current_time() + seconds
    some_are_missing = await queue.check() < await handovers.count()
    count = 0
    while True:
        page = await handovers.unclaimed(at_once)
        missing = sum([await queue.offer(message) for message in page.messages])
        handovers.turn(page)
        count += missing
        if page.last is None or not (missing or some_are_missing) or anyio.current_time() > end_by:
            return count


async def hand_over_dropped(handovers: HandOvers, queue: WorkQueue, known: Collection[JobId]) -> int:
    """Hand recorded jobs of this process over again that it does not wait for any more; return their number.

    Raises:
        QueueUnavailable: the queue is away.
    """
    return sum([await queue.offer(message) for message in await handovers.dropped(known, _AT_ONCE)])
