"""The admission queue: bounded, fair between tenants and time-sliced, in front of a bounded number of converters.

Pure: it has no clock and makes no callbacks. Each change is one synchronous call that takes the time in seconds and
returns every ticket that got a converter or was suspended.
"""

import itertools
from collections import Counter, deque
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

QUANTUM_SECONDS = 0.5
"""How long a ticket keeps its converter before the queue may suspend it in favor of a tenant that has none."""
KEPT_SHARE = 8
"""One in this many places is for tenants that have none."""
_NONE = -1


class QueueFull(Exception):
    """The queue has no place left for this tenant; nothing was queued."""


class TenantLimit(Exception):
    """The tenant already has `taken` places and may not take as many more; nothing was queued."""

    def __init__(self, taken: int) -> None:
        super().__init__(f"the tenant has {taken} places")
        self.taken = taken


class State(Enum):
    """The state of a ticket."""

    RESERVED = auto()
    WAITING = auto()
    RUNNING = auto()
    SUSPENDED = auto()
    RELEASED = auto()


class QueueTicket:
    """A place in the queue; only the queue changes it. `slot` is set when it first runs."""

    __slots__ = ("_seconds", "is_limited", "since", "slot", "state", "tenant")

    def __init__(self, tenant: str, *, is_limited: bool) -> None:
        self.tenant, self.state, self.since = tenant, State.RESERVED, 0.0
        self.is_limited = is_limited
        self.slot = _NONE
        self._seconds = 0.0

    def seconds_run(self, now: float) -> float:
        """How long it has had a converter, excluding the time for which it was suspended."""
        return self._seconds + (now - self.since if self.state is State.RUNNING else 0.0)

    def enter(self, state: State, now: float) -> None:
        """Change its state; called only by the queue."""
        self._seconds = self.seconds_run(now)
        self.state, self.since = state, now

    def had_quantum(self, now: float) -> bool:
        """Whether it has been in its current state for at least a quantum."""
        return self.since + QUANTUM_SECONDS <= now


def leaves_places(taken: int, tickets: int, left: int, *, places: int, converters: int) -> bool:
    """Whether a tenant with `taken` places may take some for `tickets`, so that `left` of all `places` are free.

    Beyond one place per converter, it may have at most three times as many as it leaves free, so that a flood from one
    tenant leaves places for others. The last eighth of the places is not counted as free: it is for tenants that have
    none, since a few tenants that flood would otherwise take all of them.
    """
    common = left - places // KEPT_SHARE
    return left >= 0 and (not taken or (common >= 0 and taken + tickets <= max(converters, 3 * common)))


