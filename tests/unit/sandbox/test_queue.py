"""Who may run next, with a clock that tests move."""

from contextlib import suppress

import pytest

from sandbox.queue import KEPT_SHARE, QUANTUM_SECONDS, AdmissionQueue, QueueFull, QueueTicket, State, TenantLimit


def acquire(queue: AdmissionQueue, tenant: str, now: float = 0.0) -> QueueTicket:
    """Take a place and wait for a slot."""
    [ticket] = queue.enqueue(tenant)
    queue.acquire(ticket, now)
    return ticket


def flood(queue: AdmissionQueue, tenant: str) -> None:
    """Take all the places that the tenant can get."""
    with suppress(QueueFull):
        while True:
            queue.enqueue(tenant)


def states(*tickets: QueueTicket) -> list[State]:
    """The states of the tickets."""
    return [ticket.state for ticket in tickets]


def test_a_full_queue_refuses_at_once_and_takes_again_when_a_place_is_released() -> None:
    """Places limit what is held; releasing one twice frees one."""
    queue = AdmissionQueue(converters=1, waiting=1)
    [first] = queue.enqueue("a")
    queue.enqueue("b")
    assert queue.places_taken == queue.places
    with pytest.raises(QueueFull):
        queue.enqueue("c")
    queue.release(first, 0)
    queue.release(first, 0)
    queue.enqueue("c")
    with pytest.raises(QueueFull):
        queue.enqueue("d")


def test_a_tenant_who_floods_the_queue_leaves_places_for_the_others() -> None:
    """Each gets at most three quarters of what the others leave, so a newcomer finds a place."""
    queue = AdmissionQueue(converters=2, waiting=54)
    for tenant in ("flood", "second", "third"):
        flood(queue, tenant)
        assert queue.places_taken < queue.places
    queue.enqueue("newcomer")


