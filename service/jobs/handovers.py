"""The database's record of jobs that were handed over to workers, which survives the gateway and the queue."""

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.ids import AccountId, JobId, ServerId
from service.jobs.handover import LARGE_BYTES, Message, lane_of

_SQL = load("jobs")
_FIRST = UUID(int=0)
_LAST_JOBS = 1000
"""How many ended jobs show how long conversions take."""


class Page(msgspec.Struct, frozen=True):
    """Some recorded handovers, in the order of their jobs; `last` is the job that others may follow."""

    messages: list[Message]
    last: JobId | None


class Backlog(msgspec.Struct, frozen=True):
    """What waits for the workers of a whole fleet: the signal to start more of them."""

    jobs: int
    age_seconds: float
    """How long the first of these jobs has waited since its admission."""
    converter_seconds: float
    """How long one converter would take for all of them, as long as recent conversions took."""


class HandOvers:
    """The hand-overs of all gateways in one database; `gateway` is this process."""

    def __init__(self, database: Database, gateway: ServerId, lease: timedelta) -> None:
        self._database = database
        self._lease = lease
        self._after = _FIRST
        self.gateway = gateway

    async def record_input(self, job_id: JobId, key: str) -> bool:
        """Record the key of an input that is about to be stored; return False if the job is not open."""
        return await self._database.fetchval(_SQL["record_input"], job_id, key) is not None

    async def record(self, message: Message) -> bool:
        """Record the message to workers; return False if the job is not open."""
        return await self._database.fetchval(_SQL["hand_over"], message.job_id, message.data) is not None

    async def count(self) -> int:
        """Return how many open jobs were handed over."""
        return int(await self._database.fetchval(_SQL["count_handed_over"]))

    async def backlog(self) -> Backlog:
        """Return what waits for workers in the whole fleet."""
        row = await self._database.fetchrow(_SQL["backlog"], self._lease, LARGE_BYTES, _LAST_JOBS)
        return msgspec.convert(dict(row or {}), Backlog)

    async def unclaimed(self, at_once: int) -> Page:
        """Return the next recorded handovers of gateways that are gone, which no living worker has.

        They are the same ones until `turn` is called. A living gateway hands its jobs over itself, each in its turn.
        """
        return await self._page(self._after, at_once)

    async def all_unclaimed(self, at_once: int) -> AsyncIterator[Message]:
        """Return all recorded handovers of gateways that are gone, which no living worker has."""
        after: UUID | None = _FIRST
        while after is not None:
            page = await self._page(after, at_once)
            for message in page.messages:
                yield message
            after = page.last

    async def _page(self, after: UUID, at_once: int) -> Page:
        rows = await self._database.fetch(_SQL["handed_over"], after, self._lease, at_once)
        return Page([_message(dict(row)) for row in rows], rows[-1]["id"] if len(rows) == at_once else None)

    async def dropped(self, known: Collection[JobId], at_once: int) -> list[Message]:
        """Return some recorded handovers of this process that no living worker has, except those that are `known`."""
        rows = await self._database.fetch(_SQL["dropped"], self.gateway, list(known), self._lease, at_once)
        return [_message(dict(row)) for row in rows]

    def turn(self, page: Page) -> None:
        """Continue after a page, or start over after the last one."""
        self._after = page.last or _FIRST


def _message(row: Mapping[str, Any]) -> Message:
    """Return the message of a job as it was recorded, whether or not this process understands it."""
    lane = lane_of(AccountId(row["account_id"]), row["created_at"].date(), row["input_size_bytes"])
    return Message(job_id=JobId(row["id"]), lane=lane, data=row["handover"])
