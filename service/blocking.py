"""Blocking work on files: little of it in the event loop at once, more of it in a thread beside the loop.

A thread takes the work over and hands its outcome back by waking each other up, which costs more processor time than
the handful of calls that a file of some kilobytes needs.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

INLINE_BYTES = 256 * 1024
"""Up to here a file is small: read, written or removed in less time than others notice."""

_Result = TypeVar("_Result")


async def run_blocking(work: Callable[[], _Result], *, inline: bool, limiter: CapacityLimiter | None = None) -> _Result:
    """Run blocking work: at once if `inline`, else in a thread of `limiter`; a cancellation waits for its end."""
    return work() if inline else await to_thread.run_sync(work, limiter=limiter)
