"""One life of the helper process, as the service sees it: started, spoken to, gone."""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import anyio

from sandbox.config import Config
from sandbox.wire import Configure, Frames, FromSpawner, ToSpawner, decode_from_spawner, encode

_CHUNK = 1 << 17
_CLOSE_SECONDS = 10


def _environment() -> dict[str, str]:
    # It imports what this process imports, however that was found.
    found = (str(Path(__file__).resolve().parent.parent), *filter(None, sys.path))
    return {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(found)}


class Helper:
    """A keeper process with its spawner, and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], link: socket.socket) -> None:
        self._process = process
        self._link = link
        self._sending = anyio.Lock()

    @classmethod
    async def start(cls, config: Config) -> Self:
        """Start one and tell it what to do."""
        ours, theirs = socket.socketpair()
        with theirs:
            # vfork: costs the caller's loop a tenth of a millisecond whatever the size of the caller.
            process = subprocess.Popen(  # noqa: ASYNC220 - does not wait
                [sys.executable, "-s", "-P", "-m", "sandbox.keeper", str(theirs.fileno()), str(os.getpid())],
                env=_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        helper = cls(process, ours)
        await helper.send(Configure(config=config))
        return helper

    async def send(self, message: ToSpawner) -> None:
        """Send a message; one that is gone is not told, its `messages` end instead."""
        data = memoryview(encode(message))
        # Nearly always the socket takes it all, and there is nothing to wait for.
        if not self._sending.locked():
            data = self._send_some(data)
        if data:
            # Shielded: half a message would spoil all that follow.
            with anyio.CancelScope(shield=True):
                await self._send_rest(data)

    async def _send_rest(self, data: memoryview) -> None:
        async with self._sending:
            while data := self._send_some(data):
                await anyio.wait_writable(self._link)

    def _send_some(self, data: memoryview) -> memoryview:
        """Send what the socket takes; returns what is left, nothing if the other end is gone."""
        try:
            return data[self._link.send(data) :]
        except BlockingIOError:
            return data
        except OSError:
            return data[:0]

    async def messages(self) -> AsyncIterator[FromSpawner]:
        """What it says, until it is gone."""
        frames = Frames()
        while data := await self._receive():
            for body in frames.feed(data):
                yield decode_from_spawner(body)

    async def _receive(self) -> bytes:
        while True:
            try:
                return self._link.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._link)
            except OSError:
                return b""

    def hang_up(self) -> None:
        """Make it end all that it runs and go; `messages` ends."""
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    async def gone(self) -> None:
        """Wait until nothing of it is left."""
        self.hang_up()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._wait)
        self._link.close()

    def _wait(self) -> None:
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
