"""Who may run next: a bounded waiting room before a bounded number of slots, fair between tenants.

Pure: every change is one synchronous call; a ticket whose turn comes is told through its `called` callback.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable


class PoolFull(Exception):
    """No seat is free; nothing was queued."""


class Ticket:
    """One seat, and its slot while it has one."""

    def __init__(self, tenant: str, called: Callable[[], None]) -> None:
        self.tenant = tenant
        self.called = called
        self.slot: int | None = None
        self.left = False

    def require_slot(self) -> int:
        """The slot of a ticket that was called."""
        if self.slot is None:
            raise RuntimeError("this ticket has not been called")
        return self.slot


class Room:
    """Seats for `slots` that run and `waiting` more.

    A tenant may hold three quarters of the seats, so that one who floods the room leaves some for the others. Of the
    tenants that wait the one that runs least is next, and among equals the one that was served longest ago.
    """

    def __init__(self, slots: int, waiting: int) -> None:
        self._free = list(range(slots))
        self._seats = slots + waiting
        self._seats_per_tenant = max(slots, self._seats * 3 // 4)
        self._held: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._queues: dict[str, deque[Ticket]] = {}
        self._served: dict[str, int] = {}
        self._numbers = itertools.count(1)

    @property
    def seats_taken(self) -> int:
        """How many seats are held, running ones included."""
        return self._held.total()

    @property
    def is_full(self) -> bool:
        """Whether no seat is left for anybody."""
        return self.seats_taken >= self._seats

    def require_seat(self, tenant: str) -> None:
        """See that `take` would succeed.

        Raises:
            PoolFull: all seats are taken, or this tenant holds its share of them.
        """
        if self.is_full:
            raise PoolFull("every seat is taken")
        if self._held[tenant] >= self._seats_per_tenant:
            raise PoolFull("this tenant holds its share of the seats")

    def take(self, tenant: str, called: Callable[[], None]) -> Ticket:
        """Hold a seat.

        Raises:
            PoolFull: see `require_seat`.
        """
        self.require_seat(tenant)
        self._held[tenant] += 1
        return Ticket(tenant, called)

    def line_up(self, ticket: Ticket) -> None:
        """Queue a ticket for a slot; it may be called at once."""
        self._queues.setdefault(ticket.tenant, deque()).append(ticket)
        self._serve()

    def leave(self, ticket: Ticket) -> None:
        """Give a seat back, waiting or running; leaving twice changes nothing."""
        if ticket.left:
            return
        ticket.left = True
        self._drop(self._held, ticket.tenant)
        if ticket.tenant not in self._held:
            self._served.pop(ticket.tenant, None)
        queue = self._queues.get(ticket.tenant)
        if ticket.slot is not None:
            self._drop(self._running, ticket.tenant)
            self._free.append(ticket.slot)
        elif queue and ticket in queue:
            queue.remove(ticket)
            self._forget_empty(ticket.tenant)
        self._serve()

    def _serve(self) -> None:
        while self._free and self._queues:
            tenant = min(self._queues, key=lambda name: (self._running[name], self._served.get(name, 0)))
            ticket = self._queues[tenant].popleft()
            self._served[tenant] = next(self._numbers)
            self._forget_empty(tenant)
            self._running[tenant] += 1
            ticket.slot = self._free.pop(0)
            ticket.called()

    def _forget_empty(self, tenant: str) -> None:
        if not self._queues[tenant]:
            del self._queues[tenant]

    @staticmethod
    def _drop(counter: Counter[str], tenant: str) -> None:
        counter[tenant] -= 1
        if not counter[tenant]:
            del counter[tenant]
