"""The queue under interleavings of arrivals, cancellations and time that Hypothesis generates."""

import math
from collections import Counter
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from sandbox.queue import QUANTUM_SECONDS, AdmissionQueue, QueueFull, QueueTicket, State, TenantLimit

TENANTS = st.sampled_from(["a", "b", "c", "d", "e"])
_ROUNDING = 1e-6


class Interleavings(RuleBasedStateMachine):
    """A queue, every ticket that it issued, and a clock; it ticks only when `due` says so."""

    reserved = Bundle("reserved")
    acquired = Bundle("acquired")

    def __init__(self, converters: int, waiting: int, suspended: int) -> None:
        super().__init__()
        self.queue = AdmissionQueue(converters=converters, waiting=waiting, suspended=suspended, per_tenant=6)
        self.converters, self.most_suspended = converters, suspended
        self.now = 0.0
        self.tickets: list[QueueTicket] = []
        self.ran = dict[QueueTicket, float]()
        self.wants_since: dict[str, float] = {}
        self.order: dict[str, list[QueueTicket]] = {}

    def held(self, *states: State) -> list[QueueTicket]:
        """The tickets in one of these states."""
        return [ticket for ticket in self.tickets if ticket.state in states]

    @rule(target=reserved, tenant=TENANTS, tickets=st.integers(1, 3))
    def enqueue(self, tenant: str, tickets: int) -> object:
        """Take places, or be refused without side effects."""
        before = self.queue.places_taken
        try:
            taken = self.queue.enqueue(tenant, tickets)
        except (QueueFull, TenantLimit):
            assert self.queue.places_taken == before
            return multiple()
        assert len(taken) == tickets
        self.tickets += taken
        return multiple(*taken)

    @rule(target=acquired, ticket=consumes(reserved))
    def acquire(self, ticket: QueueTicket) -> QueueTicket:
        """Ask for a slot."""
        if ticket.state is State.RESERVED:
            self.order.setdefault(ticket.tenant, []).append(ticket)
            self.check(self.queue.acquire(ticket, self.now))
        return ticket

    @rule(ticket=st.one_of(reserved, acquired))
    def release(self, ticket: QueueTicket) -> None:
        """End, cancel or give up, at any moment and any number of times."""
        self.check(self.queue.release(ticket, self.now))
        assert ticket.state is State.RELEASED
        assert self.queue.release(ticket, self.now) == []

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 1.7, 5.0]))
    def pass_time(self, seconds: float) -> None:
        """Advance time, and tick exactly when the queue asks for it."""
        until = self.now + seconds
        while (due := self.queue.due(self.now)) is not None and due <= until:
            assert due > self.now
            self.clock(due)
            self.check(self.queue.tick(due))
            self.nobody_wants_in_vain()
        self.clock(until)

    def clock(self, now: float) -> None:
        """Count for every running ticket how long it runs."""
        for ticket in self.held(State.RUNNING):
            self.ran[ticket] = self.ran.get(ticket, 0.0) + now - self.now
        self.now = now

    def check(self, changed: list[QueueTicket]) -> None:
        """Check that a call returned what it changed, each change once."""
        assert len(set(changed)) == len(changed)
        assert all(ticket.state in {State.RUNNING, State.SUSPENDED} for ticket in changed)
        assert all(ticket.since == self.now for ticket in changed)

    @invariant()
    def no_converter_is_lost_or_given_twice(self) -> None:
        """Slots are distinct, in range, and all converters are busy while anybody wants one."""
        running, suspended = self.held(State.RUNNING), self.held(State.SUSPENDED)
        slots = [ticket.slot for ticket in (*running, *suspended)]
        assert len(set(slots)) == len(slots)
        assert set(slots) <= set(range(self.converters + self.most_suspended))
        assert len(running) <= self.converters
        assert len(suspended) == self.queue.suspended <= self.most_suspended
        assert len(running) == self.converters or not (suspended or self.held(State.WAITING))

    @invariant()
    def the_counts_are_right(self) -> None:
        """Places equal tickets that are not released; a ticket's run time is what it actually ran."""
        held = [ticket for ticket in self.tickets if ticket.state is not State.RELEASED]
        assert self.queue.places_taken == len(held) <= self.queue.places
        for tenant, places in Counter(ticket.tenant for ticket in held).items():
            assert self.queue.left(tenant) == max(0, 6 - places)
        for ticket, seconds in self.ran.items():
            assert math.isclose(ticket.seconds_run(self.now), seconds, abs_tol=_ROUNDING)

    @invariant()
    def a_tenant_is_served_in_its_order(self) -> None:
        """No waiting ticket of a tenant came before one of its running tickets."""
        for tickets in self.order.values():
            states = [ticket.state for ticket in tickets if ticket.state is not State.RELEASED]
            begun = [state is not State.WAITING for state in states]
            assert begun == sorted(begun, reverse=True)

    @invariant()
    def nobody_wants_in_vain(self) -> None:
        """A tenant with nothing running gets a slot within as many quanta as tenants, if one may be suspended."""
        running = {ticket.tenant for ticket in self.held(State.RUNNING)}
        wanting = {ticket.tenant for ticket in self.held(State.WAITING, State.SUSPENDED)} - running
        suspended = {ticket.tenant for ticket in self.held(State.SUSPENDED)}
        if len(self.held(State.SUSPENDED)) == self.most_suspended:
            wanting &= suspended  # these take turns all the same
        self.wants_since = {tenant: self.wants_since.get(tenant, self.now) for tenant in wanting}
        for since in self.wants_since.values():
            assert self.now - since <= 7 * QUANTUM_SECONDS + _ROUNDING

    def teardown(self) -> None:
        """Once everything is released, everything is free."""
        for ticket in self.tickets:
            self.queue.release(ticket, self.now)
        assert (self.queue.places_taken, self.queue.suspended, self.queue.due(self.now)) == (0, 0, None)
        fresh = [self.queue.enqueue(str(number))[0] for number in range(self.converters)]
        for ticket in fresh:
            self.queue.acquire(ticket, self.now)
        assert sorted(ticket.slot for ticket in fresh) == list(range(self.converters))


def run(converters: int, waiting: int, suspended: int) -> None:
    """Try interleavings on a queue of this size."""
    run_state_machine_as_test(
        partial(Interleavings, converters, waiting, suspended),  # type: ignore[arg-type]  # any factory will do
        settings=settings(max_examples=20, stateful_step_count=60, deadline=None),
    )


def test_one_converter() -> None:
    """All tenants take turns."""
    run(1, 12, 4)


def test_two_converters() -> None:
    """More tenants than converters, and enough slots for all."""
    run(2, 12, 4)


def test_eight_converters() -> None:
    """More converters than tenants."""
    run(8, 12, 8)


def test_few_may_be_suspended() -> None:
    """With one slot to spare, and with none."""
    run(2, 12, 1)
    run(2, 12, 0)
