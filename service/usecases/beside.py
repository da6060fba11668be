"""Two things at once, of which the second begins in the midst of the first."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio


@asynccontextmanager
async def beside(work: Callable[[], Awaitable[None]]) -> AsyncIterator[Callable[[], object]]:
    """Yield what starts `work` beside the block; the block's end waits for it.

    A failure of `work` ends the block and is raised in its stead; one of the block lets `work` come to its end first.
    """
    failures: list[Exception] = []

    async def run() -> None:
        try:
            await work()
        except Exception as failure:  # noqa: BLE001 -- raised below, as itself
            failures.insert(0, failure)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        try:
            yield partial(tasks.start_soon, run)
        except Exception as failure:  # noqa: BLE001 -- raised below, as itself
            failures.append(failure)
    if failures:
        raise failures[0]
