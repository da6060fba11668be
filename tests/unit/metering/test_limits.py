"""What a caller is told about a limit that the database has named."""

from typing import get_args

import msgspec
import pytest

from service.errors import Limit
from service.metering.limits import EXPLANATIONS, SeenValues, refusal
from service.metering.plans import BY_ID

MIB = 1 << 20
SEEN = SeenValues(
    size_bytes=6 * MIB,
    price_cents=7,
    terms=msgspec.structs.asdict(BY_ID["free"]),
    used_bytes=48 * MIB,
    wallet_cents=3,
)


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_every_explanation_is_a_sentence_with_what_to_do(name: str) -> None:
    """It says no more about the plan than needed."""
    message = refusal(name, SEEN).message
    assert message.endswith(".")
    assert message.count(".") >= 2


def test_every_value_of_limit_has_an_explanation() -> None:
    """A past-due payment is not a limit, and has its own flag."""
    assert {explanation.limit for explanation in EXPLANATIONS.values()} - {None} == set(get_args(Limit))
    payment = refusal("payment", SEEN)
    assert (payment.limit, payment.payment_past_due, payment.needs_upgrade) == (None, True, False)
    assert [name for name, one in EXPLANATIONS.items() if one.payment_past_due] == ["payment"]
    assert [name for name, one in EXPLANATIONS.items() if not one.needs_upgrade] == ["access", "payment"]


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("fileSize", ["6.0 MiB", "plan free", "5.0 MiB"]),
        ("conversions", ["All 10 conversions"]),
        ("data", ["6.0 MiB", "2.0 MiB are left"]),
        ("wallet", ["costs 7 cents", "3 cents left"]),
    ],
)
def test_a_refusal_says_what_is_left(name: str, figures: list[str]) -> None:
    """In readable figures."""
    message = refusal(name, SEEN).message
    assert [figure for figure in figures if figure not in message] == []


def test_nothing_is_left_where_more_was_used_than_the_plan_has_now() -> None:
    """Never a negative number."""
    over = msgspec.structs.replace(SEEN, used_bytes=60 * MIB)
    assert "0.0 MiB are left" in refusal("data", over).message


@pytest.mark.parametrize(
    ("name", "changes", "figures"),
    [
        ("fileSize", {"size_bytes": 5 * MIB + 1}, ["5,242,881 bytes large", "5,242,880 bytes."]),
        ("data", {"size_bytes": 9_000, "used_bytes": 50 * MIB - 8_000}, ["9,000 bytes large", "8,000 bytes are left"]),
    ],
)
def test_sizes_that_differ_are_told_apart(name: str, changes: dict[str, int], figures: list[str]) -> None:
    """In bytes, if they are the same in readable figures."""
    message = refusal(name, msgspec.structs.replace(SEEN, **changes)).message
    assert [figure for figure in figures if figure not in message] == []


@pytest.mark.parametrize("name", ["fileSize", "conversions", "data"])
@pytest.mark.parametrize("plan", BY_ID)
def test_a_bigger_plan_is_recommended_to_those_who_can_have_one(name: str, plan: str) -> None:
    """Others learn what helps them."""
    has_more = plan != "business" and (name, plan) != ("fileSize", "team")
    seen = msgspec.structs.replace(SEEN, terms=msgspec.structs.asdict(BY_ID[plan]))
    assert ("larger plan" in refusal(name, seen).message) == has_more
