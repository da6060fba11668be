"""A job that runs alone shares its process with no other, and holds up nobody."""

import anyio
import anyio.lowlevel
import pytest

from service.usecases import run_lock as run_locks
from service.usecases.run_lock import Displaced, RunLock


async def always() -> bool:
    """A job that is never cancelled."""
    return True


async def test_a_job_that_runs_alone_shares_with_no_other() -> None:
    """Others run together, before and after it; those that come meanwhile are sent away, not kept."""
    run_lock = RunLock(lambda: None)
    running: set[int] = set()
    seen: list[frozenset[int]] = []

    async def run(number: int) -> None:
        while True:
            try:
                async with run_lock.joined(alone=number % 3 == 0, is_open=always):
                    running.add(number)
                    try:
                        await anyio.sleep(0.001)
                        seen.append(frozenset(running))
                    finally:
                        running.remove(number)
            except Displaced:
                await anyio.sleep(0.001)
            else:
                return

    async with anyio.create_task_group() as tasks:
        for number in range(1, 31):
            tasks.start_soon(run, number)
        with anyio.CancelScope() as cancelled:
            cancelled.cancel()
            await run(33)
    assert len(seen) == 30
    assert all(len(company_of) == 1 for company_of in seen if any(number % 3 == 0 for number in company_of))
    assert any(len(company_of) > 1 for company_of in seen)
    assert not run_lock.is_reserved


async def test_room_is_made_for_who_runs_alone() -> None:
    """Before it waits for those that cannot leave; when the process stops, it waits no longer."""
    made: list[bool] = []
    run_lock = RunLock(lambda: made.append(run_lock.is_reserved))
    async with anyio.create_task_group() as tasks, run_lock.joined(alone=False, is_open=always):
        assert made == []

        async def run_alone() -> None:
            with pytest.raises(Displaced):
                async with run_lock.joined(alone=True, is_open=always):
                    pytest.fail("it did not run alone")

        tasks.start_soon(run_alone)
        while not made:
            await anyio.lowlevel.checkpoint()
        run_lock.close()
    assert made == [True]
    with pytest.raises(Displaced):
        async with run_lock.joined(alone=False, is_open=always):
            pytest.fail("it was closed")


async def test_who_was_cancelled_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job that was to run alone has ended otherwise; others may join again."""
    monkeypatch.setattr(run_locks, "LOOK_SECONDS", 0.001)
    run_lock, asked = RunLock(lambda: None), list[int]()

    async def twice() -> bool:
        asked.append(1)
        return len(asked) < 3

    async with run_lock.joined(alone=False, is_open=always):
        with pytest.raises(Displaced):
            async with run_lock.joined(alone=True, is_open=twice):
                pytest.fail("it did not run alone")
        async with run_lock.joined(alone=False, is_open=always):
            assert not run_lock.is_reserved
