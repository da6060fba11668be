"""Which limit refuses a file: ordered rules over what the database saw; the first one is reported (interface 6).

The database decides whether a file is admitted, atomically; these rules say why not, in the caller's words.
"""

from collections.abc import Callable

import msgspec

from service.errors import Limit, LimitRefusal
from service.metering.pricing import MIB


class UsageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may still do, as one admission saw it; sizes in bytes, money in US cents.

    A plan account has a `plan_id` and its caps, a wallet account has `wallet_cents`.
    """

    may_convert: bool
    past_due: bool
    plan_id: str | None
    max_file_bytes: int | None
    monthly_conversions: int | None
    monthly_data_bytes: int | None
    used_conversions: int | None
    used_bytes: int | None
    wallet_cents: int | None


class Rule(msgspec.Struct, frozen=True):
    """One limit: when it refuses (standing, size in bytes, price in cents), and how that is said."""

    limit: Limit | None
    refuses: Callable[[UsageSnapshot, int, int], bool]
    message: Callable[[UsageSnapshot, int, int], str]
    needs_upgrade: bool = True
    payment_past_due: bool = False


def _mib(size_bytes: int | None) -> str:
    return f"{(size_bytes or 0) / MIB:,.1f} MiB"


RULES: tuple[Rule, ...] = (
    Rule(
        limit="access",
        refuses=lambda s, _size, _price: not s.may_convert,
        message=lambda _s, _size, _price: "This account may not convert files. Ask its administrator for access.",
        needs_upgrade=False,
    ),
    Rule(
        limit=None,
        refuses=lambda s, _size, _price: s.past_due,
        message=lambda _s, _size, _price: (
            "A payment for this account is past due. Update the payment method on the account dashboard to go on."
        ),
        needs_upgrade=False,
        payment_past_due=True,
    ),
    Rule(
        limit="fileSize",
        refuses=lambda s, size, _price: s.max_file_bytes is not None and size > s.max_file_bytes,
        message=lambda s, size, _price: (
            f"The file has {_mib(size)}; the plan {s.plan_id} converts files of up to {_mib(s.max_file_bytes)}. "
            "A bigger plan lifts this limit."
        ),
    ),
    Rule(
        limit="conversions",
        refuses=lambda s, _size, _price: (
            s.monthly_conversions is not None and (s.used_conversions or 0) + 1 > s.monthly_conversions
        ),
        message=lambda s, _size, _price: (
            f"All {s.monthly_conversions:,} conversions of this month are used. "
            "A bigger plan has more; the allowance resets next month."
        ),
    ),
    Rule(
        limit="data",
        refuses=lambda s, size, _price: (
            s.monthly_data_bytes is not None and (s.used_bytes or 0) + size > s.monthly_data_bytes
        ),
        message=lambda s, size, _price: (
            f"The file has {_mib(size)}; of this month's data allowance "
            f"{_mib(max((s.monthly_data_bytes or 0) - (s.used_bytes or 0), 0))} are left. "
            "A bigger plan has more; the allowance resets next month."
        ),
    ),
    Rule(
        limit="wallet",
        refuses=lambda s, _size, price: s.plan_id is None and (s.wallet_cents or 0) < price,
        message=lambda s, _size, price: (
            f"Converting this file costs {price} cents; the prepaid credit has {s.wallet_cents or 0} cents left. "
            "Change to a plan to go on."
        ),
    ),
)


def refusal(standing: UsageSnapshot, size_bytes: int, price_cents: int) -> LimitRefusal | None:
    """Return the refusal of the first rule that refuses, or None where every rule lets the file pass."""
    for rule in RULES:
        if rule.refuses(standing, size_bytes, price_cents):
            return LimitRefusal(
                rule.message(standing, size_bytes, price_cents),
                limit=rule.limit,
                needs_upgrade=rule.needs_upgrade,
                payment_past_due=rule.payment_past_due,
            )
    return None
