"""Which limit is reported, over what the database saw."""

from typing import Any

import pytest

from service.metering.limits import RULES, UsageSnapshot, refusal

MIB = 1 << 20


def standing(**changes: Any) -> UsageSnapshot:
    """An account on a plan that has used half of everything."""
    plan = {
        "may_convert": True,
        "past_due": False,
        "plan_id": "pro",
        "max_file_bytes": 10 * MIB,
        "monthly_conversions": 100,
        "monthly_data_bytes": 100 * MIB,
        "used_conversions": 50,
        "used_bytes": 50 * MIB,
        "wallet_cents": None,
    }
    return UsageSnapshot(**{**plan, **changes})


def wallet(cents: int) -> UsageSnapshot:
    """An account with prepaid credit."""
    caps = dict.fromkeys(
        ("plan_id", "max_file_bytes", "monthly_conversions", "monthly_data_bytes", "used_conversions", "used_bytes")
    )
    return standing(**caps, wallet_cents=cents)


@pytest.mark.parametrize(
    ("seen", "size_bytes", "limit"),
    [
        (standing(), 10 * MIB, None),
        (standing(), 10 * MIB + 1, "fileSize"),
        (standing(used_conversions=99), 1, None),
        (standing(used_conversions=100), 1, "conversions"),
        (standing(used_bytes=90 * MIB), 10 * MIB, None),
        (standing(used_bytes=90 * MIB + 1), 10 * MIB, "data"),
        (standing(max_file_bytes=None, monthly_data_bytes=None, monthly_conversions=None), 1 << 40, None),
        (standing(may_convert=False), 1, "access"),
    ],
)
def test_a_limit_refuses_exactly_above_it(seen: UsageSnapshot, size_bytes: int, limit: str | None) -> None:
    """What still fits is let through; a plan without a cap has none."""
    found = refusal(seen, size_bytes, 5)
    assert (found and found.limit) == limit


@pytest.mark.parametrize(("cents", "limit"), [(5, None), (4, "wallet"), (0, "wallet")])
def test_credit_has_to_cover_the_price(cents: int, limit: str | None) -> None:
    """To the cent."""
    found = refusal(wallet(cents), 1, 5)
    assert (found and found.limit) == limit


def test_a_payment_past_due_is_no_limit() -> None:
    """It has a member of its own, and no bigger plan helps."""
    found = refusal(standing(past_due=True), 1, 5)
    assert found is not None
    assert (found.limit, found.payment_past_due, found.needs_upgrade) == (None, True, False)


def test_the_first_rule_that_refuses_is_reported() -> None:
    """Take away one reason after the other: the next one shows."""
    seen = standing(may_convert=False, past_due=True, used_conversions=100, used_bytes=100 * MIB)
    reported = []
    for mended in ({"may_convert": True}, {"past_due": False}, {"max_file_bytes": None}, {"used_conversions": 0}, {}):
        found = refusal(seen, 11 * MIB, 5)
        assert found is not None
        reported.append(found.limit)
        seen = standing(**{name: getattr(seen, name) for name in UsageSnapshot.__struct_fields__} | mended)
    assert reported == [rule.limit for rule in RULES[:-1]]


def test_a_refusal_says_what_is_left() -> None:
    """In figures that a person reads, never below nothing."""
    found = refusal(standing(used_bytes=101 * MIB), 3 * MIB, 5)
    assert found is not None
    assert "3.0 MiB" in found.message
    assert "0.0 MiB are left" in found.message
    short = refusal(wallet(3), 1, 7)
    assert short is not None
    assert "costs 7 cents" in short.message
    assert "3 cents left" in short.message
