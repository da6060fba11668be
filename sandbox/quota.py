"""How much a run holds: bytes and files, named and unnamed, and whether its disk is full.

The kernel limits the size of each file; the total of all files is checked periodically.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

from sandbox.command import MIB, Limits

# A program can nest directories until their paths exceed what the kernel accepts, where they could not be counted.
_DEEPEST: Final = 32
_ROOM_BYTES: Final = 64 * 1024
_ROOM_FILES: Final = 16  # more than a run creates for a small result
_BLOCK_BYTES: Final = 512
# The less room is left, the sooner the next check, so that a run that writes this fast cannot exceed the limit by much.
# More frequent checks would slow converters: each takes a millisecond, in which the kernel lists the mappings.
_BYTES_PER_SECOND: Final = 1024 * MIB
_ENTRIES_PER_SECOND: Final = 40_000
_SHORTEST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 0.25


class DiskUse(NamedTuple):
    """The bytes and files that a run holds."""

    size_bytes: int
    entries: int

    def exceeds(self, limits: Limits) -> bool:
        """Whether it exceeds `limits`."""
        return self.size_bytes > limits.directory_bytes or self.entries > limits.directory_files

    def seconds_of_room(self, limits: Limits) -> float:
        """The seconds until the next check."""
        until_bytes = (limits.directory_bytes - self.size_bytes) / _BYTES_PER_SECOND
        until_entries = (limits.directory_files - self.entries) / _ENTRIES_PER_SECOND
        return min(max(min(until_bytes, until_entries), _SHORTEST_SECONDS), _LONGEST_SECONDS)


NOTHING: Final = DiskUse(0, 0)
_UNKNOWN: Final = DiskUse(sys.maxsize, sys.maxsize)


def measure(directory: str, limits: Limits, unnamed: Iterable[int] = ()) -> DiskUse:
    """Measure the tree below `directory` and files of the sizes `unnamed`; stops once `limits` are exceeded.

    If it cannot be measured, the result exceeds any limits.
    """
    total_bytes = entries = 0
    try:
        for size_bytes in chain(unnamed, _sizes(directory)):
            total_bytes, entries = total_bytes + size_bytes, entries + 1
            if total_bytes > limits.directory_bytes or entries > limits.directory_files:
                break
    except OSError:
        return _UNKNOWN
    return DiskUse(total_bytes, entries)


def _sizes(directory: str) -> Iterator[int]:
    """The bytes of every entry of the tree."""
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
                    continue  # removed by the program in the meantime
                # Holes take no space here, but would wherever the file is copied to.
                yield max(status.st_size, held_bytes(status))
                if stat.S_ISDIR(status.st_mode):
                    pending.append((entry.path, depth + 1))


def held_bytes(status: os.stat_result) -> int:
    """The space that a file takes on its disk."""
    return status.st_blocks * _BLOCK_BYTES


def disk_is_full(directory: str) -> bool:
    """Whether the file system of `directory` is full, or takes nothing for another reason."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return False
    lacks_files = disk.f_files > 0 and disk.f_favail < _ROOM_FILES
    is_read_only = bool(disk.f_flag & os.ST_RDONLY)
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES or lacks_files or is_read_only
