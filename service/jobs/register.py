"""The jobs in the database: starts, refusals and queries. Metering charges them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from service.clock import Clock
from service.db.pool import Database
from service.db.queries import load
from service.errors import JobNotFound, ObjectsLeft
from service.ids import AccountId, JobId
from service.jobs.lifecycle import ENDED, Situation
from service.jobs.records import Job, job_from

_SQL = load("jobs")

Remove = Callable[[list[str]], Awaitable[None]]
"""Removes objects from storage by their keys."""
_SHARES = 20
"""Shares are recorded in so many steps, so that a long conversion costs few statements."""


class JobRegister:
    """The jobs of all accounts in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._begun: dict[JobId, tuple[int, Callable[[], Situation]]] = {}
        self._shown: dict[JobId, Situation | None] = {}
        self._has_begun = asyncio.Event()

    def begin(self, job: Job, situation: Callable[[], Situation]) -> None:
        """Note that a converter has started on this attempt; `situation` says what happens to it at any time."""
        self._begun[job.id] = job.attempt, situation
        self._has_begun.set()

    async def record_begin(self, job: Job) -> bool:
        """Record that a converter is about to begin on this attempt: if the process dies now, it may be the cause.

        Returns False if there is nothing to convert: the job has ended, or another attempt has it.
        """
        return await self._database.fetchval(_SQL["record_begin"], job.id, job.attempt) is not None

    async def count_failure(self, job: Job) -> int:
        """Count an attempt that a fault of the service has ended; return how many there are, 0 if the job is lost."""
        return await self._database.fetchval(_SQL["count_failure"], job.id, job.attempt) or 0

    async def is_open(self, job: Job) -> bool:
        """Whether the job has not ended and no later attempt has it."""
        return any(found.attempt == job.attempt and found.status not in ENDED for found in await self.of_any([job.id]))

    async def was_cancelled(self, job_id: JobId, cancellation: str) -> bool:
        """Whether it is this cancellation that has ended the job."""
        return await self._database.fetchval(_SQL["was_cancelled"], job_id, cancellation) is not None

    def end(self, job_id: JobId) -> None:
        """Note that this process no longer works on this job."""
        self._begun.pop(job_id, None)
        self._shown.pop(job_id, None)

    async def any_begun(self) -> None:
        """Wait until a converter works on a job of this process."""
        while not self._begun:
            self._has_begun.clear()
            await self._has_begun.wait()

    async def show_begun(self) -> None:
        """Mark jobs as Processing that have had a converter since the previous call, and show what happens to them.

        Called periodically, so that a very short conversion costs no extra statement.
        """
        now = {job_id: _rounded(situation()) for job_id, (_, situation) in self._begun.items()}
        due = {job_id: new for job_id, new in now.items() if self._shown.get(job_id, new) != new}
        if due:
            stages, shares = zip(*due.values(), strict=True)
            attempts = [self._begun[job_id][0] for job_id in due]
            await self._database.execute(_SQL["show_processing"], list(due), stages, shares, attempts)
        # A job that has begun since the previous call is due at the next one.
        self._shown = {job_id: due.get(job_id, self._shown.get(job_id)) for job_id in now if job_id in self._begun}

    async def insert_failed(
        self, job: Job, account_id: AccountId, *, key: str | None = None, interrupted: bool = False
    ) -> Job | None:
        """Record a failed job that holds no reservation; the record is durable when this returns.

        Returns None if the job already exists, or if its `key` no longer names it.
        """
        ended_at = await self._database.fetchval(
            _SQL["insert_failed"],
            job.id,
            account_id,
            job.original_file_name,
            job.input_format,
            job.output_format,
            job.input_size_bytes,
            job.error_message,
            job.details.encode(),
            key,
            interrupted,
        )
        return msgspec.structs.replace(job, created_at=ended_at, completed_at=ended_at) if ended_at else None

    async def find(self, job_id: JobId, account_id: AccountId) -> Job:
        """Return one job of the account.

        Raises:
            JobNotFound: there is no such job, or it is another account's.
        """
        row = await self._database.fetchrow(_SQL["find"], job_id, account_id)
        if row is None:
            raise JobNotFound(f"This account has no job {job_id}.")
        return job_from(dict(row))

    async def find_all(self, job_ids: Sequence[JobId], account_id: AccountId) -> list[Job]:
        """Return those of the account's jobs that exist, in any order."""
        return await self._jobs("find_all", job_ids, account_id)

    async def of_any(self, job_ids: Sequence[JobId]) -> list[Job]:
        """Return those of these jobs that exist, of any account."""
        return await self._jobs("of_any", job_ids)

    async def ended(self, job_ids: Iterable[JobId]) -> list[Job]:
        """Return the jobs among these that have ended, of any account."""
        return await self._jobs("ended", list(job_ids))

    async def recent(self, account_id: AccountId, limit: int) -> list[Job]:
        """Return the account's newest jobs, newest first."""
        return await self._jobs("recent", account_id, limit)

    async def preview_key(self, job_id: JobId, account_id: AccountId, new_key: str) -> str | None:
        """Return the key of the preview of a job's result: the recorded one, or `new_key`, which is recorded.

        Returns None if the result is no longer kept.
        """
        key: str | None = await self._database.fetchval(_SQL["preview_key"], job_id, account_id, new_key)
        return key

    async def dispose(self, remove: Remove, grace: timedelta, earliest: Clock, at_once: int) -> int:
        """Remove some outputs of failed jobs and those expired for `grace`, and mark their jobs; return how many.

        Only what is expired by `earliest`, too. `remove` may receive keys that no longer exist. No transaction waits
        for it.
        """
        return await self._clear(remove, "disposable", "mark_disposed", grace, earliest(), at_once)

    async def open_of(self, account_id: AccountId) -> list[Job]:
        """Return the open jobs of an account."""
        return await self._jobs("open_of", account_id)

    async def kept_of(self, account_id: AccountId, after: UUID, at_most: int) -> list[Job]:
        """Return the next jobs of an account, in the order of their ids, that have an output in the store."""
        return await self._jobs("kept_of", account_id, after, at_most)

    async def anonymise(self, account_id: AccountId, reason: str) -> None:
        """Take the names of files, warnings and errors from the ended jobs of an account; failed ones get `reason`."""
        await self._database.execute(_SQL["anonymise"], account_id, reason)

    async def erase(self, job_id: JobId, object_key: str, remove: Remove) -> None:
        """Remove the output of a job that completed and its preview, before the end of their retention.

        The job is Expired from the first statement on, and gets no preview any more: if `remove` fails, the sweep
        removes both.
        """
        preview_key = await self._database.fetchval(_SQL["expire"], job_id)
        await remove([object_key] if preview_key is None else [object_key, preview_key])
        await self._database.execute(_SQL["mark_disposed"], [job_id])

    async def remove_inputs(self, remove: Remove, at_once: int) -> int:
        """Remove some inputs of jobs that were handed over and have ended; return how many."""
        return await self._clear(remove, "inputs_left", "forget_inputs", at_once, key="input_key")

    async def remove_late(self, remove: Remove, at_once: int) -> int:
        """Remove objects that may have appeared late under keys abandoned by their jobs; return how many keys."""
        return await self._clear(remove, "late_objects", "mark_late", at_once, row_id="object_key")

    async def _jobs(self, statement: str, *arguments: object) -> list[Job]:
        return [job_from(dict(row)) for row in await self._database.fetch(_SQL[statement], *arguments)]

    async def _clear(
        self, remove: Remove, find: str, mark: str, *arguments: object, key: str = "object_key", row_id: str = "id"
    ) -> int:
        """Remove the objects that the statement `find` lists, and `mark` the rows of those that are gone.

        Returns how many these were.

        Raises:
            StorageUnavailable: none of them could be removed.
        """
        rows = await self._database.fetch(_SQL[find], *arguments)
        if not rows:
            return 0
        try:
            await remove([row[key] for row in rows])
        except ObjectsLeft as left:
            rows = [row for row in rows if row[key] not in left.reasons]
            if not rows:
                raise
        await self._database.execute(_SQL[mark], [row[row_id] for row in rows])
        return len(rows)


def _rounded(situation: Situation) -> Situation:
    share = situation.share
    return situation if share is None else situation._replace(share=int(share * _SHARES) / _SHARES)
