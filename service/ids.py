"""The identifiers of the service, as types of their own, and how new ones are made."""

import os
import random
from datetime import datetime
from typing import NewType
from uuid import UUID

JobId = NewType("JobId", UUID)
AccountId = NewType("AccountId", UUID)
PayerId = NewType("PayerId", UUID)
OrganizationId = NewType("OrganizationId", UUID)
KeyId = NewType("KeyId", UUID)
ServerId = NewType("ServerId", UUID)

_VERSION_AND_VARIANT = (0x7 << 76) | (0x2 << 62)
_RANDOM_BITS = (0xFFF << 64) | ((1 << 62) - 1)

_tracking = random.Random()  # noqa: S311 -- ids of requests and spans are no secrets
os.register_at_fork(after_in_child=_tracking.seed)


def tracking_id(size_bytes: int = 16) -> str:
    """Make the id of a request or a span, in hexadecimal: distinct, but no secret, as clients may send ids as well.

    The system's randomness costs ten times as much, for several of these in each request. An application that embeds
    the service may seed `random` itself, with the same number in each process, so it is not used either.
    """
    return _tracking.randbytes(size_bytes).hex()


def uuid7(now: datetime) -> UUID:
    """Make a UUIDv7 (RFC 9562): 48 bits of milliseconds, then randomness, so that ids sort by their age."""
    milliseconds = int(now.timestamp() * 1000)
    return UUID(int=(milliseconds << 80) | _VERSION_AND_VARIANT | (int.from_bytes(os.urandom(10)) & _RANDOM_BITS))
