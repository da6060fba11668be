"""Which process holds which jobs, and which jobs nobody holds any more.

Every serving process says every few seconds that it is alive. A job whose process has been silent for longer than the
lease is abandoned, and so is an open job that its own living process knows nothing of; `usecases.upkeep` ends both.
Both ends of a lease are told by the clock of the database.
"""

from datetime import timedelta

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.ids import JobId, ServerId

_SQL = load("jobs")

BEATS_PER_LEASE = 6
_AT_ONCE = 500


class HeldJob(msgspec.Struct, frozen=True):
    """An open job of one process, and where its output may lie."""

    id: JobId
    attempt: int
    object_key: str | None


class Leases:
    """The lease of one serving process on its jobs."""

    def __init__(self, database: Database, server_id: ServerId, lease: timedelta) -> None:
        """Take a process for dead that has been silent for `lease`."""
        self._database = database
        self._lease = lease
        self.server_id = server_id

    @property
    def heartbeat(self) -> timedelta:
        """How often to say that this process is alive."""
        return self._lease / BEATS_PER_LEASE

    async def beat(self) -> None:
        """Say that this process is alive."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["heartbeat"], self.server_id)

    async def give_up(self) -> None:
        """Say that this process ends; what it still holds is abandoned at once."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["unregister_server"], self.server_id)

    async def end_abandoned(self, error_message: str) -> int:
        """Fail open jobs whose process is gone or silent for longer than the lease; return how many.

        Some hundreds at the most. Nothing is charged; the sweep removes their outputs.
        """
        async with self._database.connection() as connection:
            return len(await connection.fetch(_SQL["end_abandoned"], self._lease, _AT_ONCE, error_message))

    async def lead(self, chore: str) -> bool:
        """Whether this process is to do a chore that one process is enough for, from now on for one lease."""
        async with self._database.connection() as connection:
            return await connection.fetchval(_SQL["lead"], chore, self.server_id, self._lease) is not None

    async def held(self) -> list[HeldJob]:
        """Return the open jobs that the database believes this process to work on."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL["held"], self.server_id)
        return [HeldJob(row["id"], row["attempt"], row["object_key"]) for row in rows]

    async def forget_silent(self) -> None:
        """Forget processes that are silent for longer than the lease and hold nothing."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["forget_servers"], self._lease)
