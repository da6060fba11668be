"""The clients of one bucket, created once: creation loads a megabyte of API descriptions and blocks for 50 ms."""

import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession, get_session
from aiohttp import ClientRequest, ClientSession
from botocore.handlers import convert_body_to_file_like_object, disable_signing

from service.errors import StorageUnavailable
from service.storage.bucket_config import BucketConfig
from service.storage.bucket_links import CredentialSource
from service.storage.faults import within

if TYPE_CHECKING:
    from asyncio import Future

    from aiobotocore.endpoint import AioEndpoint
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import AddrInfoType, Connection
    from types_aiobotocore_s3.client import S3Client


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """Timeout and number of attempts; retries use exponential backoff with jitter."""

    timeout_seconds: float = 30.0
    attempts: int = 4
    connections: int = 64


PROBE = Effort(timeout_seconds=5, attempts=1, connections=2)
"""For readiness, which is polled every few seconds: a prompt result is worth more than one after retries."""

USER_AGENT = "geomill"
CONTINUE_SECONDS = 1.0
"""How long a server may take to say that it wants a body; after that, it is sent unasked, as other clients do."""


class Clients(msgspec.Struct, frozen=True):
    """The clients and credentials of a bucket; `url` is its URL, and `public_url` that for clients of the service.

    `again` makes one attempt less than `client`, after one that was made with `http`, the HTTP client of both; None if
    no attempt is left.
    `reader` has connections of its own: a read may last as long as a slow client takes, and no upload waits for it.
    """

    client: "S3Client"
    again: "S3Client | None"
    http: "AIOHTTPSession"
    reader: "S3Client"
    probe: "S3Client"
    credentials: CredentialSource
    url: str
    public_url: str


@asynccontextmanager
async def open_clients(bucket_config: BucketConfig, effort: Effort) -> AsyncIterator[Clients]:
    """Open the clients of a bucket without contacting the server.

    Raises:
        StorageUnavailable: there are no credentials, or botocore rejects the configuration.
    """
    session = get_session()
    if bucket_config.access_key:
        session.set_credentials(bucket_config.access_key, bucket_config.secret_key)
    async with AsyncExitStack() as stack:
        with within(effort.timeout_seconds):
            credentials = await session.get_credentials()
            fewer = msgspec.structs.replace(effort, attempts=effort.attempts - 1 or 1)
            client, again, reader, probe = [
                await stack.enter_async_context(
                    _client(session, bucket_config.endpoint, _config(bucket_config, its_effort))
                )
                for its_effort in (effort, fewer, effort, PROBE)
            ]
            public_url = url = await _url(client, bucket_config.bucket)
            if bucket_config.public_endpoint not in {"", bucket_config.endpoint}:
                async with _client(session, bucket_config.public_endpoint, _config(bucket_config, effort)) as public:
                    public_url = await _url(public, bucket_config.bucket)
        if credentials is None:
            raise StorageUnavailable("misconfigured", "there are no credentials for the object store")
        # As a file, what is in memory would be announced first, and sent once the server has answered that.
        for puts in (client, again, probe):
            puts.meta.events.unregister("before-parameter-build.s3.PutObject", convert_body_to_file_like_object)
        http = _endpoint_of(client).http_session
        _endpoint_of(again).http_session = http  # both together make as many connections as one may
        again_if_left = again if effort.attempts > 1 else None
        yield Clients(client, again_if_left, http, reader, probe, credentials, url, public_url)


def _endpoint_of(client: "S3Client") -> "AioEndpoint":
    endpoint: AioEndpoint = getattr(client, "_endpoint")  # noqa: B009 - it has no public name
    return endpoint


def _client(session: AioSession, endpoint: str, config: AioConfig) -> "AbstractAsyncContextManager[S3Client]":
    client: AbstractAsyncContextManager[S3Client] = session.create_client(
        "s3", endpoint_url=endpoint or None, config=config
    )
    return client


def _config(bucket_config: BucketConfig, effort: Effort) -> AioConfig:
    # Sign the payload of unencrypted requests: there is no TLS that would detect a changed byte.
    signing = {"payload_signing_enabled": False} if not bucket_config.endpoint.startswith("http://") else {}
    return AioConfig(
        region_name=bucket_config.region,
        user_agent=USER_AGENT,  # otherwise built for each request, at a tenth of its cost
        signature_version="s3v4",
        s3={"addressing_style": bucket_config.addressing_style, **signing},
        # Many servers other than AWS reject additional checksums, which cost as much as the rest of the request.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": effort.attempts},
        connect_timeout=effort.timeout_seconds / 6,
        read_timeout=effort.timeout_seconds / 3,
        max_pool_connections=effort.connections,
        http_session_cls=_Session,
        connector_args={"socket_factory": partial(_open_socket, lost_after_seconds=effort.timeout_seconds / 4)},
    )


class _Session(AIOHTTPSession):  # type: ignore[misc] # it is not typed
    """The HTTP session of a client, whose requests do not wait forever for `100 Continue`."""

    async def _get_session(self, proxy_url: str | None) -> ClientSession:
        session: ClientSession = await super()._get_session(proxy_url)
        session._request_class = _ImpatientRequest  # noqa: SLF001 - an argument of its constructor, which this class does not pass
        return session


class _ImpatientRequest(ClientRequest):
    """A request that sends its body if the server has not said in time whether it wants it.

    aiohttp would wait as long as the server is silent, with no timeout of its own, so that nothing would be retried.
    """

    async def write_bytes(
        self, writer: "AbstractStreamWriter", conn: "Connection", content_length: int | None = None
    ) -> None:
        """See `ClientRequest.write_bytes`."""
        if self._continue is not None:
            self.loop.call_later(CONTINUE_SECONDS, _want, self._continue)
        await super().write_bytes(writer, conn, content_length)


def _want(answer: "Future[bool]") -> None:
    if not answer.done():
        answer.set_result(True)


def _open_socket(address: "AddrInfoType", lost_after_seconds: float) -> socket.socket:
    """Open a socket whose connection counts as lost when the server has not received for so long what it was sent.

    The system would send it again at intervals that double: it would notice the end of an outage after as long again
    as the outage lasted.
    """
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    if (option := getattr(socket, "TCP_USER_TIMEOUT", None)) is not None:  # Linux has it
        opened.setsockopt(socket.IPPROTO_TCP, option, int(lost_after_seconds * 1000))
    return opened


async def _url(client: "S3Client", bucket: str) -> str:
    """Return the URL of a bucket as botocore builds it for this client: path or host, by region and partition."""
    client.meta.events.register_first("choose-signer.s3.GetObject", disable_signing)
    url = await client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "key"})
    client.meta.events.unregister("choose-signer.s3.GetObject", disable_signing)
    return url.removesuffix("/key")
