"""How long a client may take."""

import pytest

from service.intake.form import IntakeLimits
from service.intake.pace import Pace

LIMITS = IntakeLimits(idle_seconds=10, total_seconds=100, min_bytes_per_second=1000)


def test_the_first_bytes_are_due_within_the_idle_time() -> None:
    """After that, a silent client is given up."""
    assert Pace(LIMITS, now=5).deadline == 15


def test_each_sound_moves_the_deadline() -> None:
    """A client that sends fast enough has the full idle time after each chunk."""
    pace = Pace(LIMITS, now=0)
    pace.heard(now=8, received=1_000_000)
    assert pace.deadline == 18
    assert "10 seconds" in pace.complaint


def test_a_drip_is_too_slow() -> None:
    """Clients must keep a minimum mean rate."""
    pace = Pace(LIMITS, now=0)
    pace.heard(now=9, received=2000)
    assert pace.deadline == 12
    assert "slower than 1000 bytes per second" in pace.complaint


def test_no_upload_takes_longer_than_the_total_time() -> None:
    """Even if the client keeps the rate."""
    pace = Pace(LIMITS, now=0)
    pace.heard(now=95, received=10_000_000)
    assert pace.deadline == 100
    assert "longer than 100 seconds" in pace.complaint


@pytest.mark.parametrize("received", [0, 5000, 10_000_000])
def test_the_services_own_time_is_not_counted(received: int) -> None:
    """The time that the service takes to write to disk does not count against the client."""
    pace = Pace(LIMITS, now=0)
    pace.heard(now=4, received=received)
    before = pace.deadline
    pace.resume(now=34)
    assert pace.deadline == before + 30
