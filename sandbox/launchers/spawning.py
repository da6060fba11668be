"""A start that was requested from a server, until its child is known."""

import os
from collections.abc import Callable

from sandbox.launchers import OnSpawned
from sandbox.process.loop import Loop
from sandbox.process.run import Streams

# A server is silent on a busy host as well, and one that is ended then makes it busier.
_SILENCE_SECONDS = 2.0
_PID = b"P"


class Spawning:
    """Waits for the id of the child, lets it go on and hands it over; calls exactly one of its two functions."""

    def __init__(self, loop: Loop, streams: Streams, spawned: OnSpawned, failed: Callable[[str], None]) -> None:
        self._loop = loop
        self._streams = streams
        self._spawned = spawned
        self._failed = failed
        self._control = streams.control
        self._timer = loop.after(_SILENCE_SECONDS, lambda: self._fail("the server is silent"))
        loop.watch(self._control.fileno(), self._on_reply)

    def _on_reply(self) -> None:
        try:
            message = self._control.recv(1000)
        except OSError:
            message = b""
        if not message.removeprefix(_PID).isdigit():
            self._fail(message.decode(errors="replace") or "the server refused")
            return
        pid = int(message.removeprefix(_PID))
        try:
            # A child that is ours and waits for the word: not one that died on the way.
            gone = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            gone = None
            self._fail("the server's child is not ours")
            return
        if gone is not None:
            self._fail("the server's child has ended")
            return
        try:
            self._control.send(b"go")
        except OSError:
            self._fail("the server's child has ended")
            return
        self._over()
        self._spawned(self._streams.child(pid))

    def _fail(self, reason: str) -> None:
        self._over()
        self._streams.abandon()
        self._failed(reason)

    def _over(self) -> None:
        self._timer.cancel()
        self._loop.unwatch(self._control.fileno())
