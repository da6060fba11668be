"""Tracks which admissions and claims are known to be durable (architecture, decision 3)."""

from collections.abc import Collection, Iterable
from itertools import islice

from service.ids import JobId

MOST_AT_ONCE = 256


class DurabilityTracker:
    """The attempts of this process that have stored nothing yet. Losing one is safe: its job asks the database."""

    def __init__(self) -> None:
        self._unsure: dict[JobId, int] = {}
        self._on_disk: set[JobId] = set()

    def __bool__(self) -> bool:
        return bool(self._unsure or self._on_disk)

    def add(self, job_id: JobId, attempt: int, *, on_disk: bool) -> None:
        """Add a new attempt."""
        if on_disk:
            self._on_disk.add(job_id)
        else:
            self._unsure[job_id] = attempt

    def unsure(self) -> list[tuple[JobId, int]]:
        """Return attempts that the next commit may make durable, oldest first; a few hundred at most."""
        return list(islice(self._unsure.items(), MOST_AT_ONCE))

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
