"""One bucket of an S3-compatible server: its client and its objects."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore import UNSIGNED

from service.clock import Clock
from service.errors import StorageUnavailable
from service.storage.bucket_links import BucketLinks
from service.storage.disk import open_output
from service.storage.faults import refusal, within
from service.storage.names import content_disposition
from service.storage.places import Place
from service.storage.upload import Destination, Metadata, upload

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.type_defs import ObjectIdentifierTypeDef

CHECK_SECONDS = 5.0
DELETE_BATCH = 1000


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often to try. Retries wait a random time that grows with each."""

    timeout_seconds: float = 30.0
    attempts: int = 4
    connections: int = 64


class PageToken(TypedDict, total=False):
    """Where a listing goes on; empty: from the start."""

    ContinuationToken: str


class Entry(msgspec.Struct, frozen=True):
    """An object as the bucket lists it, without the prefix."""

    name: str
    size_bytes: int
    modified_at: datetime


@asynccontextmanager
async def open_bucket(place: Place, effort: Effort, clock: Clock) -> AsyncIterator["Bucket"]:
    """Open a client for the bucket; nothing is asked of the server yet, which may be down.

    Raises:
        StorageUnavailable: there are no credentials, or botocore can make nothing of the place.
    """
    session = get_session()
    if place.access_key:
        session.set_credentials(place.access_key, place.secret_key)
    async with AsyncExitStack() as stack:
        with within(effort.timeout_seconds):
            credentials = await session.get_credentials()
            url = await _public_url(session, place)
            client = await stack.enter_async_context(_client(session, place.endpoint, _config(place, effort)))
        if credentials is None:
            raise StorageUnavailable("misconfigured", "there are no credentials for the object store")
        links = BucketLinks(url, place, credentials, clock=clock, timeout_seconds=effort.timeout_seconds)
        yield Bucket(client, place, effort.timeout_seconds, links)


class Bucket:
    """See the module; `open_bucket` opens it. `links` signs the links to its objects."""

    def __init__(self, client: "S3Client", place: Place, timeout_seconds: float, links: BucketLinks) -> None:
        self.links = links
        self._client = client
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
        with within(min(CHECK_SECONDS, self._seconds)):
            await self._client.head_bucket(Bucket=self._place.bucket)


def _client(session: AioSession, endpoint: str, config: AioConfig) -> "AbstractAsyncContextManager[S3Client]":
    client: AbstractAsyncContextManager[S3Client] = session.create_client(
        "s3", endpoint_url=endpoint or None, config=config
    )
    return client


def _config(place: Place, effort: Effort) -> AioConfig:
    # In the clear, the payload is signed after all: there is no TLS that would notice a changed byte.
    signing = {"payload_signing_enabled": False} if not place.endpoint.startswith("http://") else {}
    return AioConfig(
        region_name=place.region,
        signature_version="s3v4",
        s3={"addressing_style": place.addressing_style, **signing},
        # Checksums on top are refused by many servers that are not AWS, and cost as much as the rest of the request.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": effort.attempts},
        connect_timeout=effort.timeout_seconds / 6,
        read_timeout=effort.timeout_seconds / 3,
        max_pool_connections=effort.connections,
    )


async def _public_url(session: AioSession, place: Place) -> str:
    """Return the address of the bucket for clients, as botocore makes it: path or host, by region and partition."""
    config = AioConfig(
        region_name=place.region, signature_version=UNSIGNED, s3={"addressing_style": place.addressing_style}
    )
    async with _client(session, place.public_endpoint or place.endpoint, config) as client:
        url = await client.generate_presigned_url("get_object", Params={"Bucket": place.bucket, "Key": "key"})
    return url.removesuffix("/key")
