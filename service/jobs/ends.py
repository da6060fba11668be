"""Wakes callers that wait for the end of a job, whichever process runs it.

A job of this process wakes them at its end. Jobs of other processes are looked up together, by a periodic task, so that
a waiting caller costs no statement of its own.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from service.ids import AccountId, JobId


class EndWatch:
    """The callers of this process that wait for jobs.

    Args:
        most: how many callers may wait at a time.
        most_each: how many of them may be of one account.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._waiting: dict[JobId, set[anyio.Event]] = {}
        self._by_account: Counter[AccountId] = Counter()
        self._is_stopping = False

    @property
    def watched(self) -> frozenset[JobId]:
        """The jobs that callers wait for."""
        return frozenset(self._waiting)

    @contextmanager
    def watching(self, job_id: JobId, account_id: AccountId) -> Iterator[anyio.Event]:
        """Yield an event that is set once the job may have ended; it is set already if the caller may not wait."""
        event = anyio.Event()
        if self._is_stopping or not self._has_place(account_id):
            event.set()
            yield event
            return
        self._by_account[account_id] += 1
        self._waiting.setdefault(job_id, set()).add(event)
        try:
            yield event
        finally:
            self._leave(job_id, account_id, event)

    def wake(self, job_id: JobId) -> None:
        """Wake those who wait for this job."""
        for event in self._waiting.get(job_id, ()):
            event.set()

    def stop(self) -> None:
        """Wake all waiters, and make later calls return at once."""
        self._is_stopping = True
        for job_id in self._waiting:
            self.wake(job_id)

    def _has_place(self, account_id: AccountId) -> bool:
        return self._by_account.total() < self._most and self._by_account[account_id] < self._most_each

    def _leave(self, job_id: JobId, account_id: AccountId, event: anyio.Event) -> None:
        self._waiting[job_id].discard(event)
        if not self._waiting[job_id]:
            del self._waiting[job_id]
        self._by_account[account_id] -= 1
        if not self._by_account[account_id]:
            del self._by_account[account_id]
