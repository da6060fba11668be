"""What many ask for at once is tried once, and only its success counts for a moment."""

import time

import anyio
import pytest

from service.usecases.recent_success import HOLDS_SECONDS, RecentSuccess


class Check:
    """Counts its runs, and fails if told to."""

    def __init__(self) -> None:
        self.runs = 0
        self.fails = False

    async def __call__(self) -> None:
        """Run."""
        self.runs += 1
        await anyio.lowlevel.checkpoint()
        if self.fails:
            raise OSError("away")


async def test_those_who_ask_together_share_one_run() -> None:
    """However many they are, and so does who asks a moment later."""
    recent, check = RecentSuccess(), Check()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(recent.ensure, check)
    await recent.ensure(check)
    assert check.runs == 1


async def test_a_success_counts_only_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the next one who asks tries again."""
    recent, check = RecentSuccess(), Check()
    await recent.ensure(check)
    later = time.monotonic() + HOLDS_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    await recent.ensure(check)
    assert check.runs == 2


async def test_a_failure_is_never_reused() -> None:
    """Everyone who asks tries again, so that a repaired part counts at once."""
    recent, check = RecentSuccess(), Check()
    check.fails = True
    for _ in range(2):
        with pytest.raises(OSError, match="away"):
            await recent.ensure(check)
    check.fails = False
    await recent.ensure(check)
    assert check.runs == 3
