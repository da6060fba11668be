"""Shares a check among concurrent callers: one of them performs it, and its success counts for a moment."""

import math
import time
from collections.abc import Awaitable, Callable

import anyio

HOLDS_SECONDS = 0.5
"""How old the success of a check may be. A failure is never reused: the next caller tries again."""


class RecentSuccess:
    """A check of one thing, whose success counts for `holds_seconds`."""

    def __init__(self, holds_seconds: float = HOLDS_SECONDS) -> None:
        self._holds_seconds = holds_seconds
        self._one = anyio.Lock(fast_acquire=True)
        self._succeeded_at = -math.inf

    async def ensure(self, check: Callable[[], Awaitable[None]]) -> None:
        """Return if `check` has succeeded a moment ago or succeeds now, and raise what it raises."""
        async with self._one:
            if time.monotonic() - self._succeeded_at >= self._holds_seconds:
                await check()
                self._succeeded_at = time.monotonic()
