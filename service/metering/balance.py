"""What an account has left, as responses show it (interface 2.1)."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """What settled and reserved conversions have used, and what is left of a plan's month or of prepaid credit.

    A row of the view `balance`; never below 0 (interface 6).
    """

    period: date
    """The first day of the month, by the database's clock."""
    used_conversions: int
    used_bytes: int
    remaining_conversions: int | None
    remaining_bytes: int | None
    wallet_cents: int | None


def balance_from(row: Mapping[str, Any]) -> Balance:
    """Read a balance from a row that has its columns."""
    return msgspec.convert(row, Balance)
