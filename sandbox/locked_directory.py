"""Directories in the work root that belong to one process, recognizable as abandoned after it was killed.

The owner holds a lock on its directory, which the kernel releases when the process ends. Several services may therefore
share a work root, and each removes at its start what killed ones left behind.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


class LockedDirectory:
    """A directory named `PREFIX-…` in the work root."""

    def __init__(self, work_root: Path, prefix: str) -> None:
        for abandoned in work_root.glob(f"{prefix}-*"):
            with suppress(OSError):
                _remove_abandoned(abandoned)
        self.path, self._lock = _make(work_root, prefix)
        # The slots' users may pass through it, but not list it.
        self.path.chmod(0o711)

    def remove(self) -> None:
        """Remove the directory and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _make(work_root: Path, prefix: str) -> tuple[Path, int]:
    """Create a directory and lock it, before a process that starts at the same time takes it for abandoned."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=work_root))
        with suppress(FileNotFoundError, BlockingIOError):
            descriptor = lock_directory(path)
            if path.exists():
                return path, descriptor
            os.close(descriptor)


def _remove_abandoned(directory: Path) -> None:
    """Remove a directory that no process has locked.

    Raises:
        OSError: a process has, or it cannot be removed.
    """
    descriptor = lock_directory(directory)
    try:
        shutil.rmtree(directory)
    finally:
        os.close(descriptor)


def lock_directory(directory: Path) -> int:
    """Lock a directory until the returned descriptor, and every copy that a child has inherited, is closed.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: it cannot be opened.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
