"""Jobs that run together, and jobs that run alone: if their process dies, it is clear with which of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Company:
    """The jobs of one process; one that runs alone waits for the others, and those that come later wait for it."""

    def __init__(self) -> None:
        self._changed = anyio.Condition()
        self._together = 0
        self._has_loner = False

    @asynccontextmanager
    async def joined(self, *, alone: bool) -> AsyncIterator[None]:
        """Wait until a job may run, and let it be one of those that run until the end of the block."""
        async with self._changed:
            while self._has_loner:
                await self._changed.wait()
            self._has_loner, self._together = alone, self._together + (not alone)
        try:
            if alone:
                async with self._changed:
                    while self._together:
                        await self._changed.wait()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._has_loner, self._together = self._has_loner and not alone, self._together - (not alone)
                    self._changed.notify_all()
