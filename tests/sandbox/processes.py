"""Looks at the host's processes."""

import os
from contextlib import suppress
from pathlib import Path


def command_line(pid: int) -> bytes:
    """A process's arguments, each terminated by a zero byte; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def state_of(pid: int) -> str:
    """The kernel's letter for a process's state, such as R or T.

    Raises:
        FileNotFoundError, ProcessLookupError: it is gone.
    """
    return _stat(pid)[0]


def parent_of(pid: int) -> int:
    """The parent of a process.

    Raises:
        FileNotFoundError, ProcessLookupError: it is gone.
    """
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """The kernel's figures of a process, beginning with its state."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- as below
        return file.read().rpartition(b")")[2].decode().split()


_others: set[int] = set()


def disregard_what_runs() -> None:
    """From now on, ignore what this process has started: servers that tests share."""
    _others.clear()
    _others.update(processes_below())


def processes_below(pid: int | None = None) -> set[int]:
    """All descendants of a process; by default, those that the test has started."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 -- a path for each process takes longer than the rest
        with suppress(OSError, ValueError):
            parents[int(name)] = parent_of(int(name))
    top = os.getpid() if pid is None else pid
    below, disregarded = {top}, _others if pid is None else set()
    while more := {child for child, parent in parents.items() if parent in below} - below - disregarded:
        below |= more
    return below - {top}
