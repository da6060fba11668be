"""Batching: items that callers submit at the same time, or while a statement is running, go into one statement.

There is no timer, so a single caller does not wait; and the more callers there are, the less each of them costs.
There is no background task either: the first waiting caller sends the statement for all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import anyio

from service.db.faults import unavailable
from service.errors import DatabaseUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
Work: TypeAlias = Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]
"""Processes a group of items and returns one result per item, in their order."""


class _Submitted(Generic[Item, Result]):
    """A submitted item and its result."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.leads = False
        self._results: Sequence[Result] = ()
        self._error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return bool(self._results) or self._error is not None

    @property
    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def succeed(self, result: Result) -> None:
        self._results = (result,)

    def fail(self, error: Exception) -> None:
        self._error = error

    def call(self, *, leads: bool) -> None:
        self.leads = leads
        if not self.called.done():  # otherwise the caller no longer waits
            self.called.set_result(None)


def _nothing() -> None:
    pass


class Batcher(Generic[Item, Result]):
    """Processes the items of several callers together, one group at a time."""

    def __init__(self, work: Work[Item, Result], most: int, when_idle: Callable[[], object] = _nothing) -> None:
        """Pass at most `most` items at a time to `work`; call `when_idle` each time no caller is left."""
        self._work = work
        self._most = most
        self._when_idle = when_idle
        self._queued: list[_Submitted[Item, Result]] = []
        self._busy = False

    async def submit(self, item: Item) -> Result:
        """Process `item`, with those submitted at the same time if no group is running, otherwise with the next group.

        A cancelled caller withdraws its item, unless the item's group is running; other callers are not affected.

        Raises:
            DatabaseUnavailable: the database is unavailable, or it is unknown whether the group took effect.
            Exception: raised by `work` for this item alone; the rest of its group is processed without it.
        """
        pending: _Submitted[Item, Result] = _Submitted(item)
        if self._busy:
            await self._wait(pending)
        else:
            self._busy = pending.leads = True
            await self._gather()
        if pending.leads:
            await self._lead(pending)
        return pending.result

    async def _gather(self) -> None:
        """Let further callers submit items for as long as each pass of the event loop brings some.

        Otherwise the first of them would go alone, and all the others would wait for it.
        """
        known = -1
        try:
            while known < len(self._queued) < self._most - 1:
                known = len(self._queued)
                await asyncio.sleep(0)
        except BaseException:
            self._promote_next()
            raise

    async def _wait(self, pending: _Submitted[Item, Result]) -> None:
        self._queued.append(pending)
        try:
            await pending.called
        except BaseException:
            if pending in self._queued:
                self._queued.remove(pending)
            elif pending.leads:
                self._promote_next()
            raise

    async def _lead(self, leader: _Submitted[Item, Result]) -> None:
        followers = [pending for pending in self._queued[: self._most - 1] if not pending.called.done()]
        del self._queued[: self._most - 1]
        try:
            with anyio.CancelScope(shield=True) if followers else nullcontext():
                await self._do([leader, *followers])
        finally:
            for pending in followers:
                if not pending.is_done:
                    pending.fail(unavailable(InterruptedError("the statement was cancelled")))
                pending.call(leads=False)
            self._promote_next()

    def _promote_next(self) -> None:
        """Make the first waiting caller the leader of the next group."""
        while self._queued:
            pending = self._queued.pop(0)
            if not pending.called.done():
                pending.call(leads=True)
                return
        self._busy = False
        self._when_idle()

    async def _do(self, group: Sequence[_Submitted[Item, Result]]) -> None:
        try:
            results = await self._work([pending.item for pending in group])
        except DatabaseUnavailable as error:
            for pending in group:
                pending.fail(error)
        except Exception as error:  # noqa: BLE001 -- raised in the caller
            if len(group) == 1:
                group[0].fail(error)
            else:
                for pending in group:  # the group had no effect, so each item is retried alone
                    await self._do([pending])
        else:
            for pending, result in zip(group, results, strict=True):
                pending.succeed(result)


class BatcherByKey(Generic[Item, Result]):
    """A `Batcher` per key; items with different keys do not wait for each other."""

    def __init__(self, work: Work[Item, Result], most: int) -> None:
        """See `Batcher`."""
        self._work = work
        self._most = most
        self._busy: dict[Hashable, Batcher[Item, Result]] = {}

    async def submit(self, key: Hashable, item: Item) -> Result:
        """See `Batcher.submit`, among the items of `key`."""
        batcher = self._busy.get(key)
        if batcher is None:
            batcher = self._busy[key] = Batcher(self._work, self._most, partial(self._busy.pop, key))
        return await batcher.submit(item)
