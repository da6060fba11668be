"""Deletion of a directory that a hostile program may have filled.

`shutil.rmtree` recurses, so it fails on a deep tree and on a directory that its owner may not enter. This module moves
every directory to beside the root before it empties it, so neither the stack nor a path grows with the depth. It opens
and changes nothing through a link, so nothing outside is affected even while the program is still running.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def new_name() -> str:
    """Return a name of 128 random bits."""
    return secrets.token_hex(16)


def remove_tree(root: Path) -> None:
    """Delete the directory `root` and its contents; missing files are not an error.

    The parent of `root` must be private to this service: subdirectories are moved into it.

    Raises:
        OSError: something cannot be deleted.
    """
    remove_trees([str(root)])


def remove_trees(pending: list[str]) -> None:
    """Delete the directories in a list as `remove_tree` does, and take them out of it.

    Raises:
        OSError: something cannot be deleted; the list then has all directories that are left.
    """
    names = _new_names(pending[0].rpartition("/")[0])
    while pending:
        place, directory = len(pending) - 1, pending[-1]
        with suppress(FileNotFoundError):
            _empty(directory, names, pending)
            os.rmdir(directory)  # noqa: PTH106 -- creating a Path for every directory costs more than deleting it
        del pending[place]


def tree_bytes(root: Path) -> int:
    """Return the size of all files below a directory that nobody else changes; 0 if it is missing."""
    return sum(file.stat().st_size for file in root.rglob("*") if file.is_file())


def _new_names(outside: str) -> Iterator[str]:
    first = f"{outside}/{new_name()}"
    for number in count():
        yield f"{first}-{number}"


def _empty(directory: str, names: Iterator[str], moved: list[str]) -> None:
    """Delete the files in `directory`, and give its subdirectories other `names`, which are added to `moved`."""
    descriptor = _open(directory)
    try:
        os.fchmod(descriptor, 0o700)
        with os.scandir(descriptor) as listing:
            for entry in list(listing):
                if entry.is_dir(follow_symlinks=False):
                    moved.append(_move(entry.name, descriptor, next(names)))
                else:
                    os.unlink(entry.name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _open(directory: str) -> int:
    try:
        return os.open(directory, os.O_RDONLY | _NO_LINK)
    except PermissionError:
        _let_in(directory)
        return os.open(directory, os.O_RDONLY | _NO_LINK)


def _move(name: str, parent: int, moved: str) -> str:
    try:
        os.rename(name, moved, src_dir_fd=parent)
    except PermissionError:  # its entry `..` changes
        _let_in(name, parent)
        os.rename(name, moved, src_dir_fd=parent)
    return moved


def _let_in(directory: str, parent: int | None = None) -> None:
    """Give the owner all rights on `directory`, which may not be openable, to list, empty or move it."""
    descriptor = os.open(directory, os.O_PATH | _NO_LINK, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(0o700)
    finally:
        os.close(descriptor)
