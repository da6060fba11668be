"""What a job with a converter spends its time on, for metrics and traces: `convert`, its parts, and runs beside them.

A run may be held open for several parts, and begin in a task of its own, so that no span here is the current one but
those of the questions that it is asked.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Self

from sandbox.command import Command
from service.engine.jailed import CALLERS
from service.telemetry.spans import OpenSpan
from service.telemetry.stage import OpenStage, open_stage

_NOWHERE = nullcontext()


class SpentTime:
    """The time with a converter of one job, until the end of the block."""

    def __init__(self) -> None:
        self._whole: OpenStage | None = None
        self._part: OpenSpan | None = None
        self._name = ""

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
        self._part = self._whole.span.open(self._name, {})

    def enter_part(self, name: str) -> None:
        """Note that another step has begun, and which part it is."""
        if name != self._name:
            self._name = name
            self._leave_part(failed=False)
            self._part = self._whole.span.open(name, {}) if self._whole is not None else None

    def run(self, command: Command) -> AbstractContextManager[object]:
        """Trace the block as a run of the converter, which says its program and in which part it began."""
        if self._whole is None:
            return _NOWHERE
        return self._whole.span.span("run", {"program": _program(command), "part": self._name})

    def ask(self, question: str) -> AbstractContextManager[object]:
        """Trace the block as a question to a run that is held open."""
        return _NOWHERE if self._part is None else self._part.span("ask", {"question": question})

    def _leave_part(self, *, failed: bool) -> None:
        if self._part is not None:
            self._part.end(failed=failed)
            self._part = None


def _program(command: Command) -> str:
    """Return the name of the program, or of the module that Python runs, or that what it runs calls."""
    program, *arguments = command.argv
    if arguments[:1] != ["-m"]:
        return program.rpartition("/")[2]
    return next(name for name in arguments[1:] if name not in CALLERS).rpartition(".")[2]
