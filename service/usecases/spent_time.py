"""What a job spends its time with a converter on, for metrics and traces: `convert`, its parts, and runs beside them.

A run may be held open for several parts, and begin in a task of its own, so that no span here is the current one.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from service.jobs.lifecycle import Stage
from service.telemetry.stage import OpenStage, open_stage
from service.telemetry.tracing import OpenSpan


class SpentTime:
    """The time with a converter of one job, until the end of the block; `now` returns what happens to the job."""

    def __init__(self, now: Callable[[], Stage]) -> None:
        self._now = now
        self._whole: OpenStage | None = None
        self._part: OpenSpan | None = None
        self._stage: Stage = "waiting"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave_part(failed=kind is not None)
        if self._whole is not None:
            self._whole.end(failed=kind is not None)
            self._whole = None

    def begin(self, source: str, target: str) -> None:
        """Note that the job has a converter from now on; the formats are tokens."""
        self._whole = open_stage("convert", input=source, output=target)
        self.enter_part()

    def enter_part(self) -> None:
        """Note that another step has begun."""
        if self._whole is None or self._now() == self._stage:
            return
        self._leave_part(failed=False)
        self._stage = self._now()
        self._part = self._whole.span.open(self._stage, {})

    def run(self) -> AbstractContextManager[object]:
        """Trace the block as a run of the converter, which says in which part it began."""
        return nullcontext() if self._whole is None else self._whole.span.span("run", {"stage": self._stage})

    def _leave_part(self, *, failed: bool) -> None:
        if self._part is not None:
            self._part.end(failed=failed)
            self._part = None
