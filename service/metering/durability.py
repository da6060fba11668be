"""Tracks which admissions and claims are known to be durable (architecture, decision 3)."""

from collections.abc import Collection, Iterable
from itertools import islice
from typing import NamedTuple

from service.ids import JobId, ServerId

MOST_AT_ONCE = 256


class Held(NamedTuple):
    """A job as this process has it: by its admission, or by the claim of `worker`; without an `attempt`, in any way."""

    job_id: JobId
    attempt: int | None = None
    worker: ServerId | None = None


class DurabilityTracker:
    """The jobs of this process that have stored nothing yet. Losing an admission is safe: its job asks the database."""

    def __init__(self) -> None:
        self._unsure: dict[JobId, Held] = {}
        self._on_disk: set[JobId] = set()
        self._missed: dict[JobId, Held] = {}

    def __bool__(self) -> bool:
        return bool(self._unsure or self._on_disk)

    def add(self, held: Held, *, on_disk: bool) -> None:
        """Add a new admission or claim, which replaces what was known of the job."""
        self.take(held.job_id)
        if on_disk:
            self._on_disk.add(held.job_id)
        else:
            self._unsure[held.job_id] = held

    def unsure(self) -> list[Held]:
        """Return what the next commit may make durable, oldest first; a few hundred at most."""
        return list(islice(self._unsure.values(), MOST_AT_ONCE))

    def note(self, looked_for: Iterable[Held], found: Collection[JobId]) -> None:
        """Record which of `looked_for` are durable; the others are not asked for again before they are needed."""
        for held in looked_for:
            if self._unsure.get(held.job_id) == held:
                del self._unsure[held.job_id]
                if held.job_id in found:
                    self._on_disk.add(held.job_id)
                else:
                    self._missed[held.job_id] = held

    def take(self, job_id: JobId) -> Held | None:
        """Remove what is known of a job; return None if it is durable, and otherwise what must be."""
        if job_id in self._on_disk:
            self._on_disk.discard(job_id)
            return None
        missed = self._missed.pop(job_id, Held(job_id))
        return self._unsure.pop(job_id, missed)
