"""The fields RateLimit and RateLimit-Policy."""

from datetime import UTC, datetime
from uuid import UUID

from sandbox.queue import AdmissionQueue
from service.accounts.keys import Allowance, Caller
from service.http.api.ratelimit import NOTHING_KNOWN, Remaining, rate_limits
from service.ids import AccountId

ACCOUNT = AccountId(UUID(int=1))
DAY = 86_400


def fields(queue: AdmissionQueue, allowance: Allowance | None, remaining: Remaining = NOTHING_KNOWN) -> dict[str, str]:
    """Both fields on 10 March at noon."""
    now = datetime(2026, 3, 10, 12, tzinfo=UTC)
    caller = Caller(ACCOUNT, None, allowance)
    return {name.decode(): value.decode() for name, value in rate_limits(queue, caller, remaining, now)}


def test_without_a_plan_only_files_at_once_are_limited() -> None:
    """Prepaid credit has no month."""
    queue = AdmissionQueue(converters=1, waiting=20, per_tenant=3)
    told = fields(queue, None)
    assert told == {"ratelimit-policy": '"concurrency";q=3;qu="concurrent-requests"', "ratelimit": '"concurrency";r=3'}


def test_numbers_are_no_larger_than_headers_can_have() -> None:
    """A setting may mean that there is no limit; parsers of such headers refuse integers of more than 15 digits."""
    queue = AdmissionQueue(converters=1, waiting=1 << 62, per_tenant=1 << 62)
    most = "9" * 15
    assert fields(queue, None) == {
        "ratelimit-policy": f'"concurrency";q={most};qu="concurrent-requests"',
        "ratelimit": f'"concurrency";r={most}',
    }


def test_what_is_left_at_once_follows_the_queue() -> None:
    """With nothing left, they state when to retry."""
    queue = AdmissionQueue(converters=1, waiting=20, per_tenant=2)
    queue.enqueue("somebody else", 2)
    left = [fields(queue, None)["ratelimit"]]
    for _ in range(2):
        queue.enqueue(str(ACCOUNT))
        left.append(fields(queue, None)["ratelimit"])
    assert left == ['"concurrency";r=2', '"concurrency";r=1', '"concurrency";r=0;t=2']


def test_a_plan_has_its_month() -> None:
    """The policy states its length; the other field, what is left and when it ends, if known."""
    queue = AdmissionQueue(converters=1, waiting=20, per_tenant=3)
    told = fields(queue, Allowance(5000, 1 << 30), Remaining(conversions=7))
    assert told["ratelimit-policy"].split(", ")[1:] == [
        f'"conversions";q=5000;w={31 * DAY}',
        f'"data";q=1073741824;qu="content-bytes";w={31 * DAY}',
    ]
    assert told["ratelimit"].split(", ")[1:] == [f'"conversions";r=7;t={int(21.5 * DAY)}']
