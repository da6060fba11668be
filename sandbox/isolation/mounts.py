"""System calls that mount by descriptor (Linux 5.12): they need no /proc, and no path can be swapped meanwhile."""

import os
import struct
from typing import Final

from sandbox import syscalls

_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442

AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
FROM_EMPTY_PATH: Final = 4
COPY: Final = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
"""Flags that open a copy of the mount at a path, including everything mounted below it."""

READ_ONLY: Final = 1
NO_SETUID: Final = 2
NO_DEVICES: Final = 4
NO_EXEC: Final = 8

SMALL: Final = b"size=256k,nr_inodes=1024,mode=755"
"""A file system for a few directories."""
ROOMY: Final = b"size=2g,nr_inodes=200k,mode=755"
"""A file system for copies of packages; it uses only as much memory as its contents."""

NO_SETUID_NO_DEVICES: Final = 2 | 4
_MS_PRIVATE_RECURSIVE: Final = (1 << 18) | (1 << 14)
_MNT_DETACH: Final = 2


def copy(path: str, added: int = 0) -> int:
    """A detached mount of what is at `path`, as a descriptor."""
    tree = syscalls.call(_OPEN_TREE, AT_FDCWD, os.fsencode(path), COPY)
    if added:
        _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, added)
    return tree


def attach(tree: int, path: str) -> None:
    """Attach a copied mount at `path` and close its descriptor."""
    try:
        syscalls.call(_MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(path), FROM_EMPTY_PATH)
    finally:
        os.close(tree)


def cover(path: str, size: bytes = SMALL) -> None:
    """Hide what is at `path` behind an empty file system in memory."""
    syscalls.named("mount", b"sandbox", os.fsencode(path), b"tmpfs", NO_SETUID_NO_DEVICES, size)


def seal(path: str) -> None:
    """Make the file system that is mounted at `path` read-only."""
    _set_attributes(AT_FDCWD, os.fsencode(path), 0, READ_ONLY)


def make_private() -> None:
    """Stop mounts from propagating to and from other namespaces."""
    syscalls.named("mount", b"none", b"/", None, _MS_PRIVATE_RECURSIVE, None)


def change_root(path: str) -> None:
    """Make `path` the root, and the old root unreachable."""
    os.chdir(path)
    syscalls.named("pivot_root", b".", b".")
    syscalls.named("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def attributes(added: int) -> bytes:
    """The request to add attributes to a mount."""
    return struct.pack("=QQQQ", added, 0, 0, 0)


def _set_attributes(directory: int, path: bytes, flags: int, added: int) -> None:
    request = attributes(added)
    syscalls.call(_MOUNT_SETATTR, directory, path, flags, request, len(request))
