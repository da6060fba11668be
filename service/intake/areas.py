"""One directory per process under a common root, and the removal of those whose process is dead.

Theory of operation. A process holds a lock (flock) on its area's directory for as long as it lives, so the kernel
itself says which areas belong to the dead: those whose lock can be taken. Several servers may therefore share one root,
and a start never removes the work of a living one. The lock goes with the process however it ends, and does not pass to
a program that it starts, since the descriptor is closed on exec.
"""

import fcntl
import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path

import structlog

from service.intake.trees import new_name, remove_tree
from service.telemetry import events

_AREA_NAME = re.compile(r"[0-9a-f]{32}")
_MODE = 0o711  # a converter under another user may cross it to its own directory, but not list it
_log = structlog.get_logger()


def claim_area(root: Path) -> tuple[Path, int]:
    """Make an area under `root`, which is made too; return it and the descriptor that locks it.

    Raises:
        OSError: the root cannot be made or written, or its file system has no locks.
    """
    root.mkdir(mode=_MODE, parents=True, exist_ok=True)
    while True:
        path = root / new_name()
        path.mkdir(mode=_MODE)
        lock = _lock(path)
        if lock is not None:  # else another's sweep came between
            return path, lock


def sweep(root: Path) -> int:
    """Remove the areas under `root` that dead processes left; return how many there were."""
    areas = [path for path in root.iterdir() if _AREA_NAME.fullmatch(path.name)] if root.exists() else []
    return sum(map(_sweep_area, areas))


def _sweep_area(path: Path) -> bool:
    try:
        lock = _lock(path)
        if lock is None:
            return False
        try:
            remove_tree(path)
        finally:
            os.close(lock)
    except OSError as error:
        _log.error(events.DIRECTORY_LEFT, reason=error.strerror)
        return False
    return True


def _lock(path: Path) -> int | None:
    """Lock the directory and return its descriptor; None when another holds the lock, or has removed the directory."""
    with ExitStack() as undo, suppress(FileNotFoundError, BlockingIOError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        undo.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            undo.pop_all()
            return descriptor
    return None
