"""Promises places to requests before their bodies are received, or refuses them.

A request is accepted or refused when its header arrives, so that no client uploads in vain. The depth limits the places
in use at a time. It is the largest of: as many conversions as can start within half a second at the recent rate, so
that accepted requests are served soon; a burst, as far as it can start within a few seconds; and a few for each
converter, however slow it is. The queue's own size is the upper bound. An account that uses less than its share is
accepted beyond the depth: a flood fills the common places, not those reserved for other accounts. While requests are
being refused, an account gets no more than its share, except of converters that would have no work: accounts take
turns, so its second file would wait for a turn of all others, twice as long as the depth is meant to allow.

Uploads that have become slow occupy no place, so the depth does not limit their number. Of the upper bound, an account
leaves places to others, as in the queue.

Pure: the clock is an argument, and every change is one synchronous call.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Self

from sandbox.queue import leaves_places
from service.errors import Overloaded
from service.ids import AccountId

QUEUE_SECONDS = 0.5
"""The longest time that an accepted request should wait, as estimated from the recent rate."""
BURST_SECONDS = 8.0
BURST_EACH = 32
"""This many conversions per converter are a burst, not a flood, if they can start within `BURST_SECONDS`."""
FEW_EACH = 4
"""How many conversions may wait for each converter, however slow it is."""
EXPECTED_PER_SECOND = 80.0
"""The rate assumed until one has been measured, and again when nothing waits: slow files may be over."""
RESERVED_SHARE = 8
"""One in this many places is reserved for accounts that use less than their share."""
PROMPT_SECONDS = 2.0
"""The age at which an upload counts as slow: it keeps its promise but no longer occupies a place."""
VISITORS = 8
"""How many unidentified callers may be looked up at a time while the service is full or would be with them."""
LONGEST_RETRY_SECONDS = 30
REFUSING_SECONDS = 1.0
"""How long the service counts as overloaded after a refusal."""
FULL = "The service has too many conversions waiting. Send the request again later."
_NOBODY = ""
"""An account with nothing in progress."""
_MEMORY_SECONDS = 1.0
"""The time after which the weight of what ended is a third in the recent rate.

It is time, not a number of conversions: the depth must soon follow when large files come after small ones.
"""
_ASSUMED = _MEMORY_SECONDS, _MEMORY_SECONDS * EXPECTED_PER_SECOND


class Promise:
    """A place for one request of an account, or of an unidentified caller (`account_id` is None).

    As a context, it ends with the block.
    """

    __slots__ = ("_promises", "account_id", "at", "counts", "holder", "is_open")

    def __init__(self, promises: "Promises", account_id: AccountId | None, at: float, holder: str = _NOBODY) -> None:
        """`holder` is the account's id as text."""
        self.account_id = account_id
        self.holder = holder
        self.at = at
        self.counts = account_id is not None
        self.is_open = True
        self._promises = promises

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """End the promise: its request has ended or is about to enter the queue. Releasing twice has no effect."""
        self._promises.release(self)


