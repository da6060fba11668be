"""The headers RateLimit-Policy and RateLimit: an account's limits, and what is left of them.

They follow draft-ietf-httpapi-ratelimit-headers-11 and cover the files in progress at a time, and the conversions and
bytes of a plan's month. The policy is known once the key is. What is left of the month is reported only after a
conversion, because any other request would need an extra round trip to the database.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from sandbox.queue import AdmissionQueue
from service.accounts.keys import Allowance, Caller
from service.jobs.dispatch import RETRY_AFTER_SECONDS

Header = tuple[bytes, bytes]


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a plan's month, as far as the response knows it."""

    conversions: int | None = None
    size_bytes: int | None = None


NOTHING_KNOWN = Remaining()
MOST = 10**15 - 1
"""The largest integer that headers of this kind (structured fields) may have; a setting may mean no limit at all."""


def rate_limits(queue: AdmissionQueue, caller: Caller, remaining: Remaining, now: datetime) -> tuple[Header, Header]:
    """Return both headers for a response to `caller` at `now`."""
    past, left = _seconds_of_month(now.replace(microsecond=0))
    limits = _limits(queue.left(str(caller.account_id)), remaining, left)
    return (
        (b"ratelimit-policy", _policy(queue.per_tenant, caller.allowance, past + left)),
        (b"ratelimit", limits.encode("ascii")),
    )


def _limits(places_left: int, remaining: Remaining, seconds: int) -> str:
    again = f";t={RETRY_AFTER_SECONDS}" if places_left == 0 else ""
    limits = f'"concurrency";r={min(places_left, MOST)}{again}'
    if remaining.conversions is not None:
        limits += f', "conversions";r={remaining.conversions};t={seconds}'
    if remaining.size_bytes is not None:
        limits += f', "data";r={remaining.size_bytes};t={seconds}'
    return limits


@lru_cache(maxsize=64)
def _policy(most_at_once: int, allowance: Allowance | None, seconds: int) -> bytes:
    policies = [f'"concurrency";q={min(most_at_once, MOST)};qu="concurrent-requests"']
    if allowance is not None:
        policies.append(f'"conversions";q={allowance.monthly_conversions};w={seconds}')
        policies.append(f'"data";q={allowance.monthly_data_bytes};qu="content-bytes";w={seconds}')
    return ", ".join(policies).encode("ascii")


@lru_cache(maxsize=4)
def _seconds_of_month(now: datetime) -> tuple[int, int]:
    """How much of the month, the metering period (interface 6), has passed, and how much is left."""
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0)
    following = (first + timedelta(days=31)).replace(day=1)
    return int((now - first).total_seconds()), int((following - now).total_seconds())
