"""Whole-file locks that the kernel drops when their last holder ends, however it ends."""

import fcntl
import os
from pathlib import Path


def try_lock(path: Path, *, exclusive: bool) -> int | None:
    """Lock `path`, made if missing; the lock lives as long as the descriptor that is returned, and its copies.

    Returns:
        A descriptor, closed on exec; None if others hold the lock in a way that excludes ours.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def can_lock(path: Path, *, exclusive: bool) -> bool:
    """Whether `try_lock` would have succeeded just now."""
    descriptor = try_lock(path, exclusive=exclusive)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None
