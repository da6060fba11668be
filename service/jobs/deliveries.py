"""What a worker takes from the queue: it looks into the lanes in turn, as far as they may contain a job."""

import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import anyio
import msgspec
import nats.errors
from anyio.lowlevel import checkpoint_if_cancelled
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import api

from service.errors import QueueUnavailable
from service.jobs.announcements import Announcements
from service.jobs.lanes import Lanes, is_large
from service.jobs.queue_faults import ANSWER_SECONDS, translated
from service.jobs.stream import ALL_LANES, LIST_LANES, job_in, lane_in, name_of, next_of

MOST_AT_ONCE: Final = 64
"""The most jobs that a worker asks for at once."""
LATE_SECONDS: Final = 0.004
"""How long the consumer of a lane may not count a job yet that is already stored and announced: until then, the server
is asked to wait for it. Then it also finds what is stored and not counted."""
AGAIN_SECONDS: Final = 0.1
"""After how long a worker looks once more where it has found none of the jobs of which it had just heard. On a busy
host, the server itself waits for a core between announcing a job and counting it: for up to 0.2 s, rarely."""
LOOK_AGAIN_SECONDS: Final = 1.0
"""How often a worker checks all lanes, however much it finds in some: redelivered messages are not announced."""


class _Consumer(msgspec.Struct, frozen=True):
    """What waits in one lane, and what workers have of it, which may be delivered again."""

    name: str
    num_pending: int = 0
    num_ack_pending: int = 0


class _Consumers(msgspec.Struct, frozen=True):
    """What the server says of the lanes."""

    consumers: list[_Consumer] = []


class Delivery:
    """A message that only this worker has, until it acknowledges or returns it or stops sending signs of life."""

    def __init__(self, message: Msg, announce: Callable[[str], Awaitable[None]]) -> None:
        """`announce` tells workers that there is a job in a lane."""
        self.is_first = message.metadata.num_delivered == 1
        self.following = message.metadata.num_pending
        """How many jobs its lane has after it, as far as the server counts them."""
        self.is_followed = self.following > 0 or not self.is_first
        """Whether its lane may have more: the server does not count those that it delivers again."""
        self.lane = lane_in(message.subject)
        self.job_id = job_in(message.subject)
        """The job that its subject names, without any proof; None if it names none."""
        self.is_large = is_large(self.lane)
        self.data = message.data
        self._message = message
        self._announce = announce

    async def acknowledge(self) -> None:
        """Remove it from the queue. If this is lost, the message is delivered again."""
        with suppress(nats.errors.Error):
            await self._message.ack()

    async def give_back(self, seconds: float = 0.0) -> None:
        """Return it to the queue, to be delivered again after `seconds`.

        All workers look equally often: without chance, whoever returns it could be the first to look each time.
        """
        chance = random.uniform(0, LOOK_AGAIN_SECONDS)  # noqa: S311 - not a secret
        with suppress(nats.errors.Error):
            await self._message.nak(delay=seconds + chance if seconds else None)
            if not seconds:
                await self._announce(self.lane)

    async def keep(self) -> None:
        """Tell the queue that this worker still works on the message."""
        with suppress(nats.errors.Error):
            await self._message.in_progress()


class _Answers:
    """What one subscription hears. The client's own way to wait for a message makes two tasks for each."""

    def __init__(self) -> None:
        self._heard: deque[Msg] = deque()
        self._came = anyio.Event()

    async def receive(self, message: Msg) -> None:
        """Note a message."""
        self._heard.append(message)
        self._came.set()

    async def next(self) -> Msg:
        """Return the next message.

        Raises:
            TimeoutError: none has come for a while.
        """
        if not self._heard:
            self._came = anyio.Event()
            with anyio.fail_after(ANSWER_SECONDS):
                await self._came.wait()
        return self._heard.popleft()


