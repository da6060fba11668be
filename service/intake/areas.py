"""One directory per process under a common root, and the deletion of those whose process is dead.

Theory of operation. A process holds a lock (flock) on the directory of its area for as long as it lives. An area whose
lock can be taken therefore belongs to a dead process. Several servers may share one root, and a start never deletes the
files of a live process. The kernel releases the lock when the process ends for any reason, and programs that the
process starts do not inherit it, because the descriptor is closed on exec.
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
_MODE = 0o711  # a converter with another user may pass through it to its own directory, but not list it
_log = structlog.get_logger()


def claim_area(root: Path) -> tuple[Path, int]:
    """Create an area under `root`, and `root` itself; return the area and the descriptor that locks it.

    Raises:
        OSError: the root cannot be created or written, or its file system does not support locks.
    """
    root.mkdir(mode=_MODE, parents=True, exist_ok=True)
    while True:
        path = root / new_name()
        path.mkdir(mode=_MODE)
        lock = _lock(path)
        if lock is not None:  # otherwise another process has swept it in the meantime
            return path, lock


def sweep(root: Path) -> int:
    """Delete the areas of dead processes under `root`; return their number."""
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
    """Lock the directory and return its descriptor; None if another process has locked or deleted it."""
    with ExitStack() as undo, suppress(FileNotFoundError, BlockingIOError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        undo.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            undo.pop_all()
            return descriptor
    return None
