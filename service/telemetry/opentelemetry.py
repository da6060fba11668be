"""Spans recorded by OpenTelemetry and exported by OTLP over HTTP; imported only if a collector is configured."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace import Tracer as OpenTelemetryTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.telemetry.traceparent import TraceParent
from service.telemetry.tracing import RequestSpan, Tracer, Value

EXPORT_SECONDS = 3.0
"""How long the last spans may delay the end of the process if the collector is unavailable."""


class _Request:
    """The recorded span of a request."""

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> TraceParent:
        """The traceparent that identifies the span."""
        context = self._span.get_span_context()
        return TraceParent(f"{context.trace_id:032x}", f"{context.span_id:016x}", context.trace_flags.sampled)

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Name the span and set its attributes."""
        self._span.update_name(name)
        self._span.set_attributes(attributes)
        if failed:
            self._span.set_status(StatusCode.ERROR)


class _Recording:
    """Records spans with an OpenTelemetry tracer."""

    def __init__(self, tracer: OpenTelemetryTracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        """Open the span of a request."""
        caller = self._propagator.extract(headers)
        with self._tracer.start_as_current_span(
            "request", caller, kind=SpanKind.SERVER, record_exception=False
        ) as span:
            yield _Request(span)

    def span(self, name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[object]:
        """Open a span within the current one; an error sets its status, and the log has the details."""
        return self._tracer.start_as_current_span(name, attributes=attributes, record_exception=False)


def open_tracer(endpoint: str) -> tuple[Tracer, Callable[[], None]]:
    """Return a tracer, and a function that sends the last spans and closes it."""
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "geomill"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)))
    return _Recording(provider.get_tracer("geomill")), provider.shutdown
