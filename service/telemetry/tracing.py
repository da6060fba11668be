"""Spans: how a request and its files spent their time, for a trace collector.

Without a collector, nothing is recorded and a span costs one function call. Every request still has a trace id, taken
from the caller's `traceparent` or generated, which appears in the log and in the response.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from service.settings import SettingsError
from service.telemetry import traceparent
from service.telemetry.traceparent import TraceParent

Value = str | int | float | bool


class RequestSpan(Protocol):
    """The span of one request."""

    @property
    def traceparent(self) -> TraceParent:
        """The traceparent that identifies the span."""

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Name the span and set its attributes, once the response is complete."""


class Tracer(Protocol):
    """Creates spans."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
        """Open the span of a request with these headers."""

    def span(self, name: str, attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        """Open a span within the current one."""


class _Unrecorded:
    """A request whose span is not recorded."""

    def __init__(self, parent: TraceParent | None) -> None:
        self.traceparent = parent.child() if parent is not None else traceparent.fresh()

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Record nothing."""


_NOWHERE = nullcontext()


class _Silent:
    """Records nothing."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
        return nullcontext(_Unrecorded(traceparent.parse(headers.get(traceparent.HEADER, ""))))

    def span(self, _name: str, _attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        return _NOWHERE


_tracer: Tracer = _Silent()


def request_span(headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
    """Open the span of a request, in the trace that `headers` names."""
    return _tracer.request(headers)


def span(name: str, **attributes: Value) -> AbstractContextManager[object]:
    """Open a span within that of the request, which may have ended already."""
    return _tracer.span(name, attributes)


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
