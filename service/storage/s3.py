"""The S3 store: one bucket per region on any S3-compatible server, for a service on many machines."""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import datetime

from service.clock import DatabaseClock
from service.errors import ObjectsLeft, StorageUnavailable
from service.storage.bucket import Bucket, open_bucket
from service.storage.bucket_config import HOME, BucketConfig
from service.storage.clients import Effort
from service.storage.port import MARK, Link, ObjectKey, PathLike, StoredObject, is_key, split_key


@asynccontextmanager
async def open_s3(
    configs: Mapping[str, BucketConfig], effort: Effort, *, clock: DatabaseClock | None = None
) -> AsyncIterator["S3Storage"]:
    """Open the buckets, including `HOME`; they need not be reachable yet.

    Raises:
        StorageUnavailable: there are no credentials, or botocore rejects a configuration.
    """
    clock = clock or DatabaseClock()
    async with AsyncExitStack() as stack:
        buckets = {
            region: await stack.enter_async_context(open_bucket(bucket_config, effort, clock))
            for region, bucket_config in configs.items()
        }
        yield S3Storage(buckets)


class S3Storage:
    """The `Storage` of many machines; `open_s3` opens it. A key contains the region of its object."""

    def __init__(self, buckets: Mapping[str, Bucket]) -> None:
        self._buckets = buckets
        self.regions = frozenset(buckets) - {HOME}

    async def put(
        self, key: ObjectKey, path: PathLike, *, media_type: str, download_name: str, sha256: bytes = b""
    ) -> None:
        """See `Storage.put`."""
        region, name = split_key(key)
        await self._bucket(region).put(name, path, media_type=media_type, download_name=download_name, sha256=sha256)

    async def link(self, key: ObjectKey, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """See `Storage.link`."""
        region, name = split_key(key)
        return await self._bucket(region).links.link(
            name, expires_at=expires_at, download_name=download_name, media_type=media_type
        )

    async def read(self, key: ObjectKey) -> AsyncGenerator[bytes]:
        """See `Storage.read`."""
        region, name = split_key(key)
        async with aclosing(self._bucket(region).read(name)) as pieces:
            async for piece in pieces:
                yield piece

    async def delete(self, keys: Sequence[ObjectKey]) -> None:
        """See `Storage.delete`."""
        names: dict[str, dict[str, ObjectKey]] = defaultdict(dict)
        for key in keys:
            region, name = split_key(key)
            names[region][name] = key
        left: dict[str, StorageUnavailable] = {}
        for region, batch in names.items():
            try:
                reasons = await self._bucket(region).delete(list(batch))
            except StorageUnavailable as error:
                reasons = dict.fromkeys(batch, error)
            left |= {batch.get(name, name): reason for name, reason in reasons.items()}
        if left:
            raise ObjectsLeft(left)

    async def objects(self, region: str = HOME) -> AsyncIterator[StoredObject]:
        """See `Storage.objects`; objects with foreign names under the same prefix are skipped."""
        async for entry in self._bucket(region).entries():
            if is_key(entry.name) and "/" not in entry.name:  # below it, the prefix of another region may lie
                key = f"{region}/{entry.name}" if region else entry.name
                yield StoredObject(ObjectKey(key), entry.size_bytes, entry.modified_at)

    async def check(self, region: str = HOME) -> None:
        """See `Storage.check`."""
        await self._bucket(region).check()

    async def check_objects(self) -> None:
        """See `Storage.check_objects`."""
        await self._bucket(HOME).check_objects()

    async def mark(self, region: str, mark: str) -> None:
        """See `Storage.mark`."""
        await self._bucket(region).mark(mark)

    async def has_mark(self, region: str, mark: str) -> bool:
        """See `Storage.has_mark`."""
        return await self._bucket(region).has_mark(mark)

    async def marks(self, region: str) -> set[str]:
        """See `Storage.marks`."""
        return {entry.name async for entry in self._bucket(region).entries(MARK)}

    def _bucket(self, region: str) -> Bucket:
        try:
            return self._buckets[region]
        except KeyError:
            raise StorageUnavailable("misconfigured", f"no bucket is set for the region {region}") from None
