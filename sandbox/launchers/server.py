"""Fork servers: a process that has completed a program's start-up once, and forks a copy for every command.

The spawner sends it one datagram per command: the command, the steps of its layers, and with it the control socket, the
error pipe and what descriptors the steps need. The child that it forks is the spawner's own (by CLONE_PARENT, or
adopted), so it is watched and reaped like any other. It tells its process id on the control socket and waits there for
the word to go on.

A server that is silent for two seconds is taken for dead: it is killed and replaced, and its command starts elsewhere.
It is also replaced after many commands, because all its children share the layout of its memory.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.isolation.context import IsolationContext
from sandbox.launchers import Failed, OnSpawned
from sandbox.launchers.server_process import Program, ServerLost, ServerProcess
from sandbox.launchers.spawning import Spawning
from sandbox.process.loop import Loop
from sandbox.process.run import Streams

_RESTART_SECONDS = 0.5
_LONGEST_RESTART_SECONDS = 60.0
# Start-up is a second of work, which takes many on a busy host: one that took too long is given twice as long.
_STARTING_SECONDS = 60.0
_LONGEST_STARTING_SECONDS = 960.0
_READY = b"ready"


class ServerKind(Protocol):
    """The differences between kinds of servers."""

    @property
    def name(self) -> LauncherName:
        """What reports call it."""

    def takes(self, command: Command) -> bool:
        """Whether it can run this command."""

    def program(self, link: int) -> Program:
        """The server's program; `link` is the descriptor of its socket."""

    def request(self, command: Command, steps: bytes) -> bytes:
        """One command in the server's format, with the steps that its child takes first."""


class ServerLauncher:
    """Keeps one server of a kind running and starts commands with it.

    `changed` is called when a server has become ready, and when none is left.
    """

    def __init__(
        self,
        kind: ServerKind,
        isolation: IsolationContext,
        loop: Loop,
        commands: int,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = kind.name
        self._kind = kind
        self._commands = commands
        self._isolation = isolation
        self._loop = loop
        self._changed = changed
        self._current: ServerProcess | None = None
        self._next: ServerProcess | None = None
        self._patience = _RESTART_SECONDS
        self._starting_seconds = _STARTING_SECONDS
        self._is_over = False
        self._renew()

    @property
    def is_up(self) -> bool:
        """Whether a server is ready."""
        return self._current is not None

    @property
    def is_starting(self) -> bool:
        """Whether a server will be ready soon."""
        return self._next is not None

    def takes(self, command: Command) -> bool:
        """Accepts commands of its program while a server is up."""
        return self.is_up and self._kind.takes(command)

    def start(self, command: Command, slot: int, spawned: OnSpawned, failed: Failed) -> None:
        """Send the command to the server and wait for its child."""
        server = self._current
        if server is None:
            failed("no server is up")
            return
        try:
            streams = Streams()
        except OSError as error:
            failed(str(error))
            return
        try:
            with self._isolation.prepared(slot, command, executes=False) as confinement:
                given = [streams.control_end.fileno(), streams.stderr_end, *confinement.descriptors]
                server.send(self._kind.request(command, confinement.steps), given)
        except OSError as error:
            streams.abandon()
            if isinstance(error, ServerLost):
                self._drop(server)
            failed(str(error))
            return
        streams.handed_over()
        self._count(server)
        Spawning(self._loop, streams, spawned, lambda reason: self._spawn_failed(server, reason, failed))

    def _spawn_failed(self, server: ServerProcess, reason: str, failed: Failed) -> None:
        self._drop(server)
        failed(reason)

    def withdraw(self, slot: int) -> None:
        """Nothing waits here: a command is sent to a server that is ready, or fails."""

    def ended(self, pid: int) -> None:
        """Notice the end of a server."""
        for server in self._servers():
            if server.pid == pid:
                self._forget(server)
                self._restore_later()

    def pids(self) -> Collection[int]:
        """The server and its replacement."""
        return [server.pid for server in self._servers()]

    def end(self) -> None:
        """End the server, for good, once it has forked what it was sent."""
        self._is_over = True
        for server in self._servers():
            self._forget(server)

    def _servers(self) -> list[ServerProcess]:
        return [server for server in (self._current, self._next) if server is not None]

    def _count(self, server: ServerProcess) -> None:
        server.commands += 1
        if server.commands == self._commands:
            server.commands = 0
            self._renew()

    def _restore_later(self) -> None:
        # One that does not come up at all is not started every second forever.
        self._loop.after(self._patience, self._restore)
        self._patience = min(self._patience * 2, _LONGEST_RESTART_SECONDS)

    def _restore(self) -> None:
        if self._current is None and not self._is_over:
            self._renew()

    def _renew(self) -> None:
        if self._next is not None:
            return
        try:
            server = self._next = ServerProcess(self._kind.program)
        except OSError:
            self._restore_later()
        else:
            self._loop.watch(server.link.fileno(), lambda: self._on_message(server))
            self._loop.after(self._starting_seconds, lambda: self._give_up(server))

    def _give_up(self, server: ServerProcess) -> None:
        if server is self._next:
            self._starting_seconds = min(self._starting_seconds * 2, _LONGEST_STARTING_SECONDS)
            self._drop(server)

    def _on_message(self, server: ServerProcess) -> None:
        message = server.receive()
        if message == _READY and server is self._next:
            old, self._current, self._next = self._current, server, None
            self._patience = _RESTART_SECONDS
            if old is not None:
                self._forget(old)
            self._changed()
        elif not message:
            self._drop(server)

    def _drop(self, server: ServerProcess) -> None:
        if server in self._servers():
            server.kill()
            self._forget(server)
            self._restore_later()

    def _forget(self, server: ServerProcess) -> None:
        """Close its link, by which it ends."""
        self._current = None if self._current is server else self._current
        self._next = None if self._next is server else self._next
        self._loop.unwatch(server.link.fileno())
        server.link.close()
        if not self._servers():
            self._changed()
