"""Places that are promised to requests before anything of them is received, and to whom none is promised.

A request is told at its head whether its files will be converted, so that nobody uploads for nothing. Under way at a
time are as many as can be begun within most of a second at the rate of late, so that whoever is let in is served soon;
a burst, if it can be begun within a few seconds; and a few for each converter however slow it is. The queue's own size
is the upper bound. An account that has less than its share under way is let in beyond that: those who flood the service
fill what is for all, not what is kept for the others.

Pure: the clock is an argument, every change is one synchronous call.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping

from service.errors import Overloaded
from service.ids import AccountId

QUEUE_SECONDS = 0.8
"""How long whoever is let in should wait at most, as far as the rate of late tells."""
BURST_SECONDS = 4.0
BURST_EACH = 32
"""So many for each converter are no flood where they can be begun within so long."""
FEW_EACH = 16
"""So many may wait for each converter however slow it is."""
EXPECTED_PER_SECOND = 80.0
"""The rate that is assumed until a better one is known."""
RESERVED_SHARE = 8
"""One for each so many places is kept for accounts that have less than their share."""
PROMPT_SECONDS = 2.0
"""After so long an upload is a slow one, which keeps its promise but keeps nobody else out."""
VISITORS = 8
"""Callers not known yet who may be looked up at a time while the service is full, or would be with all of them."""
LONGEST_RETRY_SECONDS = 30
FULL = "The service has more conversions waiting than it can take. Send the request again later."
_NOBODY = ""
"""An account that has nothing under way."""
_LATE = 0.02
"""The weight of the last interval in the rate of late: with more of it the depth would follow chance."""


class Promise:
    """A place for one request of an account, or of a caller not known yet (`account_id` is None)."""

    __slots__ = ("_promises", "account_id", "at", "counts", "is_open")

    def __init__(self, promises: "Promises", account_id: AccountId | None, at: float) -> None:
        self.account_id = account_id
        self.at = at
        self.counts = account_id is not None
        self.is_open = True
        self._promises = promises

    def release(self) -> None:
        """End it: its request has ended, or takes its place in the queue now. Doing it twice changes nothing."""
        self._promises.release(self)


class Promises:
    """Promises places to requests.

    Args:
        converters: how many files are converted at once.
        most: how many may be under way at most.
        taken: tells how many places of the queue are taken.
        taken_by: how many of them each account has that has any, as it is at any time; by the account's id as text.
        now: the time in seconds.
    """

    def __init__(
        self,
        *,
        converters: int,
        most: int,
        taken: Callable[[], int],
        taken_by: Mapping[str, int],
        now: Callable[[], float],
    ) -> None:
        self._converters = converters
        self._most = most
        self._taken = taken
        self._taken_by = taken_by
        self._now = now
        self._prompt: deque[Promise] = deque()
        self._counting = 0
        self._open = 0
        self._visitors = 0
        self._held: Counter[str] = Counter()
        self._seconds_each = 1 / EXPECTED_PER_SECOND
        self._last_end: float | None = None
        self._refused_since = now()
        self._refused = 0
        self._refused_per_second = 0.0

    @property
    def depth(self) -> int:
        """How many may be under way at a time for all."""
        burst = min(self._converters * BURST_EACH, int(BURST_SECONDS / self._seconds_each))
        waiting = max(self._converters * FEW_EACH, burst, int(QUEUE_SECONDS / self._seconds_each))
        return min(self._converters + waiting, self._most)

    @property
    def is_full(self) -> bool:
        """Whether everybody is refused, accounts that have nothing under way included."""
        return not self._has_place(_NOBODY)

    def ask(self, account_id: AccountId) -> Promise:
        """Promise a place.

        Raises:
            Overloaded: there is none for this account.
        """
        promise = self.seek(account_id)
        if promise is None:
            raise Overloaded(FULL, self.retry_after())
        return promise

    def seek(self, account_id: AccountId) -> Promise | None:
        """Promise a place; None where there is none for this account."""
        account = str(account_id)
        if not self._has_place(account):
            return None
        promise = Promise(self, account_id, self._now())
        self._prompt.append(promise)
        self._counting += 1
        self._open += 1
        self._held[account] += 1
        return promise

    def seek_visit(self) -> Promise | None:
        """Let a caller in who is not known yet, to be looked up; it has still to ask for a place.

        None where the service is full, and too many of them are there.
        """
        if self._visitors >= VISITORS and self._under_way() + self._visitors >= self.depth:
            return None
        self._visitors += 1
        return Promise(self, None, self._now())

    def forget_place(self, promise: Promise) -> None:
        """Count no place for a promise any more: it keeps nobody else out."""
        if promise.counts:
            promise.counts = False
            self._counting -= 1

    def release(self, promise: Promise) -> None:
        """End a promise; see `Promise.release`."""
        if not promise.is_open:
            return
        promise.is_open = False
        if promise.account_id is None:
            self._visitors -= 1
            return
        self.forget_place(promise)
        self._open -= 1
        holder = str(promise.account_id)
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]

    def note_end(self) -> None:
        """Note that a place has become free; the time since the last one tells the rate, if others waited all along."""
        now = self._now()
        others_wait = self._taken() >= self._converters
        if others_wait and self._last_end is not None:
            seconds = now - self._last_end
            self._seconds_each += (seconds - self._seconds_each) * _LATE
        self._last_end = now if others_wait else None

    def retry_after(self) -> int:
        """Spread those who are refused over as long as serving them takes, so that they do not return together.

        Each call counts as one of them. Returns seconds.
        """
        now = self._now()
        self._refused += 1
        if now - self._refused_since >= 1.0:
            self._refused_per_second = self._refused / (now - self._refused_since)
            self._refused, self._refused_since = 0, now
        spread = max(2.0, self._refused_per_second * self._seconds_each)
        return 1 + int(random.random() * min(math.ceil(spread), LONGEST_RETRY_SECONDS))  # noqa: S311 -- no secret

    def _has_place(self, account: str) -> bool:
        if self._taken() + self._open >= self._most:
            return False
        under_way, depth = self._under_way(), self.depth
        if under_way < depth:
            return True
        has = self._has(account)
        if has and has >= max(1, depth // max(1, len(self._held), len(self._taken_by))):
            return False  # without counting those who are in both
        accounts = {account, *self._held, *self._taken_by}
        share = max(1, depth // len(accounts))
        if has >= share:
            return False
        reserved = max(self._converters, depth // RESERVED_SHARE)
        if under_way < depth + reserved:
            return True
        # The depth may have fallen since others took theirs: what is reserved is there all the same.
        return sum(places for each in accounts if (places := self._has(each)) <= share) < reserved

    def _has(self, account: str) -> int:
        return self._held.get(account, 0) + self._taken_by.get(account, 0)

    def _under_way(self) -> int:
        """Places that are taken, and those that are promised to uploads that will soon be here."""
        slow = self._now() - PROMPT_SECONDS
        while self._prompt and (self._prompt[0].at < slow or not self._prompt[0].counts):
            self.forget_place(self._prompt.popleft())
        return self._taken() + self._counting
