"""Traces without a collector, and without the libraries that one needs."""

import subprocess
import sys

import pytest

from service.telemetry.traceparent import TraceParent, fresh, parse

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [(f"00-{TRACE}-{SPAN}-01", True), (f"00-{TRACE}-{SPAN}-00", False), (f"cc-{TRACE}-{SPAN}-03-more", True)],
)
def test_a_well_formed_header_is_read(text: str, sampled: bool) -> None:
    """Of this version, or of a later one with more fields."""
    assert parse(text) == TraceParent(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
    ],
)
def test_a_header_that_is_not_well_formed_is_as_good_as_none(text: str) -> None:
    """As the standard requires, a new trace begins."""
    assert parse(text) is None


def test_a_child_is_another_span_of_the_same_trace() -> None:
    """It is written as it is read."""
    parent = fresh()
    child = parent.child()
    assert child.trace_id == parent.trace_id
    assert child.span_id != parent.span_id
    assert parse(str(child)) == child


def test_only_a_collector_needs_the_extra() -> None:
    """Without the extra's libraries, requests still have traces; configuring a collector is refused clearly."""
    program = """
import sys
sys.modules["opentelemetry"] = None
from service.settings import SettingsError
from service.telemetry.tracing import request_span, span, tracing
with tracing(""), request_span({}) as request, span("convert", input="geojson"):
    assert len(request.traceparent.trace_id) == 32
    request.finish("GET /", {}, failed=False)
try:
    with tracing("http://127.0.0.1:9"):
        pass
except SettingsError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "GEOMILL_TRACES_URL" in done.stdout
    assert "geomill[tracing]" in done.stdout
