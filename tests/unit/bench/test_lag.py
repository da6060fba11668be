"""The lag of a server's event loop over an interval, from the growth of its histogram."""

import pytest

from bench.measure.lag import LagReading, lag_of, reading_of

SHOWN = """\
# HELP geomill_event_loop_lag_seconds How late it is.
# TYPE geomill_event_loop_lag_seconds histogram
geomill_event_loop_lag_seconds_bucket{le="0.001"} 5.0
geomill_event_loop_lag_seconds_bucket{le="0.01"} 7.0
geomill_event_loop_lag_seconds_bucket{le="+Inf"} 8.0
geomill_event_loop_lag_seconds_count 8.0
geomill_event_loop_lag_seconds_sum 0.5
process_start_time_seconds 1.5e+09
"""


def reading(*counts: float, process: float | None = 1.0) -> LagReading:
    """A histogram with buckets up to 1, 2 and 10 ms, and infinity."""
    return LagReading(at_most=dict(zip((0.001, 0.002, 0.01, float("inf")), counts, strict=True)), process=process)


def test_the_histogram_is_read_from_the_metrics() -> None:
    """With its process, if the metrics are those of one."""
    assert reading_of(SHOWN) == LagReading(at_most={0.001: 5, 0.01: 7, float("inf"): 8}, process=1.5e9)
    several = reading_of(SHOWN[: SHOWN.index("process")])
    assert several is not None
    assert several.process is None


@pytest.mark.parametrize("text", ["", "geomill_tasks 5\n", "<!doctype html><p>Not found", '{"error": "none"}\n'])
def test_what_shows_no_lag_is_no_reading(text: str) -> None:
    """From a server of an earlier version, or from something else at that address."""
    assert reading_of(text) is None


def test_a_percentile_is_spread_evenly_in_its_bucket() -> None:
    """Of what was added between two readings, with rounds combined."""
    before = reading(1000, 1000, 1000, 1000)
    rounds = [reading(1040, 1090, 1100, 1100).since(before), reading(1000, 1050, 1100, 1100).since(before)]
    lag = lag_of(rounds)  # 40 up to 1 ms, 100 up to 2, 60 up to 10
    assert lag is not None
    assert lag.p50 == 1.6
    assert lag.p99 == 9.73


def test_what_is_later_than_the_last_bound_is_told_as_that() -> None:
    """As in Prometheus."""
    lag = lag_of([reading(0, 0, 0, 5).since(reading(0, 0, 0, 0))])
    assert lag is not None
    assert (lag.p50, lag.p99) == (10.0, 10.0)


@pytest.mark.parametrize(
    "later",
    [reading(9, 9, 9, 9, process=2.0), reading(1, 5, 5, 5), reading(3, 2, 9, 9)],
    ids=["another's start", "less than before", "less in all than up to a bound"],
)
def test_readings_of_two_processes_tell_nothing(later: LagReading) -> None:
    """Where processes share a port but not their metrics, the line is missing rather than wrong."""
    assert later.since(reading(2, 2, 2, 2)) is None
    assert lag_of([None]) is None


def test_a_time_without_a_look_tells_nothing() -> None:
    """The interval was too short."""
    assert lag_of([reading(2, 2, 2, 2).since(reading(2, 2, 2, 2))]) is None
