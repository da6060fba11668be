"""The keeper: starts PostgreSQL, restarts it when it dies, and stops it when it has no users left.

A separate program, run by path with the standard library alone, so that it starts in milliseconds and stays small.
Its one argument is the JSON of `Task`. It inherits the descriptor that holds `keeper.lock`.
"""

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

SHORT_LIFE_SECONDS = 10.0
SHORT_LIVES = 4
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
LEFTOVERS_SECONDS = 60.0
SHUTDOWN_SECONDS = 60.0

_PR_SET_PDEATHSIG = 1


class Task(TypedDict):
    """The server to keep running."""

    command: list[str]
    environment: dict[str, str]
    identity: dict[str, Any]  # arguments of subprocess: user, group, extra_groups
    descriptors: list[int]
    users_lock: str
    data: str
    socket: str


class Keeper:
    """Keeps one server running while the users' lock is held."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._guard = threading.Lock()
        self._unused = threading.Event()
        self._server: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Return 0 after an orderly shutdown, 1 if the server cannot be kept running."""
        threading.Thread(target=self._stop_when_unused, daemon=True).start()
        short_lives = 0
        while not self._unused.is_set():
            began = time.monotonic()
            if not self._serve():
                return 1
            short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_SECONDS else 0
            if short_lives == SHORT_LIVES:
                return 1
            self._unused.wait(min(FIRST_PAUSE_SECONDS * 2**short_lives, LONGEST_PAUSE_SECONDS))
        with suppress(OSError):
            Path(self._task["socket"]).parent.rmdir()  # it may be in /tmp, where nothing else cleans it up
        return 0

    def _serve(self) -> bool:
        """Run the server until it ends; return False if another server uses the data."""
        if not remove_stale_pid_files(Path(self._task["data"]), Path(self._task["socket"])):
            _say("another PostgreSQL server uses this data directory")
            return False
        with self._guard:
            if self._unused.is_set():
                return True
            self._server = self._start()
        status = self._server.wait()
        _say(f"the server ended with status {status}")
        return True

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._task["command"],
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=self._task["environment"],
            pass_fds=self._task["descriptors"],
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - runs after the change of user, which would reset it
            **self._task["identity"],
        )

    def _stop_when_unused(self) -> None:
        with Path(self._task["users_lock"]).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self._guard:
                self._unused.set()
            for ending in (signal.SIGINT, signal.SIGQUIT):  # fast, then immediate shutdown
                if self._server is not None:
                    self._server.send_signal(ending)
                time.sleep(SHUTDOWN_SECONDS)


def end_with_parent() -> Callable[[], None]:
    """Return a function with which a new process requests SIGINT (fast shutdown) when this one dies."""
    keeper = os.getpid()
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def prepare() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)

    return prepare


def remove_stale_pid_files(data: Path, socket: Path, patience_seconds: float = LEFTOVERS_SECONDS) -> bool:
    """Delete the pid files of a killed server, which seems alive if another process has its id now.

    Waits for the remaining processes of a killed server, which may still be writing.

    Returns:
        False if a server still uses the data.
    """
    if not Path("/proc/self/cwd").exists():
        return True  # rely on PostgreSQL's own check
    deadline = time.monotonic() + patience_seconds
    while any(_servers_on(data)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    (data / "postmaster.pid").unlink(missing_ok=True)
    socket.with_name(f"{socket.name}.lock").unlink(missing_ok=True)
    return True


def _servers_on(data: Path) -> Iterator[int]:
    """Return the processes of PostgreSQL whose working directory is `data`."""
    status = data.stat()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            if name == "postgres" and os.path.samestat((process / "cwd").stat(), status):
                yield int(process.name)
        except OSError:
            continue  # it has ended, or belongs to another user


def _say(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), "keeper:", text, file=sys.stderr, flush=True)  # noqa: T201 -- its standard error is a log file of its own


def main(argument: str) -> None:
    """Detach from the caller, so that it need not wait for this process, and keep the server running."""
    if os.fork():
        return
    # A terminal or service manager may signal all processes at once; the server must outlive its draining users.
    # Use handlers rather than SIG_IGN, which the server would inherit.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    sys.exit(Keeper(json.loads(argument)).run())


if __name__ == "__main__":
    main(sys.argv[1])
