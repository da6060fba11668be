"""Spans and what creates them: here nothing is recorded, and what `opentelemetry` has tells a collector."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

from service.telemetry import traceparent
from service.telemetry.traceparent import TraceParent

Value = str | int | float | bool
about: ContextVar[Mapping[str, Value]] = ContextVar("about")
"""What all spans have in common that begin in this context."""
_here: ContextVar[TraceParent | None] = ContextVar("here", default=None)
"""What is being traced, if no span of it is recorded."""
_NOWHERE = nullcontext()


class RequestSpan:
    """The span of one request, which its `traceparent` identifies."""

    def __init__(self, identity: TraceParent) -> None:
        self.traceparent = identity

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Name the span and set its attributes, once the response is complete."""


class OpenSpan:
    """A span that may end in another task than it began in, so that spans within it name it as their parent."""

    def span(self, _name: str, _attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        """Open a span within this one; an error sets its status, and the log has the details."""
        return _NOWHERE

    def open(self, _name: str, _attributes: Mapping[str, Value], /) -> "OpenSpan":
        """Open a span within this one, to be ended like this one."""
        return self

    def end(self, *, failed: bool) -> None:
        """End it."""


class Tracer(OpenSpan):
    """Creates spans; as a span, it is the current one, and never ended."""

    def current(self) -> TraceParent | None:
        """Return the span that others would be opened within."""
        return _here.get()

    def continued(
        self, parent: TraceParent, _name: str, _attributes: Mapping[str, Value], /
    ) -> AbstractContextManager[object]:
        """Open a span within one of another process."""
        _here.set(parent.child())
        return _NOWHERE

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
        """Open the span of a request with these headers."""
        parent = traceparent.parse(headers.get(traceparent.HEADER, ""))
        own = parent.child() if parent is not None else traceparent.fresh()
        _here.set(own)
        return nullcontext(RequestSpan(own))
