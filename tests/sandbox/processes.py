"""Looks at the host's processes."""

import os
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
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


_others: set[int] = set()


def disregard_what_runs() -> None:
    """From now on, ignore what this process has started: servers that tests share."""
    _others.clear()
    _others.update(processes_below())


def processes_below(pid: int | None = None) -> set[int]:
    """All descendants of a process; by default, those that the test has started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = parent_of(int(entry.name))
            except (OSError, ValueError):
                continue
    top = os.getpid() if pid is None else pid
    below, disregarded = {top}, _others if pid is None else set()
    while more := {child for child, parent in parents.items() if parent in below} - below - disregarded:
        below |= more
    return below - {top}
