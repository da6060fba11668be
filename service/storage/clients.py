"""The clients of one bucket: made once, as making one loads a megabyte of descriptions and blocks for 50 ms."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore import UNSIGNED

from service.errors import StorageUnavailable
from service.storage.bucket_config import BucketConfig
from service.storage.bucket_links import CredentialSource
from service.storage.faults import within

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often to try. Retries wait a random time that grows with each."""

    timeout_seconds: float = 30.0
    attempts: int = 4
    connections: int = 64


PROBE = Effort(timeout_seconds=5, attempts=1, connections=2)
"""Readiness is asked every few seconds: an answer now is worth more than one after retries."""


class Clients(msgspec.Struct, frozen=True):
    """What is needed to work with a bucket; `public_url` is its address for those who follow a link."""

    client: "S3Client"
    probe: "S3Client"
    credentials: CredentialSource
    public_url: str


@asynccontextmanager
async def open_clients(place: BucketConfig, effort: Effort) -> AsyncIterator[Clients]:
    """Open the clients of a bucket; nothing is asked of the server.

    Raises:
        StorageUnavailable: there are no credentials, or botocore can make nothing of the place.
    """
    session = get_session()
    if place.access_key:
        session.set_credentials(place.access_key, place.secret_key)
    async with AsyncExitStack() as stack:
        with within(effort.timeout_seconds):
            credentials = await session.get_credentials()
            public_url = await _public_url(session, place)
            client = await stack.enter_async_context(_client(session, place.endpoint, _config(place, effort)))
            probe = await stack.enter_async_context(_client(session, place.endpoint, _config(place, PROBE)))
        if credentials is None:
            raise StorageUnavailable("misconfigured", "there are no credentials for the object store")
        yield Clients(client, probe, credentials, public_url)


def _client(session: AioSession, endpoint: str, config: AioConfig) -> "AbstractAsyncContextManager[S3Client]":
    client: AbstractAsyncContextManager[S3Client] = session.create_client(
        "s3", endpoint_url=endpoint or None, config=config
    )
    return client


def _config(place: BucketConfig, effort: Effort) -> AioConfig:
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


async def _public_url(session: AioSession, place: BucketConfig) -> str:
    """Return the address of the bucket for clients, as botocore makes it: path or host, by region and partition."""
    config = AioConfig(
        region_name=place.region, signature_version=UNSIGNED, s3={"addressing_style": place.addressing_style}
    )
    async with _client(session, place.public_endpoint or place.endpoint, config) as client:
        url = await client.generate_presigned_url("get_object", Params={"Bucket": place.bucket, "Key": "key"})
    return url.removesuffix("/key")
