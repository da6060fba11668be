"""Spans recorded by OpenTelemetry and exported by OTLP over HTTP; imported only if a collector is configured."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from socket import gethostname

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import HOST_NAME, PROCESS_PID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanContext, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace import Tracer as OpenTelemetryTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.telemetry.build import VERSION
from service.telemetry.spans import OpenSpan, RequestSpan, Tracer, Value, about
from service.telemetry.traceparent import HEADER, TraceParent

EXPORT_SECONDS = 3.0
"""How long the last spans may delay the end of the process if the collector is unavailable."""


class _RequestSpan(RequestSpan):
    """The recorded span of a request."""

    def __init__(self, span: Span) -> None:
        super().__init__(_traceparent(span.get_span_context()))
        self._span = span

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        self._span.update_name(name)
        self._span.set_attributes(attributes)
        if failed:
            self._span.set_status(StatusCode.ERROR)


class _Spans(OpenSpan):
    """Opens spans within `within`, by default within the current one."""

    def __init__(self, tracer: OpenTelemetryTracer, within: Context | None = None) -> None:
        self._tracer = tracer
        self._within = within

    def span(self, name: str, attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        return self._tracer.start_as_current_span(
            name, self._within, attributes=_all(attributes), record_exception=False
        )

    def open(self, name: str, attributes: Mapping[str, Value], /) -> OpenSpan:
        return _Open(self._tracer, self._tracer.start_span(name, self._within, attributes=_all(attributes)))


class _Open(_Spans):
    """A recorded span that is never the current one."""

    def __init__(self, tracer: OpenTelemetryTracer, span: Span) -> None:
        super().__init__(tracer, set_span_in_context(span))
        self._span = span

    def end(self, *, failed: bool) -> None:
        if failed:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class _Recording(_Spans, Tracer):
    """Records spans with an OpenTelemetry tracer."""

    def __init__(self, tracer: OpenTelemetryTracer) -> None:
        super().__init__(tracer)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        caller = self._propagator.extract(headers)
        with self._tracer.start_as_current_span(
            "request", caller, kind=SpanKind.SERVER, record_exception=False
        ) as span:
            yield _RequestSpan(span)

    def current(self) -> TraceParent | None:
        context = get_current_span().get_span_context()
        return _traceparent(context) if context.is_valid else None

    def continued(
        self, parent: TraceParent, name: str, attributes: Mapping[str, Value], /
    ) -> AbstractContextManager[object]:
        caller = self._propagator.extract({HEADER: str(parent)})
        return self._tracer.start_as_current_span(
            name, caller, kind=SpanKind.CONSUMER, attributes=_all(attributes), record_exception=False
        )


def _all(attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    return {**about.get({}), **attributes}


def _traceparent(context: SpanContext) -> TraceParent:
    return TraceParent(f"{context.trace_id:032x}", f"{context.span_id:016x}", context.trace_flags.sampled)


def open_tracer(endpoint: str) -> tuple[Tracer, Callable[[], None]]:
    """Return a tracer, and a function that sends the last spans and closes it."""
    process = Resource.create(
        {SERVICE_NAME: "geomill", SERVICE_VERSION: VERSION, HOST_NAME: gethostname(), PROCESS_PID: os.getpid()}
    )
    provider = TracerProvider(resource=process, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)))
    return _Recording(provider.get_tracer("geomill")), provider.shutdown
