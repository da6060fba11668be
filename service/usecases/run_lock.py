"""Which jobs run together, and which runs alone, so that it is clear with which job a process has died."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from service.errors import RetryableFault

LOOK_SECONDS = 1.0
"""How often a job that waits for the others to end looks whether it still has to run."""


class Displaced(RetryableFault):
    """Another job is to run alone in this process; this one is for another process."""

    def __init__(self) -> None:
        super().__init__("Another file has to be converted alone.", retry_after_seconds=0)


class RunLock:
    """A lock that the claimed jobs of one process share, unless one has to run alone.

    One that runs alone waits for those that converters have begun; `make_room` returns the others to the queue. Until
    it has ended, no other job joins.
    """

    def __init__(self, make_room: Callable[[], None]) -> None:
        self._make_room = make_room
        self._changed = anyio.Event()
        self._together = 0
        self.is_reserved = False
        """Whether a job runs alone here, or waits for the others to end."""
        self.is_closed = False
        """Whether nobody may join any more."""

    def close(self) -> None:
        """Let no other job join, and none wait for the others to end."""
        self.is_closed = True
        self._tell()

    @asynccontextmanager
    async def joined(self, *, alone: bool, is_open: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Let a job be one of those that run until the end of the block; wait if it has to run alone.

        It waits no longer than it `is_open`.

        Raises:
            Displaced: another job runs alone, nobody may join any more, or the job need not run any more.
        """
        if self.is_reserved or self.is_closed:
            raise Displaced
        self.is_reserved, self._together = alone, self._together + (not alone)
        try:
            if alone:
                self._make_room()
                while not await self._have_others_ended():
                    if not await is_open():
                        raise Displaced
            yield
        finally:
            self.is_reserved, self._together = self.is_reserved and not alone, self._together - (not alone)
            self._tell()

    async def _have_others_ended(self) -> bool:
        """Wait a moment for the jobs that run together; return whether they have ended.

        Raises:
            Displaced: nobody may join any more.
        """
        with anyio.move_on_after(LOOK_SECONDS):
            while self._together and not self.is_closed:
                await self._changed.wait()
        if self.is_closed:
            raise Displaced
        return not self._together

    def _tell(self) -> None:
        """Wake the jobs that wait, to see what has changed."""
        self._changed.set()
        self._changed = anyio.Event()
