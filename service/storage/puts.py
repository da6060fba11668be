"""Stores objects, each in one request with only what that needs.

For each of them, botocore finds out again what is the same for all, and takes a third of the gateway's CPU for a small
conversion; of a large one, it computes the SHA-256 in the event loop, although it may be known. The first attempt is
therefore made here, with its HTTP client. Whatever else than a plain success comes of it is left to botocore, which
tries again, follows the server to another region, or names the fault.
"""

import hashlib
import time
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import BotoCoreError

from service.blocking import INLINE_BYTES, run_blocking
from service.clock import Clock, utc_now
from service.storage.bucket_config import BucketConfig
from service.storage.clients import USER_AGENT, Clients
from service.storage.faults import within
from service.storage.presign import DEFAULT_PORTS, UNSIGNED, authorize
from service.storage.upload import Destination, FileBody, FileSlice, Metadata, allowed_seconds, require_named

REFUSED_SECONDS = 60.0
"""How long botocore makes the first attempt itself, too, after the server has refused one of these."""
_HEADERS = {
    "ContentType": "Content-Type",
    "ContentDisposition": "Content-Disposition",
    "ServerSideEncryption": "x-amz-server-side-encryption",
    "SSEKMSKeyId": "x-amz-server-side-encryption-aws-kms-key-id",
}
_SUCCESS, _REFUSALS = 200, range(300, 500)


class Puts:
    """Stores objects in one bucket, in as many attempts as its clients may make."""

    def __init__(
        self, clients: Clients, bucket_config: BucketConfig, timeout_seconds: float, clock: Clock = utc_now
    ) -> None:
        """`clock` is that of the host, which signs requests."""
        url = urlsplit(clients.url)
        self._client = clients.client
        self._again = clients.again
        self._http = clients.http
        self._credentials = clients.credentials
        self._origin = f"{url.scheme}://{url.netloc}"
        self._host = url.netloc.lower().removesuffix(DEFAULT_PORTS[url.scheme])
        self._path = url.path
        self._signs_content = url.scheme == "http"  # no TLS would detect a changed byte
        self._region = bucket_config.region
        self._seconds = timeout_seconds
        self._clock = clock
        self._due = 0.0

    async def put(
        self, destination: Destination, metadata: Metadata, body: bytes | FileSlice, sha256: bytes = b""
    ) -> None:
        """Store an object, whose SHA-256 need not be given; the server is asked whether it wants the slice of a file.

        Raises:
            StorageUnavailable: the server did not take it, or its answer shows that it does not have it.
        """
        with within(allowed_seconds(self._seconds, len(body))):
            client = self._client
            if self._again is not None and time.monotonic() >= self._due:
                if await self._is_stored(destination["Key"], metadata, body, sha256):
                    return
                client = self._again
            content = body if isinstance(body, bytes) else body.body()
            answer = await client.put_object(**destination, **metadata, Body=content, ContentLength=len(body))
            require_named(answer, "ETag")

    async def _is_stored(self, key: str, metadata: Metadata, body: bytes | FileSlice, sha256: bytes) -> bool:
        path = f"{self._path}/{quote(key, safe='/~')}"
        headers = authorize(
            "PUT",
            self._host,
            path,
            {_HEADERS[name]: str(value) for name, value in metadata.items()},
            (sha256 or await _sha256_of(body)).hex() if self._signs_content else UNSIGNED,
            region=self._region,
            credentials=await self._credentials.get_frozen_credentials(),
            start=int(self._clock().timestamp()),
        )
        headers |= {"User-Agent": USER_AGENT, "Content-Length": str(len(body))}
        if not isinstance(body, bytes):
            headers["Expect"] = "100-continue"
        sent = body if isinstance(body, bytes) else FileBody(body)
        request = AWSPreparedRequest("PUT", self._origin + path, headers, sent, stream_output=False)
        try:
            answer = await self._http.send(request)
        except BotoCoreError:
            return False
        if answer.status_code in _REFUSALS:
            self._due = time.monotonic() + REFUSED_SECONDS
        return answer.status_code == _SUCCESS and bool(answer.headers.get("etag"))


async def _sha256_of(body: bytes | FileSlice) -> bytes:
    if isinstance(body, bytes):
        return hashlib.sha256(body).digest()
    return await run_blocking(body.sha256, inline=len(body) <= INLINE_BYTES)
