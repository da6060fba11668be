"""Explains the limit that refuses a file to the client (interface 6).

The database decides, atomically and in the order of the limits: see `limit_reached` in `sql/migrations`. It returns the
name of the first limit that refuses; this module has the explanation for each name.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from service.errors import Limit, LimitRefusal
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
            f"The file is {_mib(seen.size_bytes)} large; the plan {seen.terms['id']} allows files of up to "
            f"{_mib(seen.terms['max_file_bytes'])}. A bigger plan lifts this limit."
        ),
    ),
    "conversions": Explanation(
        limit="conversions",
        message=lambda seen: (
            f"All {seen.terms['monthly_conversions']:,} conversions of this month are used. "
            "A bigger plan has more; the allowance resets next month."
        ),
    ),
    "data": Explanation(
        limit="data",
        message=lambda seen: (
            f"The file is {_mib(seen.size_bytes)} large; of this month's data allowance, "
            f"{_mib(max(seen.terms['monthly_data_bytes'] - seen.used_bytes, 0))} are left. "
            "A bigger plan has more; the allowance resets next month."
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


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:,.1f} MiB"
