"""The metrics as text: current, or slightly older while the service is overloaded."""

import math
import time

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from service.telemetry import exposition
from service.telemetry.exposition import OLD_SECONDS, Exposition
from service.telemetry.metrics import SUSPENSIONS


async def test_metrics_are_of_now_unless_they_may_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then they are at most a second old."""
    shown = Exposition()
    first = await shown.text(may_be_old=True)
    SUSPENSIONS.inc()
    assert await shown.text(may_be_old=True) == first
    second = await shown.text(may_be_old=False)
    assert second != first
    SUSPENSIONS.inc()
    assert await shown.text(may_be_old=True) == second
    later = time.monotonic() + OLD_SECONDS + 0.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await shown.text(may_be_old=True) not in {first, second}


async def test_the_text_is_that_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every line, also those of labels that need escapes, of infinite bounds and of the library's own metrics."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    counter = Counter("files_total", "Files.", ["zone", "name"], registry=registry)
    counter.labels("b", 'a "quoted"\\ name\nin two lines, naïve').inc(3)
    counter.labels("a", "").inc(0.5)
    Gauge("open", "Open files.", registry=registry).set(math.inf)
    Histogram("seconds", "Durations.", ["route"], registry=registry, buckets=(0.001, 1, 5)).labels("/{key}").observe(2)
    monkeypatch.setattr(exposition, "REGISTRY", registry)
    told, expected = await Exposition().text(may_be_old=False), generate_latest(registry)
    assert steady(told) == steady(expected)


def steady(text: bytes) -> list[str]:
    """All lines but the values of the process, which change meanwhile."""
    return [line.rpartition(" ")[0] if line.startswith("process_") else line for line in text.decode().splitlines()]
