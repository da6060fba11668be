"""Explains the limit that refuses a file to the client (interface 6).

The database decides, atomically and in the order of the limits: see `limit_reached` in `sql/migrations`. It returns the
name of the first limit that refuses; this module has the explanation for each name.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from service.errors import Limit, LimitRefusal
from service.metering.plans import PLANS
from service.metering.pricing import MIB


class SeenValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values on which the database based a refusal; sizes in bytes, money in US cents.

    `terms` is the row of the account's plan, empty for an account with prepaid credit.
    """

    size_bytes: int
    price_cents: int
    terms: Mapping[str, Any]
    used_bytes: int
    wallet_cents: int

    @property
    def data_left(self) -> int:
        """The bytes that are left of a plan's month."""
        return max(int(self.terms["monthly_data_bytes"]) - self.used_bytes, 0)


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a refusal: a sentence, and the flags of the response (interface 7)."""

    message: Callable[[SeenValues], str]
    limit: Limit | None
    needs_upgrade: bool = True
    payment_past_due: bool = False


EXPLANATIONS: dict[str, Explanation] = {
    "access": Explanation(
        limit="access",
        message=lambda _seen: "This account may not convert files. Ask its administrator for access.",
        needs_upgrade=False,
    ),
    "payment": Explanation(
        limit=None,
        message=lambda _seen: (
            "A payment for this account is past due. Update the payment method on the account dashboard to continue."
        ),
        needs_upgrade=False,
        payment_past_due=True,
    ),
    "fileSize": Explanation(
        limit="fileSize",
        message=lambda seen: (
            f"The file is {_size(seen.size_bytes, seen.terms['max_file_bytes'])} large; the plan {seen.terms['id']} "
            f"allows files of up to {_size(seen.terms['max_file_bytes'], seen.size_bytes)}. "
            + (
                "A larger plan allows larger files."
                if _is_exceeded("max_file_bytes", seen)
                else "Split it into smaller files."
            )
        ),
    ),
    "conversions": Explanation(
        limit="conversions",
        message=lambda seen: (
            f"All {seen.terms['monthly_conversions']:,} conversions of this month are used or in progress. "
            f"{_more('monthly_conversions', seen)}"
        ),
    ),
    "data": Explanation(
        limit="data",
        message=lambda seen: (
            f"The file is {_size(seen.size_bytes, seen.data_left)} large; of this month's data allowance, "
            f"{_size(seen.data_left, seen.size_bytes)} are left. {_more('monthly_data_bytes', seen)}"
        ),
    ),
    "wallet": Explanation(
        limit="wallet",
        message=lambda seen: (
            f"Converting this file costs {seen.price_cents} cents; the prepaid credit has {seen.wallet_cents} cents "
            "left. Change to a plan to continue."
        ),
    ),
}


def refusal(name: str, seen: SeenValues) -> LimitRefusal:
    """Return the refusal that explains the limit `name`.

    Raises:
        KeyError: there is no explanation for this name.
    """
    explanation = EXPLANATIONS[name]
    return LimitRefusal(
        explanation.message(seen),
        limit=explanation.limit,
        needs_upgrade=explanation.needs_upgrade,
        payment_past_due=explanation.payment_past_due,
    )


def _more(allowance: str, seen: SeenValues) -> str:
    """Return what helps someone who has used up an allowance of a month."""
    if _is_exceeded(allowance, seen):
        return "A larger plan allows more; the allowance resets next month."
    return "The allowance resets next month."


def _is_exceeded(allowance: str, seen: SeenValues) -> bool:
    """Return whether another plan has more."""
    return any(getattr(plan, allowance) > seen.terms[allowance] for plan in PLANS)


def _size(size_bytes: int, other_bytes: int) -> str:
    """Return a size in MiB, or in bytes if it would look like the other one in MiB."""
    size, other = (f"{number / MIB:,.1f} MiB" for number in (size_bytes, other_bytes))
    return size if size != other else f"{size_bytes:,} bytes"
