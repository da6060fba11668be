"""The stages of a file, each measured and recorded as a span: receive, admit, wait, convert, store, settle."""

import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, get_args

from prometheus_client import Histogram

from service.telemetry.metrics import STAGE_SECONDS
from service.telemetry.spans import OpenSpan, Value
from service.telemetry.tracing import open_span, span

Stage = Literal["receive", "admit", "wait", "convert", "store", "settle"]

_SECONDS = {name: STAGE_SECONDS.labels(name) for name in get_args(Stage)}


def stage(name: Stage, **attributes: Value) -> AbstractContextManager[None]:
    """Measure the block as a stage, whether it succeeds or not."""
    return _Observed(_SECONDS[name], span(name, **attributes))


def open_stage(name: Stage, **attributes: Value) -> "OpenStage":
    """Begin a stage that may end in another task than it began in."""
    return OpenStage(_SECONDS[name], open_span(name, **attributes))


class OpenStage:
    """A stage in progress, within whose span others are opened by name."""

    def __init__(self, seconds: Histogram, within: OpenSpan) -> None:
        self.span = within
        self._seconds = seconds
        self._since = time.perf_counter()

    def end(self, *, failed: bool) -> None:
        """End it."""
        self._seconds.observe(time.perf_counter() - self._since)
        self.span.end(failed=failed)


class _Observed:
    """A stage in progress; a class, because a generator would be slower and each file has six stages."""

    def __init__(self, seconds: Histogram, within: AbstractContextManager[object]) -> None:
        self._seconds = seconds
        self._within = within

    def __enter__(self) -> None:
        self._within.__enter__()
        self._since = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._seconds.observe(time.perf_counter() - self._since)
        return self._within.__exit__(kind, error, trace)
