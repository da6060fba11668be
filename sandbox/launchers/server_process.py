"""One process of a fork server, as the spawner sees it."""

import array
import errno
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    """A server's command line and environment, and the directory that it starts in if that matters."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path | None = None


Started = Callable[[int], Program]
"""From the descriptor of a server's socket to its program."""


class ServerLost(OSError):
    """The server does not accept the command."""


class ServerProcess:
    """A server, which ends by itself when its link is closed, after what it is doing."""

    def __init__(self, started: Started) -> None:
        """Start it.

        Raises:
            OSError: there is no process or descriptor left now.
        """
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = _execute(started(theirs.fileno()), theirs)
        self.link.setblocking(False)
        self.commands = 0

    def receive(self) -> bytes:
        """Its message; no bytes if it has ended."""
        try:
            return self.link.recv(1000)
        except OSError:
            return b""

    def send(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send it a command.

        Raises:
            ServerLost: it has ended.
            OSError: it does not take this command now.
        """
        rights = array.array("i", descriptors)
        try:
            self.link.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError as error:
            # One that is busy, or is sent more than a socket takes at once, is as well as before.
            if error.errno in {errno.EAGAIN, errno.EMSGSIZE, errno.ENOBUFS}:
                raise
            raise ServerLost(*error.args) from error

    def kill(self) -> None:
        """End it at once, and not its group: children that were told to go on may still be in it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def _execute(program: Program, link: socket.socket) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.set_inheritable(link.fileno(), True)
            if program.directory is not None:
                os.chdir(program.directory)
            os.execve(program.argv[0], list(program.argv), dict(program.environment))  # noqa: S606 - no shell is wanted
        finally:
            os._exit(127)
    return pid
