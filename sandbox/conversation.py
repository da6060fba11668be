"""A conversation with a run: two pipes in its directory, one for the questions and one for the answers.

The service makes and opens both before the run starts, so a run that puts something else in their place reaches nobody.
What comes out of a run is untrusted and bounded; what it means is for whoever asked.
"""

import os
import struct
from contextlib import suppress
from pathlib import Path

import anyio

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 16
MOST_BYTES = 16 << 20
QUESTIONS = "questions"
ANSWERS = "answers"


class Garbled(Exception):
    """The run has answered with more than any answer has."""


class Conversation:
    """The service's ends of the pipes in `directory`, open until `close`."""

    def __init__(self, directory: Path) -> None:
        self._paths = (directory / QUESTIONS, directory / ANSWERS)
        self._ends: list[int] = []
        try:
            for path in self._paths:
                os.mkfifo(path, 0o600)
                self._ends.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise
        self._unread = bytearray()

    def close(self) -> None:
        """Let the run read the end of its questions, and leave no pipe behind. Doing it twice changes nothing."""
        while self._ends:
            os.close(self._ends.pop())
        for path in self._paths:
            with suppress(OSError):  # whatever the run has put there goes with its directory
                path.unlink()

    async def ask(self, *texts: str) -> bytes:
        """Ask one question and wait for its answer; it waits for ever if the run has ended.

        Raises:
            ValueError: a text holds a zero byte.
            Garbled: the answer is too long.
        """
        if any("\0" in text for text in texts):
            raise ValueError("a text holds a zero byte")
        body = b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts)
        await self._write(_LENGTH.pack(len(body)) + body)
        (size,) = _LENGTH.unpack(await self._read(_LENGTH.size))
        if size > MOST_BYTES:
            raise Garbled
        return await self._read(size)

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._ends[0], view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._ends[0])

    async def _read(self, size: int) -> bytes:
        while len(self._unread) < size:
            try:
                self._unread += os.read(self._ends[1], _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._ends[1])
        found = bytes(self._unread[:size])
        del self._unread[:size]
        return found