class AdmissionQueue:
    """Places for `converters` running tickets and `waiting` more, of which up to `suspended` may be suspended.

    A tenant may have `per_tenant` places, which readmitted tickets do not count against, as long as it
    `leaves_places`. A free converter goes to the tenant with the fewest running tickets, among equals to the one whose
    turn ended longest ago. While all converters are busy, a tenant with no running ticket gets the converter of a
    ticket that has run for a quantum, taken from the tenant that runs most. The suspended ticket keeps its slot and is
    the next of its tenant to run.
    """

    def __init__(self, *, converters: int, waiting: int, suspended: int = 0, per_tenant: int | None = None) -> None:
        self.places = converters + waiting
        self.places_taken = 0
        self.per_tenant = per_tenant or self.places
        self._converters = converters
        self._most_suspended = suspended
        self._free, self._spare = deque(range(converters)), deque(range(converters, converters + suspended))
        self._places: Counter[str] = Counter()
        self.places_by_tenant: Mapping[str, int] = MappingProxyType(self._places)
        """The number of places per tenant, for tenants that have any; a live view."""
        self._tickets: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()
        self._waiting: dict[str, deque[QueueTicket]] = {}
        self._turns: dict[str, int] = {}
        self._numbers = itertools.count()
        self._running: list[QueueTicket] = []
        self._suspended: list[QueueTicket] = []

    @property
    def waiting(self) -> int:
        """How many tickets wait for their first converter."""
        return sum(map(len, self._waiting.values()))

    @property
    def running(self) -> int:
        """How many tickets have had a converter, including suspended ones."""
        return len(self._running) + len(self._suspended)

    @property
    def suspended(self) -> int:
        """How many tickets are suspended."""
        return len(self._suspended)

    @property
    def is_idle(self) -> bool:
        """Whether a converter is free, and therefore no ticket waits."""
        return len(self._running) < self._converters

    def age(self, now: float) -> float:
        """How long the oldest waiting ticket has waited, in seconds; 0 if none waits."""
        return now - min((queue[0].since for queue in self._waiting.values() if queue), default=now)

    def left(self, tenant: str) -> int:
        """How many more places `per_tenant` leaves to the tenant."""
        return max(0, self.per_tenant - self._places[tenant])

    def require(self, tenant: str, tickets: int = 1) -> None:
        """Check that `enqueue` would succeed; a tenant without places may take more than its limit at once.

        Raises:
            TenantLimit: the tenant has reached its limit.
            QueueFull: too few places are free.
        """
        taken = self._places[tenant]
        if taken and taken + tickets > self.per_tenant:
            raise TenantLimit(taken)
        left = self.places - self.places_taken - tickets
        if not leaves_places(taken, tickets, left, places=self.places, converters=self._converters):
            raise QueueFull

    def enqueue(self, tenant: str, tickets: int = 1) -> list[QueueTicket]:
        """Take all places or none; each ticket must be released.

        Raises:
            TenantLimit, QueueFull: see `require`.
        """
        self.require(tenant, tickets)
        self._places[tenant] += tickets
        return self._take(tenant, tickets, is_limited=True)

    def readmit(self, tenant: str) -> QueueTicket:
        """Take a place for what was admitted elsewhere, however many are taken; it must be released.

        The caller bounds their number. It does not count as the tenant's: where it was admitted, it does.
        """
        [ticket] = self._take(tenant, 1, is_limited=False)
        return ticket

    def _take(self, tenant: str, tickets: int, *, is_limited: bool) -> list[QueueTicket]:
        self.places_taken += tickets
        self._tickets[tenant] += tickets
        self._turns.setdefault(tenant, next(self._numbers))
        self._waiting.setdefault(tenant, deque())
        return [QueueTicket(tenant, is_limited=is_limited) for _ in range(tickets)]

    def acquire(self, ticket: QueueTicket, now: float) -> list[QueueTicket]:
        """Make a reserved ticket wait for a converter; it may get one at once."""
        ticket.enter(State.WAITING, now)
        self._waiting[ticket.tenant].append(ticket)
        return self.tick(now)

    def release(self, ticket: QueueTicket, now: float) -> list[QueueTicket]:
        """Release a ticket's place and its converter, if it has one; releasing twice has no effect."""
        if ticket.state is State.RELEASED:
            return []
        if ticket.state is State.WAITING:
            self._waiting[ticket.tenant].remove(ticket)
        elif ticket.state is State.RUNNING:
            self._end_turn(ticket)
        elif ticket.state is State.SUSPENDED:
            self._suspended.remove(ticket)
        if ticket.slot != _NONE:
            (self._free if ticket.slot < self._converters else self._spare).append(ticket.slot)
        ticket.enter(State.RELEASED, now)
        self.places_taken -= 1
        self._places[ticket.tenant] -= ticket.is_limited
        self._tickets[ticket.tenant] -= 1
        if not self._places[ticket.tenant]:
            del self._places[ticket.tenant]
        if not self._tickets[ticket.tenant]:
            for of_tenants in (self._tickets, self._runs, self._turns, self._waiting):
                del of_tenants[ticket.tenant]
        return self.tick(now)

    def tick(self, now: float) -> list[QueueTicket]:
        """Assign all converters that can be assigned; also called when `due`."""
        changed: list[QueueTicket] = []
        while (ticket := self._next(now)) is not None:
            if len(self._running) == self._converters:
                changed.append(self._suspend_one(now))
            self._run(ticket, now)
            changed.append(ticket)
        return changed

    def due(self, now: float) -> float | None:
        """When the passing of time can next change anything, or None."""
        if self.places_taken == len(self._running):
            return None
        quanta = (ticket.since + QUANTUM_SECONDS for ticket in (*self._running, *self._suspended))
        return min((end for end in quanta if end > now), default=None)

    def _next(self, now: float) -> QueueTicket | None:
        """The ticket that gets a converter now, either a free one or that of a ticket that has run for a quantum."""
        is_free = len(self._running) < self._converters
        if not (is_free or any(ticket.had_quantum(now) for ticket in self._running)):
            return None
        heads: dict[str, QueueTicket] = {}
        if is_free or len(self._suspended) < self._most_suspended:
            heads = {tenant: queue[0] for tenant, queue in self._waiting.items() if queue}
        heads |= {ticket.tenant: ticket for ticket in reversed(self._suspended)}
        entitled = [
            (self._runs[tenant], self._turns[tenant], ticket)
            for tenant, ticket in heads.items()
            if is_free or not (self._runs[tenant] or (ticket.state is State.SUSPENDED and not ticket.had_quantum(now)))
        ]
        return min(entitled)[2] if entitled else None  # no two tenants have the same turn

    def _suspend_one(self, now: float) -> QueueTicket:
        lenders = (ticket for ticket in self._running if ticket.had_quantum(now))
        lender = min(lenders, key=lambda ticket: (-self._runs[ticket.tenant], ticket.since))
        self._end_turn(lender)
        self._suspended.append(lender)
        lender.enter(State.SUSPENDED, now)
        return lender

    def _run(self, ticket: QueueTicket, now: float) -> None:
        if ticket.state is State.WAITING:
            self._waiting[ticket.tenant].popleft()
            ticket.slot = (self._free or self._spare).popleft()
        else:
            self._suspended.remove(ticket)
        self._running.append(ticket)
        self._runs[ticket.tenant] += 1
        ticket.enter(State.RUNNING, now)

    def _end_turn(self, ticket: QueueTicket) -> None:
        self._running.remove(ticket)
        self._runs[ticket.tenant] -= 1
        self._turns[ticket.tenant] = next(self._numbers)
