"""The identifiers of the service, as types of their own, and how new ones are made."""

import os
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


def uuid7(now: datetime) -> UUID:
    """Make a UUIDv7 (RFC 9562): 48 bits of milliseconds, then randomness, so that ids sort by their age."""
    milliseconds = int(now.timestamp() * 1000)
    return UUID(int=(milliseconds << 80) | _VERSION_AND_VARIANT | (int.from_bytes(os.urandom(10)) & _RANDOM_BITS))
