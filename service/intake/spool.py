"""Receives a form: takes a stream of chunks and returns files in private directories and a record.

The event loop parses, and a thread writes and hashes one mebibyte at a time. Nothing is read in the meantime, so
backpressure slows the client down to the speed of the disk and memory stays constant. A body with a small declared
length is written in the loop at its end, because writing a few kilobytes costs less than a thread hop.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterable

from service.blocking import INLINE_BYTES
from service.errors import UploadTimeout
from service.intake.assembly import Assembly
from service.intake.form import Form, FormSpec, IntakeLimits
from service.intake.headers import read_boundary
from service.intake.multipart import FormParser
from service.intake.pace import Pace
from service.intake.size_limits import body_too_large, max_body_bytes
from service.intake.workspace import Workspace

_OTHER_PARTS = 64
_PARTS_PER_FILE = 3  # the file, its output format, its source system


async def receive(
    body: AsyncIterable[bytes],
    *,
    content_type: str | None,
    content_length: int | None,
    form: FormSpec,
    workspace: Workspace,
    limits: IntakeLimits,
) -> Form:
    """Receive the form that `body` carries; its files belong to `workspace`.

    Args:
        body: the body of the request in chunks of any size; what it raises when the client disconnects is passed on.
        content_type: the header of the request, None if absent.
        content_length: the declared length in bytes, None if the body is chunked.
        form: the form that the endpoint accepts.
        workspace: owner of the new directories.
        limits: maximum sizes and minimum speed.

    Raises:
        MalformedRequest: the body is not a multipart form, is truncated, or lacks its file (interface 7.1).
        UploadTooLarge: the file of a single upload exceeds the maximum size.
        BatchTooLarge: the body of a batch exceeds the maximum size.
        TooManyFiles: the batch has more files than one request may carry.
        UploadTimeout: the client stopped sending or is too slow.
        Overloaded: the disk is full.
    """
    boundary = read_boundary(content_type)
    if content_length is not None and content_length > max_body_bytes(form, limits):
        raise body_too_large(form, limits)
    small = content_length is not None and content_length <= INLINE_BYTES
    reserved = 0 if small else content_length or 0
    if reserved:
        await workspace.reserve(reserved)
    reception = _Reception(boundary, form, workspace, limits, reserved=reserved, small=small)
    try:
        return await reception.run(body)
    finally:
        reception.close()


class _Reception:
    """The reception of one body."""

    def __init__(
        self, boundary: bytes, form: FormSpec, workspace: Workspace, limits: IntakeLimits, *, reserved: int, small: bool
    ) -> None:
        self._parser = FormParser(
            boundary,
            file_field=form.file_field,
            max_parts=_OTHER_PARTS + _PARTS_PER_FILE * limits.max_batch_files,
            max_field_bytes=limits.max_field_bytes,
        )
        self._reserved = reserved
        self._small = small
        self._assembly = Assembly(form, limits, workspace, small=small)
        self._workspace = workspace
        self._pace = Pace(limits, time.monotonic())
        self._deadline = self._pace.deadline
        self._grain_seconds = limits.idle_seconds / 20
        self._form = form
        self._limits = limits
        self._room = max_body_bytes(form, limits)
        self._received = 0

    async def run(self, body: AsyncIterable[bytes]) -> Form:
        waiting = asyncio.timeout_at(self._deadline)
        try:
            async with waiting:
                await self._read(body, waiting)
        except TimeoutError:
            if not waiting.expired():
                raise
            raise UploadTimeout(self._pace.complaint) from None
        self._parser.finish()
        if self._small:
            self._assembly.flush()
        else:
            await self._workspace.run_blocking(self._assembly.flush)
        form = self._assembly.form()
        if not self._small:
            self._workspace.settle(form.files)
        return form

    def close(self) -> None:
        self._assembly.close()

    async def _read(self, body: AsyncIterable[bytes], waiting: asyncio.Timeout) -> None:
        async for chunk in body:
            if not chunk:
                continue
            self._received += len(chunk)
            if self._received > self._room:
                raise body_too_large(self._form, self._limits)
            for event in self._parser.feed(chunk):
                self._assembly.take(event)
            self._pace.heard(time.monotonic(), self._received)
            if self._assembly.pending_bytes >= self._workspace.buffer_bytes:
                await self._flush(waiting)
            self._extend(waiting)

    def _extend(self, waiting: asyncio.Timeout) -> None:
        deadline = self._pace.deadline
        if abs(deadline - self._deadline) > self._grain_seconds:  # a timer per chunk costs more than parsing it
            self._deadline = deadline
            waiting.reschedule(deadline)

    async def _flush(self, waiting: asyncio.Timeout) -> None:
        self._deadline = math.inf
        waiting.reschedule(None)
        if self._received > self._reserved:  # the length was not declared
            await self._workspace.reserve(self._received)
        await self._workspace.run_blocking(self._assembly.flush)
        self._pace.resume(time.monotonic())
