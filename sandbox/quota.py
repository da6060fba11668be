"""How much a run holds: bytes and files, with and without a name, and whether the disk below it is full.

The kernel limits the size of one file; what all of them hold together is looked at from time to time.
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

# A program can nest directories until their path is longer than the kernel takes, out of sight of whoever counts.
_DEEPEST: Final = 32
_ROOM_BYTES: Final = 64 * 1024
_BLOCK_BYTES: Final = 512
# The less room is left the sooner the next look: a run that writes as fast as this finds no time to write much more.
# Faster, and looks would take a converter's time: one takes a millisecond, for the kernel to write down its mappings.
_BYTES_PER_SECOND: Final = 1024 * MIB
_ENTRIES_PER_SECOND: Final = 40_000
_SHORTEST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 0.25


class Use(NamedTuple):
    """What a run holds."""

    size_bytes: int
    entries: int

    def exceeds(self, limits: Limits) -> bool:
        """Whether it is more than `limits` allow."""
        return self.size_bytes > limits.directory_bytes or self.entries > limits.directory_files

    def seconds_of_room(self, limits: Limits) -> float:
        """How soon to look again."""
        until_bytes = (limits.directory_bytes - self.size_bytes) / _BYTES_PER_SECOND
        until_entries = (limits.directory_files - self.entries) / _ENTRIES_PER_SECOND
        return min(max(min(until_bytes, until_entries), _SHORTEST_SECONDS), _LONGEST_SECONDS)


NOTHING: Final = Use(0, 0)
_UNKNOWN: Final = Use(sys.maxsize, sys.maxsize)


def measure(directory: str, limits: Limits, unnamed: Iterable[int] = ()) -> Use:
    """What is in the tree below `directory` and in files of the sizes `unnamed`; stops when `limits` are exceeded.

    What cannot be counted is taken for more than anything allows.
    """
    use = NOTHING
    try:
        for size_bytes in chain(unnamed, _sizes(directory)):
            use = Use(use.size_bytes + size_bytes, use.entries + 1)
            if use.exceeds(limits):
                break
    except OSError:
        return _UNKNOWN
    return use


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
                    continue  # what a program removes while it is counted is not counted
                # Holes take no room here but would take it wherever the file is copied to.
                yield max(status.st_size, held_bytes(status))
                if stat.S_ISDIR(status.st_mode):
                    pending.append((entry.path, depth + 1))


def held_bytes(status: os.stat_result) -> int:
    """What a file takes of its disk."""
    return status.st_blocks * _BLOCK_BYTES


def disk_is_full(directory: str) -> bool:
    """Whether nothing more can be written below `directory`."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return False
    no_files_left = disk.f_files > 0 and disk.f_favail == 0
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES or no_files_left
