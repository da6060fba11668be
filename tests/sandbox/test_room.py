"""Who may run next."""

from functools import partial

import pytest

from sandbox.room import PoolFull, Room, Ticket


def line_up(room: Room, tenant: str, served: list[str]) -> Ticket:
    """Take a seat and queue for a slot."""
    ticket = room.take(tenant, partial(served.append, tenant))
    room.line_up(ticket)
    return ticket


def test_a_full_room_refuses_at_once_and_takes_again_when_someone_left() -> None:
    """The seats bound what is held; a seat given back is free."""
    room = Room(slots=1, waiting=1)
    first = room.take("a", lambda: None)
    room.take("b", lambda: None)
    with pytest.raises(PoolFull):
        room.take("c", lambda: None)
    room.leave(first)
    room.leave(first)
    room.take("c", lambda: None)
    with pytest.raises(PoolFull):
        room.take("d", lambda: None)


def test_a_tenant_who_floods_the_room_leaves_seats_for_the_others() -> None:
    """One tenant holds at most three quarters."""
    room = Room(slots=2, waiting=6)
    for _ in range(6):
        room.take("flood", lambda: None)
    with pytest.raises(PoolFull):
        room.take("flood", lambda: None)
    room.take("other", lambda: None)


def test_a_newcomer_does_not_wait_behind_all_of_a_busy_tenant() -> None:
    """Slots go around between tenants, not along the queue."""
    served: list[str] = []
    room = Room(slots=1, waiting=20)
    running = line_up(room, "busy", served)
    waiting = {line_up(room, "busy", served) for _ in range(5)}
    newcomer = line_up(room, "new", served)
    room.leave(running)
    assert newcomer.slot == 0
    room.leave(newcomer)
    assert served == ["busy", "new", "busy"]
    assert sum(ticket.slot is not None for ticket in waiting) == 1


def test_a_tenant_that_runs_less_is_served_first() -> None:
    """With several slots the one with fewest running comes next."""
    served: list[str] = []
    room = Room(slots=3, waiting=20)
    running = [line_up(room, "a", served) for _ in range(3)]
    for tenant in ("a", "b", "b"):
        line_up(room, tenant, served)
    room.leave(running[0])
    room.leave(running[1])
    assert served[3:] == ["b", "a"] or served[3:] == ["b", "b"]
    assert served[3] == "b"


def test_one_who_leaves_the_queue_is_not_called() -> None:
    """A ticket given up while it waits gets no slot, and its slot goes to the next."""
    served: list[str] = []
    room = Room(slots=1, waiting=5)
    running = line_up(room, "a", served)
    impatient = line_up(room, "b", served)
    patient = line_up(room, "c", served)
    room.leave(impatient)
    room.leave(running)
    assert (impatient.slot, patient.slot) == (None, 0)


def test_all_slots_are_free_again_when_all_have_left() -> None:
    """Whatever the order of leaving, no slot is lost or given twice."""
    room = Room(slots=3, waiting=30)
    tickets = [line_up(room, f"t{number % 4}", []) for number in range(20)]
    held = [ticket.slot for ticket in tickets if ticket.slot is not None]
    assert sorted(held) == [0, 1, 2]
    for ticket in tickets:
        room.leave(ticket)
    assert room.seats_taken == 0
    assert sorted(line_up(room, f"u{n}", []).require_slot() for n in range(3)) == [0, 1, 2]
