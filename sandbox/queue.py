"""Who may run next: a bounded queue before a bounded number of workers, fair between tenants and sliced in time.

Pure: it has no clock and calls nobody. Each change is one synchronous call, with the time in seconds as an argument; it
returns every ticket that got a worker or was suspended by it.
"""

import itertools
from collections import Counter, deque
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

QUANTUM_SECONDS = 0.5
"""How long a ticket keeps its worker before it may be suspended in favour of a tenant that has none."""
_NONE = -1


class QueueFull(Exception):
    """The queue has no place left for this tenant; nothing was queued."""


class TenantLimit(Exception):
    """The tenant has `taken` places already and may not have so many more; nothing was queued."""

    def __init__(self, taken: int) -> None:
        super().__init__(f"the tenant has {taken} places")
        self.taken = taken


class State(Enum):
    """Where a ticket stands."""

    RESERVED = auto()
    WAITING = auto()
    RUNNING = auto()
    SUSPENDED = auto()
    RELEASED = auto()


class QueueTicket:
    """A place in the queue, changed by the queue alone. `slot` names its worker from the first time that it runs."""

    __slots__ = ("_seconds", "since", "slot", "state", "tenant")

    def __init__(self, tenant: str) -> None:
        self.tenant, self.state, self.since = tenant, State.RESERVED, 0.0
        self.slot = _NONE
        self._seconds = 0.0

    def seconds_run(self, now: float) -> float:
        """How long it has had a worker, without the time for which it was suspended."""
        return self._seconds + (now - self.since if self.state is State.RUNNING else 0.0)

    def enter(self, state: State, now: float) -> None:
        """Change its state: for the queue."""
        self._seconds = self.seconds_run(now)
        self.state, self.since = state, now

    def had_quantum(self, now: float) -> bool:
        """Whether it has been in its state for a quantum."""
        return self.since + QUANTUM_SECONDS <= now


class AdmissionQueue:
    """Places for `workers` tickets that run and `waiting` more; `suspended` of them may have lent their worker.

    A tenant may have `per_tenant` places, and, above one for each worker, three times as many as it leaves free: who
    floods the queue leaves places for others. A free worker goes to the tenant that runs least, and among equals to the
    one whose turn ended longest ago. While all are busy, a tenant that runs nothing gets the worker of a ticket that
    has had it for a quantum, one of the tenant that runs most; that ticket keeps its slot and is its tenant's next.
    """

    def __init__(self, *, workers: int, waiting: int, suspended: int = 0, per_tenant: int | None = None) -> None:
        self.places = workers + waiting
        self.places_taken = 0
        self.per_tenant = per_tenant or self.places
        self._workers = workers
        self._most_suspended = suspended
        self._free, self._spare = deque(range(workers)), deque(range(workers, workers + suspended))
        self._places: Counter[str] = Counter()
        self.places_by_tenant: Mapping[str, int] = MappingProxyType(self._places)
        """How many places each tenant has that has any; it changes with the queue."""
        self._runs: Counter[str] = Counter()
        self._waiting: dict[str, deque[QueueTicket]] = {}
        self._turns: dict[str, int] = {}
        self._numbers = itertools.count()
        self._running: list[QueueTicket] = []
        self._suspended: list[QueueTicket] = []

    @property
    def suspended(self) -> int:
        """How many tickets are suspended."""
        return len(self._suspended)

    def age(self, now: float) -> float:
        """How long the ticket that waits longest has waited, in seconds; 0 when none waits."""
        return now - min((queue[0].since for queue in self._waiting.values() if queue), default=now)

    def left(self, tenant: str) -> int:
        """How many more places the tenant may take of those that are its own to take."""
        return max(0, self.per_tenant - self._places[tenant])

    def require(self, tenant: str, tickets: int = 1) -> None:
        """See that `enqueue` would succeed; more than a tenant may have are taken together when it has no others.

        Raises:
            TenantLimit: the tenant has as many places as it may have.
            QueueFull: too few are free.
        """
        taken = self._places[tenant]
        if taken and taken + tickets > self.per_tenant:
            raise TenantLimit(taken)
        left = self.places - self.places_taken - tickets
        if left < 0 or (taken and taken + tickets > max(self._workers, 3 * left)):
            raise QueueFull

    def enqueue(self, tenant: str, tickets: int = 1) -> list[QueueTicket]:
        """Take places, all or none; each is to be released.

        Raises:
            TenantLimit, QueueFull: see `require`.
        """
        self.require(tenant, tickets)
        self.places_taken += tickets
        self._places[tenant] += tickets
        self._turns.setdefault(tenant, next(self._numbers))
        self._waiting.setdefault(tenant, deque())
        return [QueueTicket(tenant) for _ in range(tickets)]

    def acquire(self, ticket: QueueTicket, now: float) -> list[QueueTicket]:
        """Let a reserved ticket wait for a worker; it may get one at once."""
        ticket.enter(State.WAITING, now)
        self._waiting[ticket.tenant].append(ticket)
        return self.tick(now)

    def release(self, ticket: QueueTicket, now: float) -> list[QueueTicket]:
        """Give a place back, and its worker if it has one; releasing it twice changes nothing."""
        if ticket.state is State.RELEASED:
            return []
        if ticket.state is State.WAITING:
            self._waiting[ticket.tenant].remove(ticket)
        elif ticket.state is State.RUNNING:
            self._end_turn(ticket)
        elif ticket.state is State.SUSPENDED:
            self._suspended.remove(ticket)
        if ticket.slot != _NONE:
            (self._free if ticket.slot < self._workers else self._spare).append(ticket.slot)
        ticket.enter(State.RELEASED, now)
        self.places_taken -= 1
        self._places[ticket.tenant] -= 1
        if not self._places[ticket.tenant]:
            for of_tenants in (self._places, self._runs, self._turns, self._waiting):
                del of_tenants[ticket.tenant]
        return self.tick(now)

    def tick(self, now: float) -> list[QueueTicket]:
        """Give out what can be given out; to be called when `due` as well."""
        changed: list[QueueTicket] = []
        while (ticket := self._next(now)) is not None:
            if len(self._running) == self._workers:
                changed.append(self._suspend_one(now))
            self._run(ticket, now)
            changed.append(ticket)
        return changed

    def due(self, now: float) -> float | None:
        """When time alone may next change anything; None while it cannot."""
        if self.places_taken == len(self._running):
            return None
        quanta = (ticket.since + QUANTUM_SECONDS for ticket in (*self._running, *self._suspended))
        return min((end for end in quanta if end > now), default=None)

    def _next(self, now: float) -> QueueTicket | None:
        """The ticket that gets a worker now: a free one, or that of a ticket which has had it for a quantum."""
        is_free = len(self._running) < self._workers
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
