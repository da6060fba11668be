"""One helper process, as the service sees it: from start to end."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

import anyio

from sandbox.config import Config
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.process.wire import (
    SIGNALLED,
    Configure,
    Finished,
    Frames,
    Ping,
    Ready,
    ToSpawner,
    decode_from_spawner,
    encode,
)
from sandbox.report import SandboxReport

_CHUNK = 1 << 17
_CLOSE_SECONDS = 10
START_SECONDS = 60.0
"""Starting is half a second of work, which takes many seconds on a busy host."""
PING_SECONDS = 5.0
_MOST_UNANSWERED = 3
"""One may be unanswered because this process, or the host, was suspended in the meantime."""


def _environment() -> dict[str, str]:
    # The helper must import the same modules as this process, wherever they were found.
    found = (str(Path(__file__).resolve().parents[__name__.count(".")]), *filter(None, sys.path))
    return {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(found)}


class Helper:
    """A keeper process with its spawner, and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], link: socket.socket) -> None:
        self._process = process
        self._link = link
        self._unsent = bytearray()
        self._was_heard = False
        self._was_silent = False

    @classmethod
    async def start(cls, config: Config) -> Self:
        """Start a helper and send its configuration."""
        ours, theirs = socket.socketpair()
        with theirs:
            # Uses vfork: blocks the event loop for a tenth of a millisecond, whatever the size of this process.
            process = subprocess.Popen(  # noqa: ASYNC220 - does not wait
                [sys.executable, "-s", "-P", "-m", f"{__package__}.keeper", str(theirs.fileno()), str(os.getpid())],
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
        """Send a message, in order. If the helper has ended, the message is dropped and `listen` returns."""
        data = encode(message)
        if self._unsent:
            self._unsent += data
        # The socket nearly always accepts all of it, so there is nothing to wait for.
        elif (sent := self._send_some(data)) < len(data):
            self._unsent += data[sent:]
            asyncio.get_running_loop().add_writer(self._link, self._send_rest)

    def _send_rest(self) -> None:
        del self._unsent[: self._send_some(self._unsent)]
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._link)

    def _send_some(self, data: bytes | bytearray) -> int:
        """Send what the socket accepts; returns the number of bytes, or all of them if the other end has closed."""
        try:
            return self._link.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    async def ready(self) -> SandboxReport | None:
        """Wait for the helper's first message, its report; None if it ends first.

        Raises:
            SandboxUnavailable: it was silent for too long, and was ended.
        """
        with anyio.move_on_after(START_SECONDS):
            return await self._first_report()
        self._end()
        raise SandboxUnavailable(
            f"The sandbox's helper process was not ready after {START_SECONDS:g} seconds. Look for what keeps it from "
            "running: a suspended process, or a host with too much to do."
        )

    async def _first_report(self) -> SandboxReport | None:
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
        """Call `finished` as soon as a run ends; returns when the helper has ended."""
        # One permanent callback instead of a task that waits each time: a verdict wakes only its own waiter.
        loop, frames, gone = asyncio.get_running_loop(), Frames(), anyio.Event()

        def receive() -> None:
            data = self._receive()
            self._was_heard = True
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

    async def end_if_silent(self) -> None:
        """End the helper once it leaves several questions in a row unanswered; `listen` then returns."""
        unanswered = 0
        while unanswered < _MOST_UNANSWERED:
            self._was_heard = False
            self.send(Ping())
            await anyio.sleep(PING_SECONDS)
            unanswered = 0 if self._was_heard else unanswered + 1
        self._was_silent = True
        self._end()

    def _end(self) -> None:
        self._process.terminate()  # the keeper kills its spawner
        self._disconnect()

    def _receive(self) -> bytes | None:
        """Received bytes: None if there are none yet, empty at the end of the connection."""
        try:
            return self._link.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _disconnect(self) -> None:
        """Make the helper end all its runs and itself; `listen` then returns."""
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    async def gone(self) -> str:
        """Wait until the helper and all its processes have ended; return why they have."""
        self._disconnect()
        asyncio.get_running_loop().remove_writer(self._link)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._wait)
        self._link.close()
        if self._was_silent:
            return "it did not answer, and was ended"
        return _described(self._process.returncode)

    def _wait(self) -> None:
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _described(code: int) -> str:
    """Return how a keeper with this exit code, or its spawner, has ended."""
    who, number = ("its keeper", -code) if code < 0 else ("it", code - SIGNALLED)
    if number > 0:
        return f"{who} was killed by signal {number} ({signal.strsignal(number)})"
    return f"it ended with exit code {code}"