class Promises:
    """Promises places to requests.

    Args:
        converters: the number of concurrent conversions.
        most: the upper bound of the depth.
        taken: returns the number of places taken in the queue.
        taken_by: a live view of the places that each account has taken, by the account's id as text.
        now: returns the time in seconds.
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
        self._open_of: dict[str, int] = {}
        self._busy_seconds, self._ends = _ASSUMED
        self.depth = self._depth()
        """The number of places in use at a time that are open to all accounts."""
        self._last_end: float | None = None
        self._refused_since = now()
        self._refused_at = -math.inf
        self._refused = 0
        self._refused_per_second = 0.0

    @property
    def is_full(self) -> bool:
        """Whether every account is refused, even one with nothing in progress."""
        return not self._has_place(_NOBODY)

    @property
    def is_refusing(self) -> bool:
        """Whether a request was refused within the last second."""
        return self._now() - self._refused_at < REFUSING_SECONDS

    def ask(self, account_id: AccountId) -> Promise:
        """Promise a place.

        Raises:
            Overloaded: there is no place for this account.
        """
        promise = self.seek(account_id)
        if promise is None:
            raise Overloaded(FULL, self.retry_after())
        return promise

    def seek(self, account_id: AccountId) -> Promise | None:
        """Promise a place; None if there is none for this account."""
        account = str(account_id)
        if not self._has_place(account):
            return None
        promise = Promise(self, account_id, self._now(), account)
        self._prompt.append(promise)
        self._counting += 1
        self._open += 1
        self._held[account] += 1
        self._open_of[account] = self._open_of.get(account, 0) + 1
        return promise

    def seek_visit(self) -> Promise | None:
        """Admit an unidentified caller for the lookup of its account; it must then ask for a place.

        None if the service is full and too many such callers are present.
        """
        if self._visitors >= VISITORS and self._under_way() + self._visitors >= self.depth:
            return None
        self._visitors += 1
        return Promise(self, None, self._now())

    def forget_place(self, promise: Promise) -> None:
        """Stop counting a place for a promise, also in the share of its account, so that others may use it."""
        if promise.counts:
            promise.counts = False
            self._counting -= 1
            holder = promise.holder
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

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
        self._open_of[promise.holder] -= 1
        if not self._open_of[promise.holder]:
            del self._open_of[promise.holder]

    def note_end(self) -> None:
        """Record that a place became free; the time since the last one measures the rate if other requests waited."""
        now = self._now()
        others_wait = self._taken() >= self._converters
        if others_wait and self._last_end is not None:
            seconds = now - self._last_end
            weight = math.exp(-seconds / _MEMORY_SECONDS)
            self._busy_seconds = self._busy_seconds * weight + seconds
            self._ends = self._ends * weight + 1
            self.depth = self._depth()
        elif not others_wait and self._rate() < EXPECTED_PER_SECOND:
            self._busy_seconds, self._ends = _ASSUMED
            self.depth = self._depth()
        self._last_end = now if others_wait else None

    def retry_after(self) -> int:
        """Return the seconds after which a refused client may retry, spread so that clients do not return together.

        The spread is as long as serving all of them takes; each call counts as one refused client.
        """
        self._refused_at = now = self._now()
        self._refused += 1
        if now - self._refused_since >= 1.0:
            self._refused_per_second = self._refused / (now - self._refused_since)
            self._refused, self._refused_since = 0, now
        spread = max(2.0, self._refused_per_second / self._rate())
        return 1 + int(random.random() * min(math.ceil(spread), LONGEST_RETRY_SECONDS))  # noqa: S311 - not a secret

    def _has_place(self, account: str) -> bool:
        left = self._most - self._taken() - self._open - 1
        taken = self._open_of.get(account, 0)
        if not leaves_places(taken, 1, left, places=self._most, converters=self._converters):
            return False
        under_way = self._under_way()
        open_to_all = self._converters if self.is_refusing else self.depth
        return under_way < open_to_all or self._has_place_of_its_share(account, under_way)

    def _has_place_of_its_share(self, account: str, under_way: int) -> bool:
        """Whether the account uses less than its share, and other such accounts leave a place, reserved or not."""
        has, held, taken_by = self._has(account), self._held.keys(), self._taken_by.keys()
        if has >= self._share(max(len(held), len(taken_by))):
            return False  # decided without the cost of the union below
        share = self._share(len(held | taken_by | {account}))
        if has >= share:
            return False
        reserved = max(self._converters, self.depth // RESERVED_SHARE)
        if under_way < self.depth + reserved:
            return True
        # The depth may have fallen since other accounts took places; the reserved places remain available.
        for each in chain(taken_by, held - taken_by):
            places = self._has(each)
            reserved -= places if places <= share else 0
            if reserved <= 0:
                return False  # at once, so that the cost of a refusal does not grow with the number of accounts
        return True

    def _share(self, accounts: int) -> int:
        return max(1, self.depth // max(1, accounts))

    def _rate(self) -> float:
        """How many conversions ended in each second of late in which others waited."""
        return self._ends / self._busy_seconds

    def _depth(self) -> int:
        rate = self._rate()
        burst = min(self._converters * BURST_EACH, int(BURST_SECONDS * rate))
        waiting = max(self._converters * FEW_EACH, burst, int(QUEUE_SECONDS * rate))
        return min(self._converters + waiting, self._most)

    def _has(self, account: str) -> int:
        return self._held.get(account, 0) + self._taken_by.get(account, 0)

    def _under_way(self) -> int:
        """The places taken, plus those promised to uploads that are not slow."""
        slow = self._now() - PROMPT_SECONDS
        while self._prompt and (self._prompt[0].at < slow or not self._prompt[0].counts):
            self.forget_place(self._prompt.popleft())
        return self._taken() + self._counting
