"""Processes of the service, forked from one that has imported it: imports take longer than most of what they do.

Each is a process like that of a command, with descriptors, an environment and a directory of its own. It lacks what a
process inherits when it is executed: priority, limits, and what libraries read from the environment when they are
imported. Tests of these execute theirs, as do those that prove the command itself.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO

ROOT = Path(__file__).parents[2]
IMPORTED_FROM = os.pathsep.join(map(str, (Path(__file__).with_name("absent"), ROOT)))
"""Where processes of the service find it, and do not find what an installation lacks."""
_MOST_BYTES = 100
_STARTING = Lock()


class Forked:
    """A `geomill` command in a process of its own, with what tests need of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        directory: Path | None = None,
    ) -> None:
        request = json.dumps([arguments, dict(environment), str(directory or Path.cwd())]).encode()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            with _STARTING:
                link = _template()
            socket.send_fds(link, [request], [theirs.fileno(), stdout.fileno(), stderr.fileno()])
            theirs.close()
            told, [self._process], _, _ = socket.recv_fds(ours, _MOST_BYTES, 1)
            self._status = ours.detach()
        self.pid: int = json.loads(told)
        self.returncode: int | None = None
        self._hearing = Lock()

    def __del__(self) -> None:
        """Free the descriptors; a process that has not ended goes on."""
        for descriptor in (self._process, self._status):
            os.close(descriptor)

    def poll(self) -> int | None:
        """The exit code once the process has ended, negative for a signal."""
        return self._exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit code.

        Raises:
            subprocess.TimeoutExpired: the process has not ended after `timeout` seconds.
        """
        code = self._exit_code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("geomill", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _exit_code(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            told = select.poll()
            told.register(self._status, select.POLLIN)
            if told.poll(None if timeout is None else timeout * 1000):
                with self._hearing:
                    if self.returncode is None:
                        self.returncode = json.loads(os.read(self._status, _MOST_BYTES))
        return self.returncode


def environment_for(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with these settings and no others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
    return {**inherited, "PYTHONPATH": IMPORTED_FROM, **settings}


@cache
def _template() -> socket.socket:
    """Start the process to fork from; returns the socket to it, with which it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.template", str(theirs.fileno())],
            env=environment_for({}),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
