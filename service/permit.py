"""What work in threads may take: computing time and space on the disk, and no more once nobody wants its result.

The work asks between its pieces whether it may go on. Nothing can end a thread from outside.
"""

import errno
import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

_Result = TypeVar("_Result")


class OutOfTime(Exception):
    """The work has taken all of its computing time."""


class Withdrawn(Exception):
    """Nobody wants the result of the work any more."""


class OutOfSpace(OSError):
    """The work has written all that it may have on the disk."""


class Permit:
    """A permit for work that is done one piece after another, with at most `cpu_seconds` of computing time in all."""

    def __init__(self, cpu_seconds: float = math.inf) -> None:
        self.used = 0.0
        """How much of it the work has taken."""
        self.room_bytes = math.inf
        """How much more the work may have on the disk."""
        self._cpu_seconds = cpu_seconds
        self._until = math.inf
        self._is_withdrawn = False

    def use(self, work: Callable[[], _Result]) -> _Result:
        """Do `work` in this thread, whose calls of `go_on` ask this permit.

        Raises:
            OutOfTime, Withdrawn: see `go_on`.
        """
        began = time.thread_time()
        self._until = began + self._cpu_seconds - self.used
        outer = _current.set(self)
        try:
            return work()
        finally:
            _current.reset(outer)
            self.used += time.thread_time() - began

    def withdraw(self) -> None:
        """End the work at its next call of `go_on`; called from any thread."""
        self._is_withdrawn = True

    def require(self) -> None:
        """Check that the work may go on; raises what `go_on` raises."""
        if self._is_withdrawn:
            raise Withdrawn
        if time.thread_time() > self._until:
            raise OutOfTime

    def occupy(self, size_bytes: int) -> None:
        """Count what the work writes, or, as a negative number, deletes.

        Raises:
            OutOfSpace: it has more on the disk than it may.
        """
        self.room_bytes -= size_bytes
        if size_bytes > 0 > self.room_bytes:
            raise OutOfSpace(errno.ENOSPC, "other uploads take as much as may be on the disk")


_current: ContextVar[Permit | None] = ContextVar("permit", default=None)


def has_permit() -> bool:
    """Whether the work that calls this needs a permit to go on."""
    return _current.get() is not None


def occupy(size_bytes: int) -> None:
    """Count what the work that calls this writes or deletes; see `Permit.occupy`."""
    permit = _current.get()
    if permit is not None:
        permit.occupy(size_bytes)


def go_on() -> None:
    """Check that the work that calls this may go on; work without a permit always may.

    Raises:
        OutOfTime: it has taken its computing time.
        Withdrawn: nobody wants its result any more.
    """
    permit = _current.get()
    if permit is not None:
        permit.require()
