"""Runs jobs here while there is room for them, and hands the others over to the processes of a fleet."""

from collections.abc import Callable
from pathlib import Path

from sandbox.pool import QueueTicket
from service.jobs.dispatch import RunJob
from service.jobs.records import Job
from service.jobs.spec import JobSpec

FULL_AT = 2
"""Jobs per converter that a process runs or has waiting, before it hands over further ones."""


class Overflow:
    """Decides where each job runs that this process has admitted; a `RunJob`.

    While a job that was handed over has not ended, later ones are handed over as well, so that none overtakes it: this
    process takes jobs from the queue, too, once it has a free converter.
    """

    def __init__(
        self, run_here: RunJob, hand_over: RunJob, *, most_here: int, is_reachable: Callable[[], bool]
    ) -> None:
        self._run_here = run_here
        self._hand_over = hand_over
        self._most_here = most_here
        self._is_reachable = is_reachable
        self._here = 0
        self._elsewhere = 0

    async def __call__(self, spec: JobSpec, directory: Path, ticket: QueueTicket, keep: Callable[[], None]) -> Job:
        """Run a job; see `RunJob`."""
        if (self._elsewhere or self._here >= self._most_here) and self._is_reachable():
            self._elsewhere += 1
            try:
                return await self._hand_over(spec, directory, ticket, keep)
            finally:
                self._elsewhere -= 1
        self._here += 1
        try:
            return await self._run_here(spec, directory, ticket, keep)
        finally:
            self._here -= 1
