"""The metrics as text: current, or slightly older while the service is overloaded."""

import math
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from service.telemetry import exposition
from service.telemetry.exposition import OLD_SECONDS, TURN_SAMPLES, Exposition
from service.telemetry.instruments import Histogram
from service.telemetry.metrics import SUSPENSIONS
from service.telemetry.shared_directory import VARIABLE


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
    counter = Counter("files_total", "Files.", ["zone", "name"], registry=registry)
    counter.labels("b", 'a "quoted"\\ name\nin two lines, naïve').inc(3)
    counter.labels("a", "").inc(0.5)
    opened = Gauge("open", "Open files.", registry=registry)
    opened.set(math.inf)
    seconds = Histogram("seconds", "Durations.", ["route", "zone"], registry=registry, buckets=(0.001, 1, 5))
    seconds.labels("/{key}", "50 %s").observe(2)
    seconds.labels("/", "a").observe(1e-9)
    lag = Histogram("lag", "Without labels.", registry=registry, buckets=(0.5,))
    lag.observe(70)
    unused = Histogram("unused", "Without samples.", ["route"], registry=registry)
    library = (ProcessCollector(registry=registry), PlatformCollector(registry=registry))
    monkeypatch.setattr(exposition, "_COLLECTORS", (counter, opened, seconds, lag, unused, *library))
    told, expected = await Exposition().text(may_be_old=False), generate_latest(registry)
    assert steady(told) == steady(expected)


async def test_every_metric_is_shown_in_the_librarys_order() -> None:
    """The service's own, and those of the process and of Python."""
    told = await Exposition().text(may_be_old=False)
    assert steady(told) == steady(generate_latest())


async def test_the_text_of_several_processes_is_that_of_the_library(shared: Path) -> None:
    """Sums of counters, histograms and gauges, also where a process has ended or is just starting."""
    for number, count in enumerate((3, 4)):
        count_in(shared, number, count)
    (shared / "gauge_livesum_2.db").touch()
    (shared / "counter_2.db").write_bytes(bytes(1 << 16))
    told = await Exposition().text(may_be_old=False)
    (shared / "gauge_livesum_2.db").unlink()
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(shared))
    assert told == generate_latest(registry)
    assert {"livesum 1.0", "livemax 1.0", "mostrecent 0.0", "bytes_total 7.0"} <= set(told.decode().splitlines())


async def test_requests_are_served_while_the_text_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a number of samples, however many a family has."""
    seconds = Histogram("seconds", "Durations.", ["route"], registry=None)
    for number in range(200):
        seconds.labels(str(number)).observe(1)
    monkeypatch.setattr(exposition, "_COLLECTORS", (seconds,))
    await shows_in_turns()


async def test_requests_are_served_while_files_of_processes_are_read(shared: Path) -> None:
    """As while the text is written."""
    count_in(shared, 1, 400)
    await shows_in_turns()


async def shows_in_turns() -> None:
    """Show the metrics while another task counts how often it has its turn."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        text = await Exposition().text(may_be_old=False)
        tasks.cancel_scope.cancel()
    most_at_once = TURN_SAMPLES + len(Histogram.DEFAULT_BUCKETS) + 2
    assert turns >= text.count(b"\n") // most_at_once >= 5


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which processes share their metrics."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def count_in(directory: Path, number: int, routes: int) -> None:
    """Write the files of a process as the library does, with a histogram of so many routes."""
    histogram = MmapedDict(str(directory / f"histogram_{number}.db"))
    for route in map(str, range(routes)):
        labels = ["route"], [f"/{route}"]
        histogram.write_value(mmap_key("seconds", "seconds_sum", *labels, "Durations."), 0.5, 0.0)
        for bound in ("0.5", "10.0", "+Inf"):
            key = mmap_key("seconds", "seconds_bucket", ["route", "le"], [f"/{route}", bound], "Durations.")
            histogram.write_value(key, float(number), 0.0)
    counter = MmapedDict(str(directory / f"counter_{number}.db"))
    counter.write_value(mmap_key("files", "files_total", ["name"], [f'"{number}"\n'], "Files."), 1.0, 0.0)
    counter.write_value(mmap_key("bytes", "bytes_total", [], [], "Bytes."), float(routes), 0.0)
    for mode in ("livesum", "livemax", "mostrecent"):
        gauge = MmapedDict(str(directory / f"gauge_{mode}_{number}.db"))
        gauge.write_value(mmap_key(mode, mode, [], [], "A gauge."), float(number), 1e9 - number)
        gauge.write_value(mmap_key(f"un{mode}", f"un{mode}", [], [], "A gauge."), 0.0, 0.0)
        gauge.close()
    histogram.close()
    counter.close()


def steady(text: bytes) -> list[str]:
    """All lines but the values of the process, which change meanwhile."""
    moving = ("process_", "python_gc_", "geomill_event_loop_lag")
    return [line.rpartition(" ")[0] if line.startswith(moving) else line for line in text.decode().splitlines()]
