"""A conversation with a run: two pipes in its directory, one for the questions and one for the answers.

The service makes and opens both before the run starts, so a run that replaces them cannot reach anyone.
Answers are untrusted and bounded in size; the code that asked interprets them. Before an answer, the run may report
which share of the work is done.
"""

import asyncio
import os
import struct
from collections.abc import Sequence
from contextlib import suppress

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 16
_IS_REPORT, _PERMILLE = 1 << 31, 1000
MOST_BYTES = 16 << 20
MOST_REPORTS = 10_000
MOST_READS = 1 << 16
"""How often a run is heard, which costs the service more than the run if it sends single bytes."""
QUESTIONS = "questions"
ANSWERS = "answers"


def _framed(question: Sequence[str]) -> bytes:
    text = "\0".join((*question, ""))
    if text.count("\0") != len(question):
        raise ValueError("a text holds a zero byte")
    body = text.encode("utf-8", "surrogateescape")
    return _LENGTH.pack(len(body)) + body


class Conversation:
    """The service's ends of the pipes in `directory`, open until `close`."""

    def __init__(self, directory: str) -> None:
        self._paths = (f"{directory}/{QUESTIONS}", f"{directory}/{ANSWERS}")
        self._ends: list[int] = []
        self._loop = asyncio.get_running_loop()
        self._unread = bytearray()
        self._reports = self._reads = 0
        self.share: float | None = None
        """Which share of the answer to the current question is done, from 0 to 1; None if that is unknown."""
        self._is_over = False
        self._waiting: asyncio.Future[None] | None = None
        try:
            for path in self._paths:
                os.mkfifo(path, 0o600)
                self._ends.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise
        self._loop.add_reader(self._ends[1], self._receive)

    def close(self) -> None:
        """Let the run read the end of its questions, and leave no pipe behind. Doing it twice changes nothing."""
        self.end()
        if len(self._ends) == len(self._paths):
            self._loop.remove_reader(self._ends[1])
        while self._ends:
            os.close(self._ends.pop())
        for path in self._paths:
            with suppress(OSError):  # whatever the run has put there goes with its directory
                os.unlink(path)  # noqa: PTH108 - creating a Path costs more

    def end(self) -> None:
        """Note that no answer follows those that the run has sent, because it has ended."""
        if not self._is_over and len(self._ends) == len(self._paths):
            self._receive()
        self._is_over = True
        self._wake()

    async def say(self, *questions: Sequence[str]) -> None:
        """Ask questions, each a sequence of texts; the run answers them one after another.

        Raises:
            ValueError: a text holds a zero byte.
        """
        await self._write(b"".join(map(_framed, questions)))

    async def receive(self) -> bytes:
        """Wait for the next answer; empty if the run ends before it is whole, or answers with too much."""
        while (size := self._announced()) <= MOST_BYTES:
            if len(self._unread) >= (end := _LENGTH.size + size):
                answer = bytes(self._unread[_LENGTH.size : end])
                del self._unread[:end]
                self.share = None
                return answer
            if self._is_over:
                break
            await self._wait()
        return b""

    def _announced(self) -> int:
        """Take the reports off what is unread, and return the size of the answer that follows, 0 if none does yet.

        A run that sends nothing else is not heard forever: at last a report counts as the size of too large an answer.
        """
        while len(self._unread) >= _LENGTH.size:
            (told,) = _LENGTH.unpack_from(self._unread)
            if not told & _IS_REPORT or self._reports == MOST_REPORTS:
                return int(told)
            self.share = min(1.0, (told ^ _IS_REPORT) / _PERMILLE)
            self._reports += 1
            del self._unread[: _LENGTH.size]
        return 0

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._is_over:
            try:
                view = view[os.write(self._ends[0], view) :]
            except BlockingIOError:
                self._loop.add_writer(self._ends[0], self._wake)
                try:
                    await self._wait()
                finally:
                    self._loop.remove_writer(self._ends[0])

    async def _wait(self) -> None:
        self._waiting = self._loop.create_future()
        await self._waiting

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _receive(self) -> None:
        try:
            self._unread += os.read(self._ends[1], _CHUNK)
        except BlockingIOError:
            return
        self._reads += 1
        if len(self._unread) > _LENGTH.size + MOST_BYTES or self._reads > MOST_READS:  # more than any run has to say
            self._loop.remove_reader(self._ends[1])
            self._unread.clear()
            self._is_over = True
        self._wake()