def test_a_few_tenants_who_flood_the_queue_leave_places_for_those_who_have_none() -> None:
    """Five took all, since each may take most of what the others leave; now each that has none gets one."""
    queue = AdmissionQueue(converters=2, waiting=510)
    for number in range(5):
        flood(queue, f"flood {number}")
    for number in range(queue.places // KEPT_SHARE - 5):
        queue.enqueue(f"newcomer {number}")
        with pytest.raises(QueueFull):
            queue.enqueue(f"newcomer {number}")


def test_a_tenant_may_have_so_many_places_or_one_request_when_it_has_none() -> None:
    """Otherwise a batch above the limit could never be accepted; beside another request it is refused as a whole."""
    queue = AdmissionQueue(converters=1, waiting=20, per_tenant=2)
    batch = queue.enqueue("a", 3)
    with pytest.raises(TenantLimit) as limit:
        queue.enqueue("a")
    assert (limit.value.taken, queue.left("a"), queue.places_taken) == (3, 0, 3)
    for ticket in batch[1:]:
        queue.release(ticket, 0)
    assert queue.left("a") == 1
    with pytest.raises(TenantLimit):
        queue.enqueue("a", 2)
    assert queue.places_taken == 1


def test_what_was_admitted_elsewhere_takes_no_place_of_its_tenant() -> None:
    """Its tenant may send as much as before; the queue as a whole has fewer places for it."""
    queue = AdmissionQueue(converters=1, waiting=3, per_tenant=1)
    claimed = [queue.readmit("a"), queue.readmit("a")]
    assert (queue.left("a"), queue.places_taken, dict(queue.places_by_tenant)) == (1, 2, {})
    [own] = queue.enqueue("a")
    with pytest.raises(TenantLimit):
        queue.enqueue("a")
    queue.acquire(claimed[0], 0)
    queue.acquire(own, 0)
    queue.release(own, 1)
    assert (queue.left("a"), states(claimed[0])) == (1, [State.RUNNING])
    queue.enqueue("a")
    for ticket in claimed:
        queue.release(ticket, 2)
    assert (queue.places_taken, dict(queue.places_by_tenant)) == (1, {"a": 1})


def test_a_newcomer_does_not_wait_behind_all_of_a_busy_tenant() -> None:
    """Slots rotate between tenants instead of following the order of arrival."""
    queue = AdmissionQueue(converters=1, waiting=20)
    busy = [acquire(queue, "busy") for _ in range(5)]
    newcomer = acquire(queue, "new")
    queue.release(busy[0], 0)
    assert newcomer.state is State.RUNNING
    queue.release(newcomer, 0)
    assert states(*busy[1:3]) == [State.RUNNING, State.WAITING]


def test_a_tenant_that_runs_less_is_served_first() -> None:
    """With several slots, the tenant with the fewest comes next."""
    queue = AdmissionQueue(converters=3, waiting=20)
    running = [acquire(queue, "a") for _ in range(3)]
    third, first, second = (acquire(queue, tenant) for tenant in ("a", "b", "b"))
    queue.release(running[0], 0)
    assert states(first, second, third) == [State.RUNNING, State.WAITING, State.WAITING]
    queue.release(running[1], 0)
    assert states(second, third) == [State.RUNNING, State.WAITING]  # equal, but "a" has had turns that ended


def test_tenants_who_come_back_again_and_again_do_not_pass_one_who_waits() -> None:
    """A tenant that holds nothing between two files starts at the end of the line."""
    queue = AdmissionQueue(converters=1, waiting=20)
    first, second = (acquire(queue, "patient") for _ in range(2))
    running = acquire(queue, "x")
    queue.release(first, 0)
    following = acquire(queue, "y")
    queue.release(running, 0)
    assert states(second, following) == [State.RUNNING, State.WAITING]


def test_a_tenant_with_nothing_running_gets_a_converter_within_a_quantum() -> None:
    """The tenant with the most slots lends the one that it has held longest, and continues when it is returned."""
    queue = AdmissionQueue(converters=2, waiting=20, suspended=1)
    heavy = [acquire(queue, "heavy", now) for now in (0.0, 0.1, 0.2)]
    small = acquire(queue, "small", 0.3)
    assert queue.due(0.3) == QUANTUM_SECONDS
    assert queue.tick(0.4) == []
    assert queue.tick(QUANTUM_SECONDS) == [heavy[0], small]
    assert states(*heavy, small) == [State.SUSPENDED, State.RUNNING, State.WAITING, State.RUNNING]
    assert small.slot not in {heavy[0].slot, heavy[1].slot}
    assert queue.release(small, 0.7) == [heavy[0]]
    assert heavy[0].seconds_run(1.0) == pytest.approx(QUANTUM_SECONDS + 0.3)


def test_the_tenant_that_runs_most_lends_what_it_has_run_for_longest() -> None:
    """A tenant with a single slot keeps it, even if it has held it longer."""
    queue = AdmissionQueue(converters=3, waiting=20, suspended=3)
    only = acquire(queue, "one", 0.0)
    first, second = acquire(queue, "two", 1.0), acquire(queue, "two", 2.0)
    newcomer = acquire(queue, "new", 9.0)
    assert states(only, first, second, newcomer) == [State.RUNNING, State.SUSPENDED, State.RUNNING, State.RUNNING]


def test_who_has_lent_a_converter_does_not_take_another_at_once() -> None:
    """The next slot is lent to it only after a quantum."""
    queue = AdmissionQueue(converters=2, waiting=20, suspended=2)
    lender, other = acquire(queue, "a", 0.0), acquire(queue, "b", 1.0)
    acquire(queue, "c", 9.0)
    assert states(lender, other) == [State.SUSPENDED, State.RUNNING]
    assert queue.due(9.0) == 9.0 + QUANTUM_SECONDS
    queue.tick(9.0 + QUANTUM_SECONDS)
    assert states(lender, other) == [State.RUNNING, State.SUSPENDED]


def test_without_others_nothing_is_suspended_however_long_it_runs() -> None:
    """A tenant does not take turns with itself, and time alone changes nothing."""
    queue = AdmissionQueue(converters=2, waiting=20, suspended=2)
    tickets = [acquire(queue, "a") for _ in range(4)]
    assert queue.tick(100.0) == []
    assert queue.due(100.0) is None
    assert states(*tickets) == [State.RUNNING, State.RUNNING, State.WAITING, State.WAITING]


def test_tenants_on_one_converter_take_turns() -> None:
    """Each runs for a quantum at a time, in order of arrival, and none runs twice before another."""
    queue = AdmissionQueue(converters=1, waiting=20, suspended=4)
    tickets = {tenant: acquire(queue, tenant) for tenant in "abc"}
    order = [next(tenant for tenant in "abc" if tickets[tenant].state is State.RUNNING)]
    now = 0.0
    while len(order) < 9 and (due := queue.due(now)) is not None:
        now = due
        order += [ticket.tenant for ticket in queue.tick(now) if ticket.state is State.RUNNING]
    assert "".join(order) == "abcabcabc"
    assert [ticket.seconds_run(now) / QUANTUM_SECONDS for ticket in tickets.values()] == [3, 3, 2]


def test_no_more_are_suspended_than_may_be() -> None:
    """A newcomer then waits for the first one that ends; running ones continue to take turns."""
    queue = AdmissionQueue(converters=1, waiting=20, suspended=1)
    first, second, third = (acquire(queue, tenant) for tenant in "abc")
    for quantum in range(1, 10):
        queue.tick(quantum * QUANTUM_SECONDS)
        assert sorted(states(first, second), key=str) == [State.RUNNING, State.SUSPENDED]
    assert states(third) == [State.WAITING]
    queue.release(first, 10)
    assert states(third) == [State.RUNNING]


def test_a_suspended_ticket_can_be_released() -> None:
    """Its slot becomes free, and no other slot changes."""
    queue = AdmissionQueue(converters=1, waiting=20, suspended=1)
    lender, borrower = acquire(queue, "a"), acquire(queue, "b")
    queue.tick(QUANTUM_SECONDS)
    assert queue.suspended == 1
    assert queue.release(lender, 1.0) == []
    assert (queue.suspended, borrower.state, lender.state) == (0, State.RUNNING, State.RELEASED)


def test_one_who_is_released_while_it_waits_gets_no_converter() -> None:
    """The next ticket gets its slot."""
    queue = AdmissionQueue(converters=1, waiting=5)
    running, impatient, patient = (acquire(queue, tenant) for tenant in "abc")
    queue.release(impatient, 0)
    queue.release(running, 0)
    assert states(impatient, patient) == [State.RELEASED, State.RUNNING]


def test_what_is_told_of_the_queue() -> None:
    """The age of the oldest waiting ticket."""
    queue = AdmissionQueue(converters=1, waiting=1)
    acquire(queue, "a", 0.0)
    assert queue.age(5.0) == 0.0
    acquire(queue, "b", 2.0)
    assert queue.age(5.0) == 3.0
