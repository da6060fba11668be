"""Directories in the work root that belong to one process, and are recognised as abandoned when it was killed.

A living owner holds a lock on its directory, which the kernel lets go of with the process. So several services may
share a work root, and each removes at its start what a killed one left.
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
                os.close(_lock(abandoned))
                shutil.rmtree(abandoned)
        self.path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=work_root))
        # Passed through by the users of slots, but not listed.
        self.path.chmod(0o711)
        self._lock = _lock(self.path)

    def remove(self) -> None:
        """Remove it and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _lock(directory: Path) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
