"""One life of the helper process, as the service sees it: started, spoken to, gone."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

import anyio

from sandbox.config import Config
from sandbox.process.wire import Configure, Finished, Frames, Ready, ToSpawner, decode_from_spawner, encode
from sandbox.report import Report

_CHUNK = 1 << 17
_CLOSE_SECONDS = 10


def _environment() -> dict[str, str]:
    # It imports what this process imports, however that was found.
    found = (str(Path(__file__).resolve().parents[2]), *filter(None, sys.path))
    return {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(found)}


class Helper:
    """A keeper process with its spawner, and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], link: socket.socket) -> None:
        self._process = process
        self._link = link
        self._unsent = bytearray()

    @classmethod
    async def start(cls, config: Config) -> Self:
        """Start one and tell it what to do."""
        ours, theirs = socket.socketpair()
        with theirs:
            # vfork: costs the caller's loop a tenth of a millisecond whatever the size of the caller.
            process = subprocess.Popen(  # noqa: ASYNC220 - does not wait
                [sys.executable, "-s", "-P", "-m", "sandbox.process.keeper", str(theirs.fileno()), str(os.getpid())],
                env=_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        helper = cls(process, ours)
        helper.send(Configure(config=config))
        return helper

    def send(self, message: ToSpawner) -> None:
        """Send a message, after all before it; one that is gone is not told, its `listen` ends instead."""
        data = encode(message)
        if self._unsent:
            self._unsent += data
        # Nearly always the socket takes it all, and there is nothing to wait for.
        elif (sent := self._send_some(data)) < len(data):
            self._unsent += data[sent:]
            asyncio.get_running_loop().add_writer(self._link, self._send_rest)

    def _send_rest(self) -> None:
        del self._unsent[: self._send_some(self._unsent)]
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._link)

    def _send_some(self, data: bytes | bytearray) -> int:
        """Send what the socket takes; returns how much that was, all of it if the other end is gone."""
        try:
            return self._link.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    async def ready(self) -> Report | None:
        """Wait for its first message, what it found here; None when it is gone before."""
        frames = Frames()
        while True:
            await anyio.wait_readable(self._link)
            data = self._receive()
            if data == b"":
                return None
            for body in frames.feed(data or b""):
                message = decode_from_spawner(body)
                return message.report if isinstance(message, Ready) else None

    async def listen(self, finished: Callable[[Finished], None]) -> None:
        """Have `finished` called for every run that has ended, as soon as that is known; returns when it is gone."""
        # One callback for good, not a task that waits anew each time: a verdict wakes only whom it concerns.
        loop, frames, gone = asyncio.get_running_loop(), Frames(), anyio.Event()

        def receive() -> None:
            data = self._receive()
            if data == b"":
                loop.remove_reader(self._link)
                gone.set()
            for body in frames.feed(data or b""):
                message = decode_from_spawner(body)
                if isinstance(message, Finished):
                    finished(message)

        loop.add_reader(self._link, receive)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._link)

    def _receive(self) -> bytes | None:
        """What has come: nothing yet (None), or nothing ever again (no bytes)."""
        try:
            return self._link.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def hang_up(self) -> None:
        """Make it end all that it runs and go; `listen` ends."""
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    async def gone(self) -> None:
        """Wait until nothing of it is left."""
        self.hang_up()
        asyncio.get_running_loop().remove_writer(self._link)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._wait)
        self._link.close()

    def _wait(self) -> None:
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
