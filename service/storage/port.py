"""The storage port: the operations that every store supports."""

import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import NewType, Protocol

import msgspec

ObjectKey = NewType("ObjectKey", str)
"""32 hexadecimal digits, after `in-` if it is an input, and after `region/` if the object is in a chosen region."""

PathLike = str | os.PathLike[str]

READ_BYTES = 256 * 1024
"""The most that `Storage.read` gives at a time."""

MARK = "mark-"
"""What the names of marks begin with, which show to which databases a region belongs."""
MAX_LINK_LIFE = timedelta(days=7)
"""The maximum for S3 signatures; it also applies to the local store, so that there is one rule for callers."""

_KEY = re.compile(r"(?:(?P<region>[a-z0-9][a-z0-9-]{0,31})/)?(?P<name>(?:in-)?[0-9a-f]{32})")


class Link(msgspec.Struct, frozen=True):
    """A URL that needs no API key, and the moment at which it expires.

    `url` is absolute, or starts with `/` and is relative to the base URL with which the client reached the service.
    """

    url: str
    expires_at: datetime


class StoredObject(msgspec.Struct, frozen=True):
    """An object in the store."""

    key: ObjectKey
    size_bytes: int
    modified_at: datetime


class Storage(Protocol):
    """A store of results. Every method raises `StorageUnavailable` if the store fails."""

    @property
    def regions(self) -> frozenset[str]:
        """The regions that `new_key` may name, except the home region."""

    async def put(
        self, key: ObjectKey, path: PathLike, *, media_type: str, download_name: str, sha256: bytes = b""
    ) -> None:
        """Store the file at `path` under `key` atomically, replacing an existing object.

        If the caller gives the SHA-256 of the file, no store needs to compute it.

        The file may be hard-linked instead of copied: it must not be written to afterwards, only deleted. After a
        failure, an object may still appear if only the response was lost; nothing refers to it, and the audit
        reports it.
        """

    async def link(self, key: ObjectKey, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """Sign a link that is valid until `expires_at`, or for as long as the signature can last if that is shorter.

        Does not check whether the object exists. Returns None if less than a second is left.
        """

    def read(self, key: ObjectKey) -> AsyncGenerator[bytes]:
        """Iterate over the content of an object, in constant memory; close the iterator if you leave it early.

        A missing object is a failure of the store, `ObjectMissing`, unless the store denies that it knows.
        """

    async def delete(self, keys: Sequence[ObjectKey]) -> None:
        """Delete the objects; missing ones are ignored. One that cannot be deleted keeps no other.

        Raises:
            ObjectsLeft: only those were not deleted that it names.
        """

    def objects(self, region: str = "") -> AsyncIterator[StoredObject]:
        """Iterate over all objects of a region in any order, in constant memory."""

    async def check(self, region: str = "") -> None:
        """Check with one inexpensive round trip that objects can be stored now, in the home region or another one."""

    async def check_objects(self) -> None:
        """Check by an object that stays, and that `objects` does not list, that the home region works."""

    async def mark(self, region: str, mark: str) -> None:
        """Store a mark in a region: an object that `objects` does not list, whose name begins with `mark-`."""

    async def has_mark(self, region: str, mark: str) -> bool:
        """Whether a region has this mark."""

    async def marks(self, region: str) -> set[str]:
        """Return the names of all marks in a region."""


def new_key(region: str = "") -> ObjectKey:
    """Return a new key of 128 random bits, in `region` or, if it is empty, in the home region."""
    name = secrets.token_hex(16)
    return ObjectKey(f"{region}/{name}" if region else name)


def new_input_key(output: ObjectKey) -> ObjectKey:
    """Return a new key of 128 random bits for the input of a job, in the region of its `output`."""
    region = region_of(output)
    name = f"in-{new_key()}"
    return ObjectKey(f"{region}/{name}" if region else name)


def split_key(key: ObjectKey) -> tuple[str, str]:
    """Return the region of `key` (empty: home) and its name within the region.

    Raises:
        ValueError: `key` was not made by `new_key` or `new_input_key`.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError("not an object key")
    return match["region"] or "", match["name"]


def region_of(key: str) -> str:
    """Return the region of a key; empty: home."""
    return split_key(ObjectKey(key))[0]


def is_key(text: str) -> bool:
    """Whether `new_key` or `new_input_key` could have made `text`."""
    return _KEY.fullmatch(text) is not None


def link_seconds(now: datetime, expires_at: datetime) -> tuple[int, int]:
    """Return the start of a link created `now` (Unix time) and its duration in seconds (0: none).

    Rounded so that start + duration is never after `expires_at`, nor more than `MAX_LINK_LIFE` after the start.
    """
    start = int(now.timestamp())
    end = min(int(expires_at.timestamp()), start + int(MAX_LINK_LIFE.total_seconds()))
    return start, max(0, end - start)
