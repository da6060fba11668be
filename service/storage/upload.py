"""Upload of a file to a bucket in parts, or as the body of one request (`puts`), without holding it in memory.

What a server has confirmed and does not have would be charged and never found. So its answer must name what it has
stored, as that of a proxy in its place does not, and it is asked for the size of all but small objects: for those this
would take a tenth of the whole conversion.

The HTTP client takes each part in small pieces, which the system still has in memory because the file was just written,
and can take it again, so that a failed part is sent again without the others. Several parts are sent at a time. A
failed upload is aborted, because its parts would otherwise remain in the bucket, unlisted but billed.
"""

import asyncio
import io
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from hashlib import sha256
from typing import IO, TYPE_CHECKING, BinaryIO, Literal, TypedDict, cast

from aiohttp import AsyncIterablePayload
from aiohttp.abc import AbstractStreamWriter
from anyio import CancelScope, create_task_group

from service.blocking import INLINE_BYTES
from service.errors import StorageUnavailable
from service.storage.faults import within

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.literals import ServerSideEncryptionType
    from types_aiobotocore_s3.type_defs import (
        CompletedPartTypeDef,
        CreateMultipartUploadOutputTypeDef,
        PutObjectOutputTypeDef,
        UploadPartOutputTypeDef,
    )

    Answer = CreateMultipartUploadOutputTypeDef | PutObjectOutputTypeDef | UploadPartOutputTypeDef

SMALL_BYTES = 64 << 10
PART_BYTES = 32 << 20
"""Up to here an object takes one request, and each further one costs 2 ms of CPU here, besides what it costs there."""
MAX_PARTS = 10_000
PARTS_AT_ONCE = 4
ABORT_SECONDS = 5.0
LEAST_BYTES_PER_SECOND = 1 << 20
"""A request may take its timeout plus the time to send its body at this rate."""


class Destination(TypedDict):
    """Bucket and key of an object."""

    Bucket: str
    Key: str


class Metadata(TypedDict, total=False):
    """Metadata stored with an object."""

    ContentType: str
    ContentDisposition: str
    ServerSideEncryption: "ServerSideEncryptionType"
    SSEKMSKeyId: str


class FileSlice:
    """A part of a file, read by position, so that several slices can be read at the same time.

    It is read like a file to be signed, and iterated over to be sent: from a file, the HTTP client would take 64 KiB at
    a time, each in a thread.
    """

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._at = 0
        self._size = size

    def __len__(self) -> int:
        """Return the size of the slice in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the current position or the end of the slice."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Read from the current position; everything that is left if `size` is negative."""
        found = self._read_at(self._at, self._size if size < 0 else size)
        self._at += len(found)
        return found

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """Iterate over the whole slice, wherever the current position is, as often as it has to be sent."""
        for at in range(0, self._size, INLINE_BYTES):
            yield self._read_at(at, INLINE_BYTES)

    def sha256(self) -> bytes:
        """Return the SHA-256 of the slice, wherever the current position is."""
        found = sha256()
        for at in range(0, self._size, INLINE_BYTES):
            found.update(self._read_at(at, INLINE_BYTES))
        return found.digest()

    async def send(self, transport: asyncio.WriteTransport) -> None:
        """Send the whole slice to a socket, wherever the current position is."""
        await asyncio.get_running_loop().sendfile(transport, self._file, self._start, self._size)

    def body(self) -> IO[bytes]:
        """Return this as the type that the client declares; it needs no more of it than there is."""
        return cast("IO[bytes]", self)

    def _read_at(self, at: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), max(0, min(size, self._size - at)), self._start + at)


class FileBody(AsyncIterablePayload):
    """A slice of a file as the body of a request, which the system sends from the file, unless TLS has to encrypt it.

    That takes half of the CPU of reading and sending it.
    """

    def __init__(self, part: FileSlice) -> None:
        super().__init__(part)
        self._part = part

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """See `Payload.write_with_length`."""
        if (transport := writer.transport) is None or transport.get_extra_info("sslcontext") is not None:
            await super().write_with_length(writer, content_length)
        else:
            writer.send_headers()
            await self._part.send(transport)


async def confirm(client: "S3Client", destination: Destination, size: int, timeout_seconds: float) -> None:
    """Check that the server has an object of this size, as it has answered.

    Raises:
        StorageUnavailable: it has not, or does not say so.
    """
    try:
        with within(timeout_seconds):
            found = (await client.head_object(**destination))["ContentLength"]
    except StorageUnavailable as error:
        raise StorageUnavailable(error.fault, f"asked for the object that it had confirmed, {error.detail}") from error
    if found != size:
        raise StorageUnavailable("down", f"the server has {found} of the {size} bytes that it had confirmed")


async def upload_parts(
    client: "S3Client", destination: Destination, metadata: Metadata, slices: list[FileSlice], timeout_seconds: float
) -> None:
    """Upload a file atomically; each request may take `timeout_seconds`, plus the time for the size of its slice.

    Raises:
        StorageUnavailable: the upload failed, or the server's answers show that it does not have a part.
    """
    with within(timeout_seconds):
        upload_id = require_named(await client.create_multipart_upload(**destination, **metadata), "UploadId")
    try:
        parts = await _send_parts(client, destination, upload_id, slices, timeout_seconds)
        with within(timeout_seconds):
            await client.complete_multipart_upload(**destination, UploadId=upload_id, MultipartUpload={"Parts": parts})
    except BaseException:
        with CancelScope(shield=True), suppress(StorageUnavailable), within(ABORT_SECONDS):
            await client.abort_multipart_upload(**destination, UploadId=upload_id)
        raise


async def _send_parts(
    client: "S3Client", destination: Destination, upload_id: str, slices: list[FileSlice], timeout_seconds: float
) -> list["CompletedPartTypeDef"]:
    waiting = iter(enumerate(slices, start=1))
    sent: list[CompletedPartTypeDef] = []

    async def send() -> None:
        for number, part in waiting:
            with within(allowed_seconds(timeout_seconds, len(part))):
                answer = await client.upload_part(
                    **destination, UploadId=upload_id, PartNumber=number, Body=part.body(), ContentLength=len(part)
                )
            sent.append({"PartNumber": number, "ETag": require_named(answer, "ETag")})

    try:
        async with create_task_group() as group:
            for _ in range(PARTS_AT_ONCE):
                group.start_soon(send)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return sorted(sent, key=lambda part: part["PartNumber"])


def require_named(answer: "Answer", field: Literal["ETag", "UploadId"]) -> str:
    """Return what the server calls what it has stored or begun."""
    if name := answer.get(field):
        return str(name)
    raise StorageUnavailable("misconfigured", f"what answers at the endpoint is no S3 server: it gives no {field}")


def cut(file: BinaryIO, size: int) -> list[FileSlice]:
    """Cut a file of so many bytes into what one request each sends."""
    length = max(PART_BYTES, -(-size // MAX_PARTS))
    return [FileSlice(file, start, min(length, size - start)) for start in range(0, size, length)]


def allowed_seconds(timeout_seconds: float, size_bytes: int) -> float:
    """Return how long a request with so large a body may take."""
    return timeout_seconds + size_bytes / LEAST_BYTES_PER_SECOND