class Deliveries:
    """The messages of the queue as one worker takes them."""

    def __init__(
        self, connection: Client, require_connection: Callable[[], None], check: Callable[[], Awaitable[int]]
    ) -> None:
        """`check` returns how many jobs are in the queue; both functions raise the errors of an unreachable server."""
        self._connection = connection
        self._require_connection = require_connection
        self._check = check
        self._lanes = Lanes()
        self._looked_at = -math.inf
        self._looking = anyio.Lock(fast_acquire=True)
        self._stirred = anyio.Event()
        self._announcements = Announcements(connection, self._on_announced)
        self._heard_at: dict[str, float] = {}
        """When this worker has last heard of each lane."""
        self._left: dict[str, int] = {}
        """How many jobs were left in lanes of which this worker has not found the end."""
        self._doubted: dict[str, float] = {}
        """The lanes where it has found none of the jobs of which it had just heard, and when."""
        self._subscription: Subscription | None = None
        self._answers = _Answers()
        self._takers = 0
        self._found: deque[Delivery] = deque()
        self.is_left = False
        """Whether no further jobs are taken."""

    async def announce(self, lane: str) -> None:
        """Tell workers that there is a job in a lane."""
        await self._announcements.announce(lane)

    def leave(self) -> None:
        """Take no further jobs."""
        self.is_left = True
        self._stirred.set()

    def wake(self) -> None:
        """Make those who wait for a job look again: something has changed that decides whether they may."""
        self._stirred.set()

    async def take(
        self, may_be_large: Callable[[], bool], room: Callable[[], int] = lambda: MOST_AT_ONCE
    ) -> Delivery | None:
        """Wait for a job from the next lane that has one; jobs with large inputs only if `may_be_large`.

        Takes none while `room` is 0, and no more of them at once than it says; callers that wait get those of one
        request. None once the queue is left.
        """
        self._takers += 1
        try:
            async with self._looking:
                while not self.is_left:
                    if self._found:
                        return self._found.popleft()
                    self._stirred = anyio.Event()
                    with suppress(QueueUnavailable), translated():
                        if not (most := min(self._takers, room())):
                            await self._announcements.close()
                        elif await self._poll_lanes(most, may_be_large):
                            continue
                        else:
                            await self._announcements.wait()
                    with anyio.move_on_after(AGAIN_SECONDS if self._doubted else LOOK_AGAIN_SECONDS):
                        await self._stirred.wait()
        finally:
            self._takers -= 1
            if not self._takers or self.is_left:
                await self._take_no_more()
        return None

    async def _poll_lanes(self, most: int, may_be_large: Callable[[], bool]) -> bool:
        """Look for jobs in one lane after the other; return whether there were any."""
        await self._announcements.listen()
        now = time.monotonic()
        for lane in [lane for lane, at in self._doubted.items() if now - at >= AGAIN_SECONDS]:
            del self._doubted[lane]
            self._lanes.stir(lane)
        if now - self._looked_at >= LOOK_AGAIN_SECONDS:
            self._looked_at = now
            if await self._check():  # one question instead of one for each lane
                for lane in await self._occupied():
                    self._lanes.stir(lane)
        while lanes := self._next_lanes(most, may_be_large=may_be_large()):
            each, rest = divmod(most, len(lanes))
            shares = {lane: each + (place < rest) for place, lane in enumerate(lanes)}
            # The server says how many follow, and that there are no more only if more were asked for.
            await self._look_into({lane: min(share, self._most_in(lane)) for lane, share in shares.items()})
            if self._found:
                return True
        return False

    def _most_in(self, lane: str) -> int:
        """How many jobs to ask a lane for: the one of which this worker alone has heard has none after it, mostly."""
        return 1 if is_large(lane) else self._announcements.heard(lane) or MOST_AT_ONCE

    async def _occupied(self) -> list[str]:
        """Return the lanes that have jobs, including those that workers have."""
        with translated():
            answer = await self._connection.request(LIST_LANES, timeout=ANSWER_SECONDS)
        known = {name_of(lane): lane for lane in ALL_LANES}
        consumers = msgspec.json.decode(answer.data, type=_Consumers).consumers
        return [known[one.name] for one in consumers if one.name in known and (one.num_pending or one.num_ack_pending)]

    def _next_lanes(self, most: int, *, may_be_large: bool) -> list[str]:
        """The next lanes that may contain jobs; of those with large inputs, one at a time."""
        lanes: list[str] = []
        while len(lanes) < most and (lane := self._lanes.next(may_be_large=may_be_large)):
            lanes.append(lane)
            may_be_large = may_be_large and not is_large(lane)
        return lanes

    async def _take_no_more(self) -> None:
        """Leave to other workers what nobody waits for here."""
        with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
            while self._found:
                await self._found.popleft().give_back()
            await self._announcements.close()

    async def _look_into(self, lanes: Mapping[str, int]) -> None:
        """Ask for as many jobs of each lane as are given, and note those that there are."""
        # What is asked for arrives: it would be nobody's for a lease.
        with anyio.CancelScope(shield=True), translated():
            self._require_connection()
            await self._ask(dict(lanes))
        await checkpoint_if_cancelled()

    async def _ask(self, left: dict[str, int]) -> None:
        """Ask for jobs of lanes, and count down how many are left that each lane does not have."""
        if self._subscription is None:
            self._answers = _Answers()
            inbox = self._connection.new_inbox()
            self._subscription = await self._connection.subscribe(inbox, cb=self._answers.receive)
        empty, may_have_more, asked, now = 0, set[str](), dict(left), time.monotonic()
        heard = {lane: self._announcements.heard(lane) for lane in left}
        try:
            await self._announcements.expect(lane for lane, most in left.items() if self._left.get(lane, 0) <= most)
            for lane, most in left.items():
                question = _question(most, LATE_SECONDS - (now - self._heard_at.get(lane, -math.inf)))
                await self._connection.publish(next_of(lane), question, reply=self._subscription.subject)
            while empty < sum(missing > 0 for missing in left.values()):
                answer = await self._answers.next()
                if answer.headers and api.Header.STATUS in answer.headers:
                    empty += 1
                    continue
                with suppress(nats.errors.NotJSMessageError):  # a stray message: anyone may send to the subject
                    if (delivery := Delivery(answer, self.announce)).lane in left:
                        self._found.append(delivery)
                        left[delivery.lane] -= 1
                        self._left[delivery.lane] = delivery.following
                        if not left[delivery.lane] and delivery.is_followed:
                            self._lanes.stir(delivery.lane)
                            may_have_more.add(delivery.lane)
            # Where there is none, others have taken those of which this worker had heard.
            self._doubt(lane for lane, most in asked.items() if left[lane] == most and (heard[lane] or is_large(lane)))
            taken = {lane: most - left[lane] or heard[lane] for lane, most in asked.items()}
            self._note_ends({lane: number for lane, number in taken.items() if lane not in may_have_more})
        except (nats.errors.Error, TimeoutError):  # a late answer must not be taken for that to another question
            stale, self._subscription = self._subscription, None
            with suppress(nats.errors.Error):
                await stale.unsubscribe()
            if not self._found:
                raise

    def _doubt(self, lanes: Iterable[str]) -> None:
        """Look once more later into those of these lanes of which this worker has just heard, and where none was."""
        now = time.monotonic()
        for lane in lanes:
            if now - self._heard_at.get(lane, -math.inf) < AGAIN_SECONDS:
                self._doubted[lane] = now

    def _note_ends(self, lanes: Mapping[str, int]) -> None:
        """Note the ends of these lanes, of each of which so many jobs were taken."""
        for lane, taken in lanes.items():
            self._left.pop(lane, None)
            is_owed = self._announcements.note_end(lane, taken)
            # If it does not expect the next one, others have taken what was left, and another job may have come.
            if is_owed or not self._announcements.expects(lane):
                self._lanes.stir(lane)

    def _on_announced(self, lane: str) -> None:
        self._heard_at[lane] = time.monotonic()
        self._lanes.stir(lane)
        self._stirred.set()


def _question(most: int, seconds: float) -> bytes:
    """Return the question for up to so many jobs, of which the server awaits the first for some seconds, if any."""
    expires = b',"expires":%d' % (seconds * 1e9) if seconds > 0 else b""
    return b'{"batch":%d,"no_wait":true%b}' % (most, expires)
