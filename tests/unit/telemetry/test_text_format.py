"""The text of the metrics is the library's."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from service.telemetry import metrics
from service.telemetry.text_format import TextFormat


def test_the_text_is_that_of_the_library_however_values_and_labels_change() -> None:
    """Remembered lines are used only for the labels that they were made for."""
    assert metrics.__doc__  # importing it turns off the samples of creation times
    registry, text_format = CollectorRegistry(), TextFormat()
    counter = Counter("things", 'Things, \\ and "quotes"\nover two lines.', ["kind", "a_kind"], registry=registry)
    gauge = Gauge("level", "A level.", registry=registry)
    histogram = Histogram("seconds", "Durations.", ["kind"], registry=registry, buckets=(0.0005, 1, 2.5))

    def compare() -> None:
        text = "".join(map(text_format.written, registry.collect()))
        assert text.encode() == generate_latest(registry)

    compare()
    for number, kind in enumerate(('b"\\\n', "a", "Straße", "c")):
        counter.labels(kind, "x").inc(number * 1e9 + 0.5)
        gauge.set(float("nan") if number == 1 else -number)
        histogram.labels(kind).observe(number)
        compare()
    counter.remove("a", "x")
    histogram.clear()
    gauge.set(float("inf"))
    compare()
    histogram.labels("d").observe(1)
    compare()
