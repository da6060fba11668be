"""The database's clock, as a host keeps it."""

from datetime import UTC, datetime, timedelta

import pytest

from service.clock import DatabaseClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Host:
    """A host whose clock is wrong, and on which seconds pass."""

    def __init__(self, off: timedelta) -> None:
        self.passed = 1000.0
        self.off = off
        self.clock = DatabaseClock(host=self.time, seconds=lambda: self.passed)

    def time(self) -> datetime:
        """What the clock of the host shows 1000 seconds after it was started."""
        return NOON + timedelta(seconds=self.passed - 1000) + self.off

    def synchronize(self, told: datetime, took: float = 0.0) -> timedelta:
        """Ask the database, which tells its time while the response takes that many seconds."""
        asked = self.passed
        self.passed += took
        return self.clock.synchronize(told, asked)


@pytest.mark.parametrize("off", [timedelta(days=2), timedelta(days=-2)])
def test_the_clock_of_the_host_changes_nothing(off: timedelta) -> None:
    """Not even if it jumps later."""
    host = Host(off)
    assert host.synchronize(NOON) == timedelta()
    host.passed += 10
    host.off *= 3
    assert host.clock() == NOON + 10 * SECOND
    assert host.clock.host_ahead == 3 * off
    assert host.clock.is_doubtful


def test_a_host_that_has_heard_nothing_yet_has_its_own_time() -> None:
    """Until then there is nothing to compare it with."""
    clock = Host(timedelta(days=2)).clock
    assert clock() == NOON + timedelta(days=2)
    assert not clock.is_doubtful


def test_a_slow_response_moves_the_clock_only_as_far_as_it_must() -> None:
    """The database may have told its time at any moment since it was asked, so times of a process keep their order."""
    host = Host(timedelta())
    host.synchronize(NOON)
    assert host.synchronize(NOON + 3 * SECOND, took=10) == timedelta()
    assert host.clock() == NOON + 10 * SECOND
    assert host.synchronize(NOON + 15 * SECOND, took=1) == 4 * SECOND
    assert host.clock() == NOON + 15 * SECOND


def test_a_first_response_that_was_slow_leaves_the_clock_behind_rather_than_ahead() -> None:
    """What is signed for a time to come is not valid yet."""
    host = Host(timedelta())
    host.synchronize(NOON, took=10)
    assert host.clock() == NOON
    assert host.synchronize(NOON + 9 * SECOND) == 9 * SECOND


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_of_the_database_that_jumps_is_followed(jump: timedelta) -> None:
    """And how far it jumped is told."""
    host = Host(timedelta())
    host.synchronize(NOON)
    host.passed += 5
    assert host.synchronize(NOON + 5 * SECOND + jump) == jump
    assert host.clock() == NOON + 5 * SECOND + jump


@pytest.mark.parametrize(("off", "jump"), [(2, 5), (2, -5), (-2, 5), (-2, -5)])
def test_the_earliest_time_trusts_no_clock_that_is_ahead(off: int, jump: int) -> None:
    """Neither the host's nor the database's, which may have been set forward, or back after it was ahead."""
    host = Host(off * SECOND)
    assert host.clock.earliest() == host.clock.latest() == NOON + off * SECOND
    host.synchronize(NOON)
    assert host.clock.earliest() == NOON + min(off, 0) * SECOND
    host.passed += 10
    host.synchronize(NOON + (10 + jump) * SECOND)
    assert host.clock.earliest() == NOON + (10 + min(off, 0, jump)) * SECOND


@pytest.mark.parametrize(("off", "reached"), [(0, 0), (-2, -2), (2, 0)])
def test_a_time_is_confirmed_by_two_clocks_even_after_one_was_set_back(off: int, reached: int) -> None:
    """A host that is ahead confirms no more than the database has told before."""
    host = Host(off * SECOND)
    host.synchronize(NOON)
    assert host.clock.confirmed() == NOON + reached * SECOND
    host.synchronize(NOON - 5 * SECOND)
    assert host.clock.confirmed() == NOON + reached * SECOND


def test_a_database_that_was_ahead_for_a_moment_confirms_nothing_alone() -> None:
    """What is kept from then on would be kept for too long."""
    host = Host(timedelta())
    host.synchronize(NOON + 5 * SECOND)
    host.synchronize(NOON)
    assert host.clock.confirmed() == NOON


@pytest.mark.parametrize("off", [2, -2])
@pytest.mark.parametrize("jump", [5, -5])
def test_the_latest_time_is_that_of_the_clock_that_is_ahead_now(off: int, jump: int) -> None:
    """One that was ahead and was set right does not count: what is to last for a day would last for long."""
    host = Host(off * SECOND)
    host.synchronize(NOON)
    assert host.clock.latest() == NOON + max(off, 0) * SECOND
    host.synchronize(NOON + jump * SECOND)
    assert host.clock.latest() == NOON + max(off, jump) * SECOND
    host.synchronize(NOON)
    assert host.clock.latest() == NOON + max(off, 0) * SECOND
