"""How much a run's directory holds: bytes, files, and whether the disk below it is full.

The kernel limits the size of one file; what all of them hold together is looked at from time to time.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from sandbox.command import Limits

# A program can nest directories until their path is longer than the kernel takes, out of sight of whoever counts.
_DEEPEST = 32
_ROOM_BYTES = 64 * 1024


def exceeded(directory: str, limits: Limits) -> bool:
    """Whether the tree below `directory` holds more bytes or more entries than `limits` allow."""
    size_bytes = entries = 0
    try:
        for status in _entries(directory):
            # Holes take no room here but would take it wherever the file is copied to.
            size_bytes += max(status.st_size, status.st_blocks * 512)
            entries += 1
            if size_bytes > limits.directory_bytes or entries > limits.directory_files:
                return True
    except OSError:
        return True
    return False


def _entries(directory: str) -> Iterator[os.stat_result]:
    pending = [(directory, 0)]
    while pending:
        path, depth = pending.pop()
        if depth > _DEEPEST:
            raise OSError(errno.ENAMETOOLONG, "nested too deeply")
        with suppress(FileNotFoundError), os.scandir(path) as listing:
            for entry in listing:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # what a program removes while it is counted is not counted
                yield status
                if stat.S_ISDIR(status.st_mode):
                    pending.append((entry.path, depth + 1))


def disk_is_full(directory: str) -> bool:
    """Whether nothing more can be written below `directory`."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return False
    no_files_left = disk.f_files > 0 and disk.f_favail == 0
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES or no_files_left
