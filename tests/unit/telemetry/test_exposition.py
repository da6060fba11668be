"""The metrics as text: current, or slightly older while the service is overloaded."""

import time

import pytest

from service.telemetry.exposition import OLD_SECONDS, Exposition
from service.telemetry.metrics import SUSPENSIONS


async def test_metrics_are_of_now_unless_they_may_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then they are at most a second old."""
    exposition = Exposition()
    first = await exposition.text(may_be_old=True)
    SUSPENSIONS.inc()
    assert await exposition.text(may_be_old=True) == first
    second = await exposition.text(may_be_old=False)
    assert second != first
    SUSPENSIONS.inc()
    assert await exposition.text(may_be_old=True) == second
    later = time.monotonic() + OLD_SECONDS + 0.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await exposition.text(may_be_old=True) not in {first, second}
