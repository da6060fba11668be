"""The objects of one bucket of an S3-compatible server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import msgspec

from service.clock import Clock
from service.storage.bucket_config import BucketConfig
from service.storage.bucket_links import BucketLinks
from service.storage.clients import PROBE, Clients, Effort, open_clients
from service.storage.disk import open_output
from service.storage.faults import refusal, within
from service.storage.names import content_disposition
from service.storage.upload import Destination, Metadata, upload

if TYPE_CHECKING:
    from types_aiobotocore_s3.type_defs import ObjectIdentifierTypeDef

DELETE_BATCH = 1000


class PageToken(TypedDict, total=False):
    """Where a listing goes on; empty: from the start."""

    ContinuationToken: str


class Entry(msgspec.Struct, frozen=True):
    """An object as the bucket lists it, without the prefix."""

    name: str
    size_bytes: int
    modified_at: datetime


@asynccontextmanager
async def open_bucket(place: BucketConfig, effort: Effort, clock: Clock) -> AsyncIterator["Bucket"]:
    """Open the bucket; nothing is asked of the server yet, which may be down.

    Raises:
        StorageUnavailable: there are no credentials, or botocore can make nothing of the place.
    """
    async with open_clients(place, effort) as clients:
        links = BucketLinks(
            clients.public_url, place, clients.credentials, clock=clock, timeout_seconds=effort.timeout_seconds
        )
        yield Bucket(clients, place, effort.timeout_seconds, links)


class Bucket:
    """See the module; `open_bucket` opens it. `links` signs the links to its objects."""

    def __init__(self, clients: Clients, place: BucketConfig, timeout_seconds: float, links: BucketLinks) -> None:
        self.links = links
        self._client = clients.client
        self._probe = clients.probe
        self._place = place
        self._seconds = timeout_seconds

    async def put(self, name: str, path: Path, *, media_type: str, download_name: str) -> None:
        """Store the file, with type and name for servers that do not heed those of a link."""
        metadata: Metadata = {"ContentType": media_type, "ContentDisposition": content_disposition(download_name)}
        if self._place.sse:
            metadata["ServerSideEncryption"] = self._place.sse
        if self._place.sse_key_id:
            metadata["SSEKMSKeyId"] = self._place.sse_key_id
        destination: Destination = {"Bucket": self._place.bucket, "Key": self._place.prefix + name}
        with open_output(path) as file:
            await upload(self._client, destination, metadata, file, self._seconds)

    async def delete(self, names: Sequence[str]) -> None:
        """Remove the objects, as many per request as S3 takes."""
        for first in range(0, len(names), DELETE_BATCH):
            batch: list[ObjectIdentifierTypeDef] = [
                {"Key": self._place.prefix + name} for name in names[first : first + DELETE_BATCH]
            ]
            with within(self._seconds):
                answer = await self._client.delete_objects(
                    Bucket=self._place.bucket, Delete={"Objects": batch, "Quiet": True}
                )
            failed = [error for error in answer.get("Errors", ()) if error.get("Code") != "NoSuchKey"]
            if failed:
                raise refusal(failed[0].get("Code", ""), 200)

    async def entries(self) -> AsyncIterator[Entry]:
        """Walk through the objects under the prefix, a page of 1,000 at a time."""
        page_at: PageToken | None = {}
        while page_at is not None:
            with within(self._seconds):
                page = await self._client.list_objects_v2(
                    Bucket=self._place.bucket, Prefix=self._place.prefix, **page_at
                )
            for found in page.get("Contents", ()):
                name = found["Key"].removeprefix(self._place.prefix)
                yield Entry(name, found["Size"], found["LastModified"].astimezone(UTC))
            page_at = {"ContinuationToken": page["NextContinuationToken"]} if page["IsTruncated"] else None

    async def check(self) -> None:
        """Ask for the bucket: it exists, answers, and lets our credentials in."""
        with within(PROBE.timeout_seconds):
            await self._probe.head_bucket(Bucket=self._place.bucket)
