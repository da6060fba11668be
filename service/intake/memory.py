"""A directory in memory for small uploads: files that live for a moment should not wake a disk.

A directory entry on a disk costs up to a hundred times what it costs in memory, most of all on a busy disk; a small
conversion makes and removes twenty of them.
"""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

import structlog

from service.telemetry import events

LEAST_FREE_BYTES = 256 << 20
"""With less room than this, small uploads go to the disk like all others."""

_MODE = 0o711
_log = structlog.get_logger()


def memory_root(parent: str, data_path: Path) -> Path | None:
    """Return a directory of this service's own below `parent`, a place in memory that others may use as well.

    It belongs to all servers with the same `data_path`. None where `parent` is empty or not there, has no room, or has
    something under that name which is not ours.
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
        _log.info(events.NO_MEMORY_DIRECTORY, reason="there is too little room")
        return None
    return path


def memory_path(parent: str, data_path: Path) -> Path:
    """Return what the directory is called, whether it is there or not."""
    name = hashlib.sha256(os.fsencode(data_path.resolve())).hexdigest()[:16]
    return Path(parent, f"geomill-{os.geteuid()}-{name}")


def leave_memory_root(path: Path) -> None:
    """Leave nothing of ours where others keep things too, unless another process uses it."""
    with suppress(OSError):
        path.rmdir()


def has_room(path: Path) -> bool:
    """Whether small conversions can be done at `path`."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize >= LEAST_FREE_BYTES


def _require_own(path: Path) -> None:
    """See that nobody else made it: anybody may make anything in a place that all share."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError("somebody else has taken its name")
