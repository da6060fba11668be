"""Periodic work of one process is due at common times."""

import asyncio
import selectors
from datetime import timedelta
from itertools import starmap

from service.cadence import until_next

SHORT = timedelta(milliseconds=20)
ROUNDS = 20


class CountingSelector(selectors.DefaultSelector):
    """Counts how often an event loop had nothing to do."""

    waits = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait."""
        self.waits += timeout is None or timeout > 0
        return super().select(timeout)


def test_tasks_share_the_times_at_which_they_are_due() -> None:
    """However late they begin, and whatever multiple of one interval theirs are."""
    selector = CountingSelector()

    async def work(number: int, times: int) -> None:
        await asyncio.sleep(SHORT.total_seconds() * number / 7)
        for _ in range(ROUNDS // times):
            await until_next(SHORT * times)

    async def all_work() -> None:
        await asyncio.gather(*starmap(work, enumerate((1, 1, 1, 2, 4))))

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(all_work())
    assert selector.waits < 2 * ROUNDS
