"""The metering period: the calendar month in UTC (interface 6)."""

from datetime import UTC, date, datetime


def period_of(moment: datetime) -> date:
    """Return the first day of the month that `moment` falls into, in UTC."""
    return moment.astimezone(UTC).date().replace(day=1)
