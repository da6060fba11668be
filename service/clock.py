"""Time as an argument: everything that depends on it is given a `Clock`, so that tests can move it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

MOST_APART = timedelta(minutes=1)
"""If the clocks of a host and of the database differ by more, one of them is wrong."""


def utc_now() -> datetime:
    """Return the current time in UTC, aware of it."""
    return datetime.now(UTC)


class DatabaseClock:
    """The database's clock, which all hosts share, as it was last heard and as seconds have passed since.

    Whatever happens to the clock of this host changes nothing. Until the database is first heard, that clock counts.
    """

    def __init__(self, host: Clock = utc_now, seconds: Callable[[], float] = time.monotonic) -> None:
        """Read `host` to compare with, and count with `seconds`, which never jump."""
        self.host = host
        self.seconds = seconds
        self._zero: datetime | None = None  # the database's time when `seconds` was 0
        self._earliest_zero: datetime | None = None
        self._latest_zero: datetime | None = None

    def __call__(self) -> datetime:
        """Return the time of the database."""
        return self.host() if self._zero is None else self._zero + timedelta(seconds=self.seconds())

    def synchronize(self, told: datetime, asked: float) -> timedelta:
        """Note that the database has `told` its time, at a moment since `asked` (`seconds`); return how far it jumped.

        That moment is unknown, so nothing changes if it can be one at which this clock had the same time.
        """
        earliest, latest = told - timedelta(seconds=self.seconds()), told - timedelta(seconds=asked)
        before = earliest if self._zero is None else self._zero
        self._zero = min(max(before, earliest), latest)
        self._earliest_zero = min(self._earliest_zero or self._zero, self._zero)
        self._latest_zero = max(self._latest_zero or self._zero, self._zero)
        return self._zero - before

    def earliest(self) -> datetime:
        """Return the earliest time that it can be, by the host's clock and by all that the database has told."""
        return self._host_or_earlier(self._earliest_zero)

    def confirmed(self) -> datetime:
        """Return the latest time that both the host's clock and any that the database has told have reached."""
        return self._host_or_earlier(self._latest_zero)

    def latest(self) -> datetime:
        """Return the latest time that it can be, by the host's clock and by what the database has told last."""
        return max(self.host(), self())

    @property
    def host_ahead(self) -> timedelta:
        """How far this host's clock is ahead of the database's; negative if it is behind."""
        return self.host() - self()

    @property
    def is_doubtful(self) -> bool:
        """Whether one of the two clocks must be wrong."""
        return abs(self.host_ahead) > MOST_APART

    def _host_or_earlier(self, zero: datetime | None) -> datetime:
        host = self.host()
        return host if zero is None else min(host, zero + timedelta(seconds=self.seconds()))
