"""How workers hear of lanes that have a job to take, at a cost that does not grow with the number of those that wait.

Of the workers that wait for jobs, one hears of each. A worker without room hears of every job, which costs it little,
because it only notes the lane, and looks there once it has room. Large inputs are few, and not every worker that waits
may take one, so all workers hear of them.
"""

from collections.abc import Callable
from typing import Final

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from service.jobs.lanes import is_large

STIRRED: Final = "geomill.stirred"
"""The subject on which lanes of small inputs are announced."""
STIRRED_LARGE: Final = f"{STIRRED}.large"
MOST_UNHEARD: Final = 32
"""How many announcements the server gives a worker that does not show that it hears them: one that is frozen leaves the
others to those that wait as well."""
WAITING: Final = "waiting"
"""The group of workers of which one hears of each job."""


class Announcements:
    """What one worker hears of, and what it tells others."""

    def __init__(self, connection: Client, hear: Callable[[str], None]) -> None:
        """Call `hear` with each lane of which this worker hears."""
        self._connection = connection
        self._hear = hear
        self._all: Subscription
        self._alone: Subscription
        self._is_listening = False
        self._is_waiting = False
        self._has_room = False
        self._heard = 0
        self._owed: set[str] = set()
        """The lanes that this worker alone has heard of, and of which it has not found the end since."""
        self._changing = anyio.Lock(fast_acquire=True)

    async def announce(self, lane: str) -> None:
        """Tell workers that there is a job in a lane."""
        await self._connection.publish(STIRRED_LARGE if is_large(lane) else STIRRED, lane.encode())

    async def listen(self) -> None:
        """Begin to hear of all jobs, once."""
        if not self._is_listening:
            await self._connection.subscribe(STIRRED_LARGE, cb=self._hear_of_any)
            self._all = await self._connection.subscribe(STIRRED, cb=self._hear_of_any)
            self._alone = await self._connection.subscribe(STIRRED, queue=WAITING, cb=self._hear_alone)
            await self._stop(self._alone)
            self._is_listening = True

    async def wait(self) -> None:
        """Hear of jobs for this worker alone, as it has room for them."""
        self._has_room = True
        if not self._is_waiting:
            async with self._changing:
                await self._join()
                await self._stop(self._all)
                self._is_waiting = True

    async def close(self) -> None:
        """Pass on what this worker alone has heard of: it has no room."""
        self._has_room = False
        if self._owed:
            await self._leave()

    def note_end(self, lane: str) -> None:
        """Note that this worker has found the end of a lane."""
        self._owed.discard(lane)

    async def _hear_of_any(self, message: Msg) -> None:
        self._hear(message.data.decode())
        if self._is_waiting and message.subject == STIRRED:  # the client has connected again, and subscribed to all
            await self._stop(self._all)

    async def _hear_alone(self, message: Msg) -> None:
        self._owed.add(lane := message.data.decode())
        self._hear(lane)
        self._heard += 1
        if not self._has_room:
            await self._leave()
        elif self._heard >= MOST_UNHEARD // 2:
            async with self._changing:
                await self._join()

    async def _leave(self) -> None:
        """Hear of all jobs, and let another worker hear of those that only this one has heard of."""
        async with self._changing:
            await self._resume(self._all)
            await self._stop(self._alone)
            self._is_waiting = False
            passed_on, self._owed = self._owed, set()
            for lane in passed_on:
                await self.announce(lane)

    async def _join(self) -> None:
        """Be one of those who wait, and may hear of so many further jobs."""
        self._heard = 0
        await self._stop(self._alone)
        await self._resume(self._alone)
        await self._stop(self._alone, after=MOST_UNHEARD)

    async def _resume(self, subscription: Subscription) -> None:
        await self._connection._send_subscribe(subscription)  # noqa: SLF001 - see `_stop`

    async def _stop(self, subscription: Subscription, *, after: int = 0) -> None:
        """Have the server send no more, at once or after so many messages: what it has sent before is still heard.

        The client's own `unsubscribe` forgets what is on its way, and costs a task to subscribe again.
        """
        await self._connection._send_unsubscribe(subscription._id, limit=after)  # noqa: SLF001 - see above
