"""Many callers, one statement: what is asked while a statement is under way goes together into the next one.

There is no timer, so whoever comes alone waits for nobody; and the more callers there are, the less each of them costs.
There is no task either: the first of those who wait sends the statement for all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import anyio

from service.db.connection import unavailable
from service.errors import DatabaseUnavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Work: TypeAlias = Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]
"""Answers each item of a group, in their order."""


class _Pending(Generic[Item, Answer]):
    """An item on its way, and what has become of it."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.leads = False
        self._answers: Sequence[Answer] = ()
        self._error: Exception | None = None

    @property
    def is_answered(self) -> bool:
        return bool(self._answers) or self._error is not None

    @property
    def answer(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def succeed(self, answer: Answer) -> None:
        self._answers = (answer,)

    def fail(self, error: Exception) -> None:
        self._error = error

    def call(self, *, leads: bool) -> None:
        self.leads = leads
        if not self.called.done():  # else nobody waits any more
            self.called.set_result(None)


def _nothing() -> None:
    pass


class Batcher(Generic[Item, Answer]):
    """Does work for the items of several callers at once, one group at a time."""

    def __init__(self, work: Work[Item, Answer], most: int, when_idle: Callable[[], object] = _nothing) -> None:
        """Give `work` at most `most` items at a time; tell `when_idle` each time that nobody waits any more."""
        self._work = work
        self._most = most
        self._when_idle = when_idle
        self._queued: list[_Pending[Item, Answer]] = []
        self._busy = False

    async def submit(self, item: Item) -> Answer:
        """Have `item` done, at once if nothing is under way, else with the next group.

        A caller that is cancelled takes its item back, unless the item's group is under way; that concerns nobody else.

        Raises:
            DatabaseUnavailable: the database is away, or nobody knows whether the group took effect.
            Exception: what `work` raises of this item alone; the others of its group are done without it.
        """
        if not self._busy:
            return await self._do_alone(item)
        asked: _Pending[Item, Answer] = _Pending(item)
        await self._wait(asked)
        if asked.leads:
            await self._lead(asked)
        return asked.answer

    async def _do_alone(self, item: Item) -> Answer:
        self._busy = True
        try:
            return (await self._work((item,)))[0]
        finally:
            self._promote_next()

    async def _wait(self, asked: _Pending[Item, Answer]) -> None:
        self._queued.append(asked)
        try:
            await asked.called
        except BaseException:
            if asked in self._queued:
                self._queued.remove(asked)
            elif asked.leads:
                self._promote_next()
            raise

    async def _lead(self, leader: _Pending[Item, Answer]) -> None:
        followers = [asked for asked in self._queued[: self._most - 1] if not asked.called.done()]
        del self._queued[: self._most - 1]
        try:
            with anyio.CancelScope(shield=bool(followers)):
                await self._do([leader, *followers])
        finally:
            for asked in followers:
                if not asked.is_answered:
                    asked.fail(unavailable(InterruptedError("the statement was given up")))
                asked.call(leads=False)
            self._promote_next()

    def _promote_next(self) -> None:
        """Let the first of those who wait lead the next group."""
        while self._queued:
            asked = self._queued.pop(0)
            if not asked.called.done():
                asked.call(leads=True)
                return
        self._busy = False
        self._when_idle()

    async def _do(self, group: Sequence[_Pending[Item, Answer]]) -> None:
        try:
            answers = await self._work([asked.item for asked in group])
        except DatabaseUnavailable as error:
            for asked in group:
                asked.fail(error)
        except Exception as error:  # noqa: BLE001 -- raised where the answer is waited for
            if len(group) == 1:
                group[0].fail(error)
            else:
                for asked in group:  # nothing of it took effect, so only those at fault will fail
                    await self._do([asked])
        else:
            for asked, answer in zip(group, answers, strict=True):
                asked.succeed(answer)


class BatcherByKey(Generic[Item, Answer]):
    """Batcher of items with the same key; those of different keys do not wait for each other."""

    def __init__(self, work: Work[Item, Answer], most: int) -> None:
        """As `Batcher`."""
        self._work = work
        self._most = most
        self._busy: dict[Hashable, Batcher[Item, Answer]] = {}

    async def submit(self, key: Hashable, item: Item) -> Answer:
        """As `Batcher.do`, among the items of `key`."""
        batcher = self._busy.get(key)
        if batcher is None:
            batcher = self._busy[key] = Batcher(self._work, self._most, partial(self._busy.pop, key))
        return await batcher.submit(item)
