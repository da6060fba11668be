"""Time as an argument: everything that depends on it is given a `Clock`, so that tests can move it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time in UTC, aware of it."""
    return datetime.now(UTC)
