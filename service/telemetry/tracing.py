"""Spans: how a request and its files spent their time, for a trace collector.

Without a collector, nothing is recorded and a span costs one function call. Every request still has a trace id, taken
from the caller's `traceparent` or generated, which appears in the log and in the response.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from service.settings import SettingsError
from service.telemetry import traceparent
from service.telemetry.log import bound
from service.telemetry.spans import OpenSpan, RequestSpan, Tracer, Value

_tracer = Tracer()


def request_span(headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
    """Open the span of a request, in the trace that `headers` names."""
    return _tracer.request(headers)


def span(name: str, **attributes: Value) -> AbstractContextManager[object]:
    """Open a span within that of the request, which may have ended already."""
    return _tracer.span(name, attributes)


def open_span(name: str, **attributes: Value) -> OpenSpan:
    """Open a span within the current one that may end in another task."""
    return _tracer.open(name, attributes)


def current_traceparent() -> str:
    """Return the `traceparent` of the current span, for another process; empty if nothing is traced."""
    return str(_tracer.current() or "")


@contextmanager
def continued_span(parent: str, name: str, **attributes: Value) -> Iterator[None]:
    """Open a span within one of another process, whose `traceparent` is `parent`; the log names its trace.

    If `parent` is malformed or empty, the span begins a trace.
    """
    of_caller = traceparent.parse(parent) or traceparent.fresh()
    with _tracer.continued(of_caller, name, attributes), bound(trace_id=of_caller.trace_id):
        yield


@contextmanager
def tracing(endpoint: str) -> Iterator[None]:
    """Send spans to the collector at `endpoint` (OTLP over HTTP); if it is empty, record none.

    Raises:
        SettingsError: the extra `tracing` is not installed.
    """
    global _tracer  # noqa: PLW0603 -- like the log, configured once and used everywhere
    if not endpoint:
        yield
        return
    silent = _tracer
    _tracer, close = _open(endpoint)
    try:
        yield
    finally:
        _tracer = silent
        close()


def _open(endpoint: str) -> tuple[Tracer, Callable[[], None]]:
    try:
        from service.telemetry.opentelemetry import open_tracer  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError as missing:
        message = "GEOMILL_TRACES_URL needs the extra `tracing`. Install it: pip install 'geomill[tracing]'"
        raise SettingsError(message) from missing
    return open_tracer(endpoint)
