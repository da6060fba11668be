"""What spans are, and what creates them, whether or not a collector is told of them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Protocol

from service.telemetry.traceparent import TraceParent

Value = str | int | float | bool
about: ContextVar[Mapping[str, Value]] = ContextVar("about")
"""What all spans have in common that begin in this context."""


class RequestSpan(Protocol):
    """The span of one request."""

    @property
    def traceparent(self) -> TraceParent:
        """The traceparent that identifies the span."""

    def finish(self, name: str, attributes: Mapping[str, Value], *, failed: bool) -> None:
        """Name the span and set its attributes, once the response is complete."""


class OpenSpan(Protocol):
    """A span that may end in another task than it began in, so that spans within it name it as their parent."""

    def span(self, name: str, attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        """Open a span within this one."""

    def open(self, name: str, attributes: Mapping[str, Value], /) -> "OpenSpan":
        """Open a span within this one, to be ended like this one."""

    def end(self, *, failed: bool) -> None:
        """End it."""


class Tracer(Protocol):
    """Creates spans."""

    def current(self) -> TraceParent | None:
        """Return the span that others would be opened within."""

    def continued(
        self, parent: TraceParent, name: str, attributes: Mapping[str, Value], /
    ) -> AbstractContextManager[object]:
        """Open a span within one of another process."""

    def open(self, name: str, attributes: Mapping[str, Value], /) -> OpenSpan:
        """Open a span within the current one, which does not become the current one."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
        """Open the span of a request with these headers."""

    def span(self, name: str, attributes: Mapping[str, Value], /) -> AbstractContextManager[object]:
        """Open a span within the current one."""
