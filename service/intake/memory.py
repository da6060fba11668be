"""A directory in memory for small uploads, whose short-lived files need no disk.

A directory entry on a disk costs up to a hundred times as much as in memory, especially on a busy disk, and a small
conversion creates and deletes twenty of them.
"""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

import structlog

from service.telemetry import events

LEAST_FREE_BYTES = 256 << 20
"""Free space below which small uploads go to disk like all others."""
LEAST_FREE_FILES = 1000

_MODE = 0o711
_log = structlog.get_logger()


def memory_root(parent: str, data_path: Path) -> Path | None:
    """Return a directory for this service below `parent`, a directory in memory that other programs may use as well.

    All servers with the same `data_path` share it. None if `parent` is empty or missing, has no free space, or contains
    a file or directory of that name that belongs to another user.
    """
    if not parent:
        return None
    path = memory_path(parent, data_path)
    try:
        path.mkdir(mode=_MODE, exist_ok=True)
        _require_own(path)
    except OSError as error:
        _log.info(events.NO_MEMORY_DIRECTORY, reason=error.strerror or str(error))
        return None
    if not has_room(path):
        _log.info(events.NO_MEMORY_DIRECTORY, reason="there is too little free space")
        return None
    return path


def memory_path(parent: str, data_path: Path) -> Path:
    """Return the path of the directory, whether or not it exists."""
    name = hashlib.sha256(os.fsencode(data_path.resolve())).hexdigest()[:16]
    return Path(parent, f"geomill-{os.geteuid()}-{name}")


def leave_memory_root(path: Path) -> None:
    """Delete the directory, unless another process uses it."""
    with suppress(OSError):
        path.rmdir()


def has_room(path: Path) -> bool:
    """Return whether `path` exists, can be written and has enough free space for small conversions."""
    try:
        found = os.statvfs(path)
    except OSError:  # another program has removed it
        return False
    lacks_files = found.f_files > 0 and found.f_favail < LEAST_FREE_FILES
    is_writable = not found.f_flag & os.ST_RDONLY
    return is_writable and not lacks_files and found.f_bavail * found.f_frsize >= LEAST_FREE_BYTES


def _require_own(path: Path) -> None:
    """Check that this user created it: in a shared directory, any user may have."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError("another user has taken its name")
