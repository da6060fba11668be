"""The port of the storage: what the rest of the service may ask of any store."""

import re
import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NewType, Protocol

import msgspec

ObjectKey = NewType("ObjectKey", str)
"""32 hexadecimal digits, after `region/` where the object was put into a chosen region."""

MAX_LINK_LIFE = timedelta(days=7)
"""An S3 signature is refused beyond this; the local store keeps to it as well, so that callers meet one rule."""

_KEY = re.compile(r"(?:(?P<region>[a-z0-9][a-z0-9-]{0,31})/)?(?P<name>[0-9a-f]{32})")


class Link(msgspec.Struct, frozen=True):
    """An address that needs no API key, and the moment at which it stops to work.

    `url` is absolute, or begins with `/` and is then relative to the address under which the client reached us.
    """

    url: str
    expires_at: datetime


class StoredObject(msgspec.Struct, frozen=True):
    """An object that the store holds."""

    key: ObjectKey
    size_bytes: int
    modified_at: datetime


class Storage(Protocol):
    """A place for results. Every method raises `StorageUnavailable` when the store is at fault."""

    @property
    def regions(self) -> frozenset[str]:
        """The regions that `new_key` may name; objects of other keys go to the home region."""

    async def put(self, key: ObjectKey, path: Path, *, media_type: str, download_name: str) -> None:
        """Store the file at `path` under `key`, whole or not at all; what was there is replaced.

        The file may be hard-linked instead of copied: it must not be written to afterwards, only removed. When it
        fails, an object may still appear if only the answer was lost on its way; nothing refers to it, and the audit
        reports it.
        """

    async def link(self, key: ObjectKey, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """Sign a link that works until `expires_at` or, where the signature cannot last so long, until an earlier time.

        Whether the object exists is not looked up. None when less than a second is left.
        """

    async def delete(self, keys: Sequence[ObjectKey]) -> None:
        """Remove the objects; those that are not there are as good as removed."""

    def objects(self) -> AsyncIterator[StoredObject]:
        """Walk through all objects, in no order. Memory does not grow with their number."""

    async def check(self, region: str = "") -> None:
        """Make one cheap round trip that shows that objects can be stored now, in the home region or another one."""


def new_key(region: str = "") -> ObjectKey:
    """Return a fresh key: 128 random bits, in `region` if one is named, else in the home region."""
    name = secrets.token_hex(16)
    return ObjectKey(f"{region}/{name}" if region else name)


def split_key(key: ObjectKey) -> tuple[str, str]:
    """Return the region of `key` (empty: home) and its name within the region.

    Raises:
        ValueError: `key` was not made by `new_key`.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError("not an object key")
    return match["region"] or "", match["name"]


def is_key(text: str) -> bool:
    """Whether `new_key` could have made `text`."""
    return _KEY.fullmatch(text) is not None


def link_seconds(now: datetime, expires_at: datetime) -> tuple[int, int]:
    """Return the whole second at which a link made `now` starts and for how many seconds it may last (0: none).

    Rounded so that start + duration is never after `expires_at`, nor more than `MAX_LINK_LIFE` ahead.
    """
    start = int(now.timestamp())
    end = min(int(expires_at.timestamp()), start + int(MAX_LINK_LIFE.total_seconds()))
    return start, max(0, end - start)
