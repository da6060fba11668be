"""A fork server that is started when a command needs it, and ended when none has for a while.

The first commands wait until it is ready: a process of their own would take as long. They start elsewhere if it does
not become ready.
"""

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from sandbox.command import Command
from sandbox.isolation.context import IsolationContext
from sandbox.launchers import Failed, OnSpawned
from sandbox.launchers.server import ServerKind, ServerLauncher
from sandbox.process.loop import Loop


class Waiting(NamedTuple):
    """A command that starts when the server is ready, and what to call if it is given up before."""

    start: Callable[[], None]
    failed: Failed


class OnDemandLauncher:
    """Starts commands with a server of a kind, which runs only while it is used."""

    def __init__(
        self, kind: ServerKind, isolation: IsolationContext, loop: Loop, commands: int, idle_seconds: float
    ) -> None:
        self.name = kind.name
        self._kind = kind
        self._open = partial(ServerLauncher, kind, isolation, loop, commands, self._serve_waiting)
        self._loop = loop
        self._idle_seconds = idle_seconds
        self._server: ServerLauncher | None = None
        self._waiting: dict[int, Waiting] = {}
        self._used = 0.0
        self._has_failed = False

    def takes(self, command: Command) -> bool:
        """Accepts commands of its program, unless its server was lost, or failed to start, and is not ready again."""
        server = self._server
        may_wait = server is None or (server.is_starting and not self._has_failed)
        return self._kind.takes(command) and (may_wait or (server is not None and server.is_up))

    def start(self, command: Command, slot: int, spawned: OnSpawned, failed: Failed) -> None:
        """Start the command as soon as the server is ready."""
        self._used = time.monotonic()
        server = self._server
        if server is None:
            self._has_failed = False
            server = self._server = self._open()
            self._loop.after(self._idle_seconds, self._end_unused)
        if server.is_up or not server.is_starting:
            server.start(command, slot, spawned, failed)
        else:
            self._waiting[slot] = Waiting(lambda: server.start(command, slot, spawned, failed), failed)

    def withdraw(self, slot: int) -> None:
        """Give up a command that waits for the server."""
        if (waiting := self._waiting.pop(slot, None)) is not None:
            waiting.failed("it was withdrawn")

    def ended(self, pid: int) -> None:
        """Notice the end of a server."""
        if self._server is not None:
            self._server.ended(pid)

    def pids(self) -> Collection[int]:
        """The server and its replacement, if they run."""
        return self._server.pids() if self._server is not None else ()

    def _serve_waiting(self) -> None:
        self._has_failed = self._server is not None and not self._server.is_up
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.start()

    def _end_unused(self) -> None:
        left = self._used + self._idle_seconds - time.monotonic()
        if left > 0 or self._waiting or self._server is None:
            self._loop.after(max(left, self._idle_seconds / 2), self._end_unused)
        else:
            self._server.end()
            self._server = None
