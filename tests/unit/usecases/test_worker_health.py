"""When a worker takes no jobs."""

import anyio
import anyio.lowlevel
import pytest

from service.errors import DatabaseUnavailable, ObjectMissing, StorageUnavailable
from service.usecases import worker_health
from service.usecases.worker_health import MOST_FAILURES, WorkerHealth


async def test_a_successful_probe_ends_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as many failures as before to pause the worker again, and gateways learn at once that it has resumed."""
    monkeypatch.setattr(worker_health, "PAUSE_SECONDS", 0.0)

    told = 0

    async def probe() -> None:
        """Everything works."""

    async def tell() -> None:
        """Count what gateways are told; the database fails meanwhile."""
        nonlocal told
        told += worker.is_fit
        raise DatabaseUnavailable("away", 5)

    worker = WorkerHealth(probe, tell)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.recover)
        for _ in range(2):
            for _ in range(MOST_FAILURES - 1):
                worker.note_failure(StorageUnavailable("down", "refused"))
                assert worker.is_fit
            worker.note_failure(StorageUnavailable("down", "refused"))
            assert not worker.is_fit
            while not worker.is_fit:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert told == 2


async def test_a_missing_input_is_no_fault_of_the_worker() -> None:
    """Nor an error that has to do with none of its means."""

    async def probe() -> None:
        """Never called."""

    worker = WorkerHealth(probe, probe)
    for error in (ObjectMissing("down", "no such object"), ValueError()):
        for _ in range(MOST_FAILURES):
            worker.note_failure(error)
        assert worker.is_fit
