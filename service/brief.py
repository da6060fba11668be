"""Blocking work on files: little of it in the event loop at once, more of it in a thread beside the loop.

A thread takes the work over and hands its outcome back by waking each other up, which costs more processor time than
the handful of calls that a file of some kilobytes needs.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

BRIEF_BYTES = 256 * 1024
"""Up to here a file is small: read, written or removed in less time than others notice."""

_Result = TypeVar("_Result")


async def do(work: Callable[[], _Result], *, brief: bool, limiter: CapacityLimiter | None = None) -> _Result:
    """Do blocking work: here and now if it is `brief`, else in a thread of `limiter`'s; a cancellation waits for it."""
    return work() if brief else await to_thread.run_sync(work, limiter=limiter)
