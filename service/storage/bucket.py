"""The objects of one bucket of an S3-compatible server."""

import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

import msgspec

from service.clock import DatabaseClock
from service.errors import ObjectMissing, StorageUnavailable
from service.storage.bucket_config import BucketConfig
from service.storage.bucket_links import BucketLinks
from service.storage.clients import PROBE, Clients, Effort, open_clients
from service.storage.disk import open_output
from service.storage.faults import refusal, within
from service.storage.names import content_disposition
from service.storage.port import READ_BYTES, PathLike
from service.storage.puts import Puts
from service.storage.upload import SMALL_BYTES, Destination, Metadata, confirm, cut, upload_parts

if TYPE_CHECKING:
    from types_aiobotocore_s3.type_defs import ObjectIdentifierTypeDef

DELETE_BATCH = 1000
_PROBE = b"geomill"
PROBE_NAMES = 4
"""All processes share a few objects, which nobody deletes: another may be reading one, and some may not delete.

One would do, but some servers take only one write a second to an object.
"""


class PageToken(TypedDict, total=False):
    """The position at which a listing continues; empty: the start."""

    ContinuationToken: str


class ListedObject(msgspec.Struct, frozen=True):
    """An object as the bucket lists it, without the prefix."""

    name: str
    size_bytes: int
    modified_at: datetime


@asynccontextmanager
async def open_bucket(bucket_config: BucketConfig, effort: Effort, clock: DatabaseClock) -> AsyncIterator["Bucket"]:
    """Open the bucket without contacting the server, which may be down.

    Raises:
        StorageUnavailable: there are no credentials, or botocore rejects the configuration.
    """
    async with open_clients(bucket_config, effort) as clients:
        links = BucketLinks(
            clients.public_url, bucket_config, clients.credentials, clock=clock, timeout_seconds=effort.timeout_seconds
        )
        yield Bucket(clients, bucket_config, effort.timeout_seconds, links)


class Bucket:
    """The objects of one bucket; `open_bucket` opens it, and `links` signs links to its objects."""

    def __init__(
        self, clients: Clients, bucket_config: BucketConfig, timeout_seconds: float, links: BucketLinks
    ) -> None:
        self.links = links
        self._client = clients.client
        self._puts = Puts(clients, bucket_config, timeout_seconds)
        self._reader = clients.reader
        self._probe = clients.probe
        self._bucket_config = bucket_config
        self._seconds = timeout_seconds
        self._probe_name = f"probe-{secrets.randbelow(PROBE_NAMES)}"

    async def put(self, name: str, path: PathLike, *, media_type: str, download_name: str, sha256: bytes = b"") -> None:
        """Store the file, with type and name for servers that ignore those of a link."""
        destination, metadata = self._destination(name), self._metadata(media_type, download_name)
        with open_output(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= SMALL_BYTES:
                await self._puts.put(destination, metadata, file.read(), sha256)  # a thread hop would cost more
                return
            first, *others = slices = cut(file, size)
            if others:
                await upload_parts(self._client, destination, metadata, slices, self._seconds)
            else:
                await self._puts.put(destination, metadata, first, sha256)
            await confirm(self._client, destination, size, self._seconds)

    async def read(self, name: str) -> AsyncGenerator[bytes]:
        """Iterate over the content of the object; each piece may take the timeout of a request."""
        with within(self._seconds):
            answer = await self._reader.get_object(**self._destination(name))
        async with answer["Body"] as body:
            while True:
                with within(self._seconds):
                    piece = await body.read(READ_BYTES)
                if not piece:
                    return
                yield piece

    async def delete(self, names: Sequence[str]) -> dict[str, StorageUnavailable]:
        """Delete the objects, as many per request as S3 allows; return why the server left some of them.

        Raises:
            StorageUnavailable: the server is, or something else answers in its place; some may be deleted.
        """
        left: dict[str, StorageUnavailable] = {}
        for first in range(0, len(names), DELETE_BATCH):
            batch: list[ObjectIdentifierTypeDef] = [
                {"Key": self._bucket_config.prefix + name} for name in names[first : first + DELETE_BATCH]
            ]
            with within(self._seconds):
                answer = await self._client.delete_objects(Bucket=self._bucket_config.bucket, Delete={"Objects": batch})
            if not (answer.get("Deleted") or answer.get("Errors")):  # as the page of a proxy
                raise StorageUnavailable("misconfigured", "the answer to a deletion names none of the objects")
            for error in answer.get("Errors", ()):
                if (code := error.get("Code", "")) != "NoSuchKey":
                    left[error.get("Key", "").removeprefix(self._bucket_config.prefix)] = refusal(code, 200)
        return left

    async def entries(self, beginning: str = "") -> AsyncIterator[ListedObject]:
        """Iterate over the objects under the prefix whose names have this beginning, in pages of 1,000."""
        page_at: PageToken | None = {}
        while page_at is not None:
            with within(self._seconds):
                page = await self._client.list_objects_v2(
                    Bucket=self._bucket_config.bucket, Prefix=self._bucket_config.prefix + beginning, **page_at
                )
            for found in page.get("Contents", ()):
                name = found["Key"].removeprefix(self._bucket_config.prefix)
                yield ListedObject(name, found["Size"], found["LastModified"].astimezone(UTC))
            page_at = {"ContinuationToken": page["NextContinuationToken"]} if page["IsTruncated"] else None

    async def check(self) -> None:
        """Check that the bucket exists, the server responds and accepts our credentials."""
        with within(PROBE.timeout_seconds):
            await self._probe.head_bucket(Bucket=self._bucket_config.bucket)

    async def check_objects(self) -> None:
        """Store and read an object that stays, on connections that no transfer takes."""
        probe = self._destination(self._probe_name)
        with within(PROBE.timeout_seconds):
            await self._probe.put_object(**probe, **self._metadata("text/plain", "probe"), Body=_PROBE)
            async with (await self._probe.get_object(**probe))["Body"] as body:
                if await body.read() != _PROBE:
                    raise StorageUnavailable("down", "the server gave another object than it had taken")

    async def mark(self, mark: str) -> None:
        """Store an object of this name, which it also contains."""
        with within(PROBE.timeout_seconds):
            await self._probe.put_object(
                **self._destination(mark), **self._metadata("text/plain", mark), Body=mark.encode()
            )

    async def has_mark(self, mark: str) -> bool:
        """Whether there is an object that `mark` has stored; another answer, as of a proxy, is none."""
        try:
            with within(PROBE.timeout_seconds):
                async with (await self._probe.get_object(**self._destination(mark)))["Body"] as body:
                    return bool(await body.read() == mark.encode())
        except ObjectMissing:
            return False

    def _destination(self, name: str) -> Destination:
        return {"Bucket": self._bucket_config.bucket, "Key": self._bucket_config.prefix + name}

    def _metadata(self, media_type: str, download_name: str) -> Metadata:
        metadata: Metadata = {"ContentType": media_type, "ContentDisposition": content_disposition(download_name)}
        if self._bucket_config.sse:
            metadata["ServerSideEncryption"] = self._bucket_config.sse
        if self._bucket_config.sse_key_id:
            metadata["SSEKMSKeyId"] = self._bucket_config.sse_key_id
        return metadata
