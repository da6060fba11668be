"""A file on its way into a bucket: in one request when small, else in parts, and never through memory.

The HTTP client reads each part from disk in chunks and can go back in it, so that a part that failed is sent again
without the others. Parts go up several at a time; an upload that does not end well is aborted, so that its parts do
not stay in the bucket, invisible and paid for.
"""

import io
import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, TypedDict

from anyio import CancelScope, create_task_group

from service.errors import StorageUnavailable
from service.storage.faults import within

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.literals import ServerSideEncryptionType
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

SMALL_BYTES = 64 << 10
PART_BYTES = 8 << 20
MAX_PARTS = 10_000
PARTS_AT_ONCE = 4
ABORT_SECONDS = 5.0
LEAST_BYTES_PER_SECOND = 1 << 20
"""A request may take its time-out and, on top of it, its size at this rate."""


class Destination(TypedDict):
    """Where an object goes."""

    Bucket: str
    Key: str


class Metadata(TypedDict, total=False):
    """What is kept with an object."""

    ContentType: str
    ContentDisposition: str
    ServerSideEncryption: "ServerSideEncryptionType"
    SSEKMSKeyId: str


class FileSlice(io.RawIOBase):
    """A part of a file, read by position: several slices of one file can be read at the same time."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._start = start
        self._at = 0
        self.size = size

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: a retry starts again from the beginning of the slice."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the current place or the end of the slice."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the current place."""
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Read from the current place on; all that is left when `size` is negative."""
        left = max(0, self.size - self._at)
        found = os.pread(self._file.fileno(), left if size < 0 else min(size, left), self._start + self._at)
        self._at += len(found)
        return found


async def upload(
    client: "S3Client", destination: Destination, metadata: Metadata, file: BinaryIO, timeout_seconds: float
) -> None:
    """Make `file` the object at `destination`, whole or not at all; one request may take `timeout_seconds`.

    Raises:
        StorageUnavailable: it could not be done.
    """
    size = os.fstat(file.fileno()).st_size
    if size > PART_BYTES:
        await _upload_parts(client, destination, metadata, file, timeout_seconds)
        return
    # A few pages are read at once: passing them through a thread would cost more than the request.
    body = FileSlice(file, 0, size) if size > SMALL_BYTES else file.read()
    with within(_allowed(timeout_seconds, size)):
        await client.put_object(**destination, **metadata, Body=body, ContentLength=size)


async def _upload_parts(
    client: "S3Client", destination: Destination, metadata: Metadata, file: BinaryIO, timeout_seconds: float
) -> None:
    with within(timeout_seconds):
        upload_id = (await client.create_multipart_upload(**destination, **metadata))["UploadId"]
    try:
        parts = await _send_parts(client, destination, upload_id, _cut(file), timeout_seconds)
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
            with within(_allowed(timeout_seconds, part.size)):
                answer = await client.upload_part(
                    **destination, UploadId=upload_id, PartNumber=number, Body=part, ContentLength=part.size
                )
            sent.append({"PartNumber": number, "ETag": answer["ETag"]})

    try:
        async with create_task_group() as group:
            for _ in range(PARTS_AT_ONCE):
                group.start_soon(send)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return sorted(sent, key=lambda part: part["PartNumber"])


def _cut(file: BinaryIO) -> list[FileSlice]:
    size = os.fstat(file.fileno()).st_size
    length = max(PART_BYTES, -(-size // MAX_PARTS))
    return [FileSlice(file, start, min(length, size - start)) for start in range(0, size, length)]


def _allowed(timeout_seconds: float, size_bytes: int) -> float:
    return timeout_seconds + size_bytes / LEAST_BYTES_PER_SECOND
