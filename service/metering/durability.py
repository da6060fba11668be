"""Tracks which admissions and claims are known to be durable (architecture, decision 3)."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

import anyio

from service.ids import JobId

MOST_AT_ONCE = 256


class DurabilityTracker:
    """The attempts of this process that have stored nothing yet. Losing one is safe: its job asks the database."""

    def __init__(self) -> None:
        self._unsure: dict[JobId, int] = {}
        self._on_disk: set[JobId] = set()
        self._committed_with: dict[JobId, anyio.Event] = {}

    def __bool__(self) -> bool:
        return bool(self._unsure or self._on_disk)

    def add(self, job_id: JobId, attempt: int, *, on_disk: bool) -> None:
        """Add a new attempt."""
        if on_disk:
            self._on_disk.add(job_id)
        else:
            self._unsure[job_id] = attempt

    @contextmanager
    def committing(self) -> Iterator[list[tuple[JobId, int]]]:
        """Give attempts that the commit in the block may make durable, oldest first; a few hundred at most."""
        attempts, over = list(islice(self._unsure.items(), MOST_AT_ONCE)), anyio.Event()
        self._committed_with = dict.fromkeys((job_id for job_id, _ in attempts), over)
        try:
            yield attempts
        finally:
            self._committed_with = {}
            over.set()

    async def await_commit(self, job_id: JobId) -> None:
        """Wait while a commit is under way that may make the attempt of this job durable."""
        if commit := self._committed_with.get(job_id):
            await commit.wait()

    def note(self, looked_for: Iterable[tuple[JobId, int]], found: Collection[JobId]) -> None:
        """Record which of the attempts in `looked_for` are durable."""
        for job_id, attempt in looked_for:
            if self._unsure.get(job_id) == attempt:
                del self._unsure[job_id]
                if job_id in found:
                    self._on_disk.add(job_id)

    def take(self, job_id: JobId) -> bool:
        """Remove an attempt; return whether it is known to be durable."""
        self._unsure.pop(job_id, None)
        is_sure = job_id in self._on_disk
        self._on_disk.discard(job_id)
        return is_sure
