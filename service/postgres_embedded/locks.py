"""Whole-file locks, which the kernel releases when their last holder ends for any reason."""

import fcntl
import os
from pathlib import Path


def try_lock(path: Path, *, exclusive: bool) -> int | None:
    """Lock `path`, which is created if missing, until the returned descriptor and its copies are closed.

    Returns:
        A descriptor, closed on exec; None if another process holds a conflicting lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def can_lock(path: Path, *, exclusive: bool) -> bool:
    """Return whether `try_lock` would succeed now."""
    descriptor = try_lock(path, exclusive=exclusive)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None
