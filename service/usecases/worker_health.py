"""Decides whether a worker takes jobs: not while its own store, database or disk fails; those of others may work."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
import structlog

from service.errors import DatabaseUnavailable, NoRoom, ObjectMissing, StorageUnavailable
from service.jobs.leases import Leases
from service.storage.observed import observed
from service.telemetry import events
from service.usecases.ending import JobParts

_log = structlog.get_logger()

MOST_FAILURES = 3
"""The number of failures in a row after which a worker takes no jobs until a probe succeeds."""
PAUSE_SECONDS = 5.0
"""The pause before the first probe; each further failure adds the same again."""
LONGEST_PAUSE_SECONDS = 60.0
_PROBE = b"geomill"
_MEANS = (StorageUnavailable, DatabaseUnavailable, NoRoom, OSError)


class WorkerHealth:
    """Counts failures of what one worker works with; `probe` tries all of it and raises if something fails.

    `tell` tells gateways that the worker takes jobs again; if it fails, the next heartbeat does.
    """

    def __init__(self, probe: Callable[[], Awaitable[None]], tell: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe
        self._tell = tell
        self._failures = 0
        self._unfit = anyio.Event()

    @property
    def is_fit(self) -> bool:
        """Whether to take jobs."""
        return not self._unfit.is_set()

    def note_success(self) -> None:
        """Note that a job has ended, whatever its outcome; earlier failures no longer count."""
        self._failures = 0

    def note_failure(self, error: BaseException) -> None:
        """Note why a job could not be run here, if that has to do with this host."""
        if isinstance(error, ObjectMissing) or not any(isinstance(one, _MEANS) for one in (error, error.__cause__)):
            return
        self._failures += 1
        if self._failures >= MOST_FAILURES and self.is_fit:
            _log.warning(events.WORKER_PAUSED, failures=self._failures, reason=type(error).__name__)
            self._unfit.set()

    async def recover(self) -> None:
        """Probe after each series of failures, forever; the pause grows with the probes that fail."""
        while True:
            await self._unfit.wait()
            await anyio.sleep(min(PAUSE_SECONDS * max(1, 1 + self._failures - MOST_FAILURES), LONGEST_PAUSE_SECONDS))
            if await self._succeeds():
                self._failures = 0
                self._unfit = anyio.Event()
                _log.info(events.WORKER_RESUMED)
                with suppress(DatabaseUnavailable):
                    await self._tell()
            else:
                self._failures += 1

    async def _succeeds(self) -> bool:
        try:
            await self._probe()
        except Exception as error:  # noqa: BLE001 -- whatever it is, the next probe may succeed
            _log.warning(events.WORKER_PAUSED, failures=self._failures, reason=type(error).__name__)
            return False
        return True


async def probe_means(parts: JobParts, leases: Leases) -> None:
    """Try what a worker works with: its database, its work directory, and its rights to store and read objects.

    Raises:
        GeomillError, OSError: one of them fails.
    """
    await leases.beat()
    directory = parts.work_area.new_directory()
    try:
        await parts.work_area.run_blocking(partial((directory / "probe").write_bytes, _PROBE))
    finally:
        await parts.work_area.remove(directory)
    with observed("check"):
        await parts.own_store.keep()
        await parts.storage.check_objects()
