"""Fork servers: a process that has completed a program's start-up once, and forks a copy for every command.

The spawner sends it one datagram per command: the command, the steps of its layers, and with it the control socket, the
error pipe and what descriptors the steps need. The child that it forks is the spawner's own (by CLONE_PARENT, or
adopted), so it is watched and reaped like any other. It tells its process id on the control socket and waits there for
the word to go on.

A server that is silent for two seconds is taken for dead: it is killed and replaced, and its command starts elsewhere.
It is also replaced after many commands, because all its children share the layout of its memory.
"""

import array
import errno
import os
import signal
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.isolation.context import IsolationContext
from sandbox.launchers import Failed, OnSpawned
from sandbox.process.loop import Loop
from sandbox.process.run import Streams

# A server is silent on a busy host as well, and one that is ended then makes it busier.
_SILENCE_SECONDS = 2.0
_RESTART_SECONDS = 0.5
_LONGEST_RESTART_SECONDS = 60.0
_READY = b"ready"
_PID = b"P"


class Kind(Protocol):
    """The differences between kinds of servers."""

    @property
    def name(self) -> LauncherName:
        """What reports call it."""

    def takes(self, command: Command) -> bool:
        """Whether it can run this command."""

    def argv(self, link: int) -> tuple[Sequence[str], dict[str, str]]:
        """The server's command line and environment; `link` is the descriptor of its socket."""

    def request(self, command: Command, steps: bytes) -> bytes:
        """One command in the server's format, with the steps that its child takes first."""


class _ServerLost(OSError):
    """The server does not accept the command."""


class _Server:
    """One server process."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self.pid = pid
        self.link = link
        self.ready = False
        self.commands = 0


class ServerLauncher:
    """Keeps one server of a kind running and starts commands with it."""

    def __init__(self, kind: Kind, isolation: IsolationContext, loop: Loop, commands: int) -> None:
        self._kind = kind
        self._commands = commands
        self._isolation = isolation
        self._loop = loop
        self._current: _Server | None = None
        self._next: _Server | None = None
        self._patience = _RESTART_SECONDS
        self._renew()

    @property
    def name(self) -> LauncherName:
        """What reports call it."""
        return self._kind.name

    def takes(self, command: Command) -> bool:
        """Accepts commands of its program while a server is up."""
        return self._current is not None and self._kind.takes(command)

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
                _send(server.link, self._kind.request(command, confinement.steps), given)
        except OSError as error:
            streams.abandon()
            if isinstance(error, _ServerLost):
                self._drop(server)
            failed(str(error))
            return
        streams.handed_over()
        self._count(server)
        _Spawning(self._loop, streams, spawned, lambda reason: self._spawn_failed(server, reason, failed))

    def _spawn_failed(self, server: _Server, reason: str, failed: Failed) -> None:
        self._drop(server)
        failed(reason)

    def ended(self, pid: int) -> None:
        """Notice the end of a server."""
        for server in (self._current, self._next):
            if server is not None and server.pid == pid:
                self._forget(server)
                self._restore_later()

    def pids(self) -> Collection[int]:
        """The server and its replacement."""
        return [server.pid for server in (self._current, self._next) if server is not None]

    def _count(self, server: _Server) -> None:
        server.commands += 1
        if server.commands == self._commands:
            server.commands = 0
            self._renew()

    def _restore_later(self) -> None:
        # One that does not come up at all is not started every second for ever.
        self._loop.after(self._patience, self._restore)
        self._patience = min(self._patience * 2, _LONGEST_RESTART_SECONDS)

    def _restore(self) -> None:
        if self._current is None:
            self._renew()

    def _renew(self) -> None:
        if self._next is not None:
            return
        try:
            server = self._next = self._started()
        except OSError:  # there is no process or descriptor left now
            self._restore_later()
        else:
            self._loop.watch(server.link.fileno(), lambda: self._hear(server))

    def _started(self) -> _Server:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv, environment = self._kind.argv(theirs.fileno())
            pid = _execute(argv, environment, theirs)
        ours.setblocking(False)
        return _Server(pid, ours)

    def _hear(self, server: _Server) -> None:
        try:
            message = server.link.recv(1000)
        except OSError:
            message = b""
        if message == _READY and server is self._next:
            old, self._current, self._next = self._current, server, None
            self._patience = _RESTART_SECONDS
            if old is not None:
                # It ends by itself when its link is closed, after what it is doing.
                self._forget(old)
        elif not message:
            self._drop(server)

    def _drop(self, server: _Server) -> None:
        if server in {self._current, self._next}:
            self._forget(server)
            # Not its group: children that were told to go on may still be in it.
            with suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
            self._restore_later()

    def _forget(self, server: _Server) -> None:
        self._current = None if self._current is server else self._current
        self._next = None if self._next is server else self._next
        self._loop.unwatch(server.link.fileno())
        server.link.close()


class _Spawning:
    """A start that was requested from a server, until its child is known."""

    def __init__(self, loop: Loop, streams: Streams, spawned: OnSpawned, failed: Callable[[str], None]) -> None:
        self._loop = loop
        self._streams = streams
        self._spawned = spawned
        self._failed = failed
        self._control = streams.control
        self._timer = loop.after(_SILENCE_SECONDS, lambda: self._fail("the server is silent"))
        loop.watch(self._control.fileno(), self._hear)

    def _hear(self) -> None:
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


def _execute(argv: Sequence[str], environment: dict[str, str], link: socket.socket) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.set_inheritable(link.fileno(), True)
            os.execve(argv[0], list(argv), environment)  # noqa: S606 - no shell is wanted
        finally:
            os._exit(127)
    return pid


def _send(link: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    rights = array.array("i", descriptors)
    try:
        link.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    except OSError as error:
        # One that is busy, or is sent more than a socket takes at once, is as well as before.
        if error.errno in {errno.EAGAIN, errno.EMSGSIZE, errno.ENOBUFS}:
            raise
        raise _ServerLost(*error.args) from error
