"""The metrics as text: of now, or of a moment ago while there is more to do than can be done."""

import time

import pytest

from service.telemetry.exposition import OLD_SECONDS, Exposition
from service.telemetry.metrics import SUSPENSIONS


async def test_metrics_are_of_now_unless_they_may_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """And at most a second old then."""
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
