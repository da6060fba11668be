"""What an account has left, as the answers show it (interface 2.1)."""

from collections.abc import Mapping
from typing import Any

import msgspec


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """What is used by settled and reserved conversions, and what is left: of a plan's month, or of prepaid credit."""

    used_conversions: int
    used_bytes: int

    remaining_conversions: int | None
    remaining_bytes: int | None
    wallet_cents: int | None


def balance_from(row: Mapping[str, Any]) -> Balance:
    """Read a balance from a row of the statements `settle` and `balance`: never below 0 (interface 6)."""
    has_plan = row["plan_id"] is not None
    return Balance(
        used_conversions=row["used_conversions"],
        used_bytes=row["used_bytes"],
        remaining_conversions=max(row["monthly_conversions"] - row["used_conversions"], 0) if has_plan else None,
        remaining_bytes=max(row["monthly_data_bytes"] - row["used_bytes"], 0) if has_plan else None,
        wallet_cents=row["wallet_cents"],
    )
