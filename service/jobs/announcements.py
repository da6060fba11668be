"""How workers hear of lanes that have a job to take, at a cost that does not grow with their number.

Of the workers that wait for jobs, one hears of each. A worker without room hears of each lane once: it notes the lane,
and hears of it again when it looks there. Large inputs are few, and not every worker that waits may take one, so all
workers hear of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from service.jobs.lanes import is_large
from service.jobs.stream import ALL_LANES, STIRRED

MOST_UNHEARD: Final = 32
"""How many announcements the server gives a worker that does not show that it hears them: one that is frozen leaves the
others to those that wait as well."""
WAITING: Final = "waiting"
"""The group of workers of which one hears of each job."""
_SMALL: Final = [lane for lane in ALL_LANES if not is_large(lane)]


class Announcements:
    """What one worker hears of, and what it passes on to others."""

    def __init__(self, connection: Client, hear: Callable[[str], None]) -> None:
        """Call `hear` with each lane of which this worker hears."""
        self._connection = connection
        self._hear = hear
        self._once: dict[str, Subscription] = {}
        self._alone: Subscription
        self._expected: set[str] = set()
        """The lanes of whose next job the server tells this worker, which does not wait."""
        self._is_listening = False
        self._is_waiting = False
        self._has_room = False
        self._heard = 0
        self._owed: Counter[str] = Counter()
        """How often this worker alone has heard of lanes of which it has not found the end since."""
        self._changing = anyio.Lock(fast_acquire=True)

    async def announce(self, lane: str) -> None:
        """Tell workers of a job in a lane that was there before: of others, the server tells them."""
        await self._connection.publish(f"{STIRRED}.{lane}")

    async def listen(self) -> None:
        """Begin to hear of all lanes, once."""
        if not self._is_listening:
            subscribe = self._connection.subscribe
            await subscribe(f"{STIRRED}.large.*", cb=self._hear_of_large)
            for former in (STIRRED, f"{STIRRED}.large"):
                await subscribe(former, cb=self._hear_of_former)
            self._once = {
                lane: await subscribe(f"{STIRRED}.{lane}", cb=partial(self._hear_once, lane)) for lane in _SMALL
            }
            self._alone = await subscribe(f"{STIRRED}.small.*", queue=WAITING, cb=self._hear_alone)
            await self._send(_stop(self._alone))
            await self.expect(_SMALL)
            self._is_listening = True

    def expects(self, lane: str) -> bool:
        """Whether this worker hears of the next job of a lane, unless another one that waits does."""
        return self._is_waiting or lane in self._expected or lane not in self._once

    async def expect(self, lanes: Iterable[str]) -> None:
        """Hear of the next job of each of these lanes, where this worker is about to look."""
        if further := [lane for lane in lanes if not self.expects(lane)]:
            self._expected.update(further)
            await self._send(*(_resume(self._once[lane], most=1) for lane in further))

    async def wait(self) -> None:
        """Hear of jobs for this worker alone, as it has room for them."""
        self._has_room = True
        if not self._is_waiting:
            async with self._changing:
                await self._join()
                await self._send(*(_stop(self._once[lane]) for lane in self._expected))
                self._expected.clear()
                self._is_waiting = True

    async def close(self) -> None:
        """Pass on what this worker alone has heard of: it has no room."""
        self._has_room = False
        if self._owed:
            await self._leave()

    def heard(self, lane: str) -> int:
        """Of how many jobs this worker alone has heard since it has found the end of a lane."""
        return self._owed[lane]

    def note_end(self, lane: str, taken: int) -> bool:
        """Note the end of a lane, of which so many jobs were taken; return whether this worker has heard of more."""
        left = self._owed.pop(lane, 0) - taken
        if left > 0:
            self._owed[lane] = left
        return left > 0

    async def _hear_of_large(self, message: Msg) -> None:
        self._hear(_lane_in(message))

    async def _hear_of_former(self, message: Msg) -> None:
        self._hear(message.data.decode())

    async def _hear_once(self, lane: str, _message: Msg) -> None:
        self._hear(lane)
        if lane in self._expected:
            self._expected.remove(lane)
        else:  # the client has connected again, and subscribed to all
            await self._send(*(_stop(self._once[one]) for one in _SMALL if one not in self._expected))

    async def _hear_alone(self, message: Msg) -> None:
        self._owed[lane := _lane_in(message)] += 1
        self._hear(lane)
        self._heard += 1
        if not self._has_room:
            await self._leave()
        elif self._heard >= MOST_UNHEARD // 2:
            async with self._changing:
                await self._join()

    async def _leave(self) -> None:
        """Hear of each lane, and let another worker hear of those that only this one has heard of."""
        async with self._changing:
            self._is_waiting = False
            await self.expect(_SMALL)
            await self._send(_stop(self._alone))
            passed_on, self._owed = self._owed, Counter()
            for lane in passed_on:
                await self.announce(lane)

    async def _join(self) -> None:
        """Be one of those who wait, and may hear of so many further jobs."""
        self._heard = 0
        await self._send(_resume(self._alone, most=MOST_UNHEARD))

    async def _send(self, *commands: bytes) -> None:
        """Change in one piece what the server sends.

        The client's own `unsubscribe` forgets what is on its way, and costs a task to subscribe again.
        """
        await self._connection._send_command(b"".join(commands))  # noqa: SLF001 - see above
        await self._connection._flush_pending()  # noqa: SLF001 - see above


def _lane_in(message: Msg) -> str:
    return message.subject.removeprefix(f"{STIRRED}.")


def _stop(subscription: Subscription, *, after: int = 0) -> bytes:
    """Have the server send no more, at once or after so many messages: what it has sent before is still heard."""
    return f"UNSUB {subscription._id} {after or ''}\r\n".encode()  # noqa: SLF001 - see `Announcements._send`


def _resume(subscription: Subscription, *, most: int) -> bytes:
    """Have the server send so many messages, whatever it was to send before: it counts anew."""
    again = f"SUB {subscription.subject} {subscription.queue} {subscription._id}\r\n"  # noqa: SLF001 - see `Announcements._send`
    return _stop(subscription) + again.encode() + _stop(subscription, after=most)
