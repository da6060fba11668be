"""A mount namespace per run, in which only the run's own work directory exists."""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from sandbox import syscalls
from sandbox.isolation import mounts
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps, Template
from sandbox.report import Guard

CLONE_NEWNS: Final = 0x00020000
_MODE: Final = 0o755


class PrivateView:
    """Covers the work root and puts the run's own directory back, at its own path."""

    name = "private view"
    stops = "seeing that another run's directory exists"
    guards = frozenset({Guard.FILES})

    def __init__(self, work_root: str, *, in_namespaces: bool) -> None:
        self._work_root = work_root
        self._in_namespaces = in_namespaces

    def probe(self) -> None:
        """Check that covering the work root hides it."""
        if not self._in_namespaces:
            # On the host a mount could reach other namespaces.
            raise OSError("needs namespaces")
        syscalls.named("unshare", CLONE_NEWNS)
        mounts.cover(self._work_root)
        if any(Path(self._work_root).iterdir()):
            raise OSError("the work root is still there")

    def steps(self, jail: Jail) -> bytes:
        """Hide all other directories, and enter the run's own."""
        way = tuple(map(os.fsencode, _directories_to(self._work_root, jail.directory)))
        return _template(self.name, self._work_root, tuple(map(len, way))).filled(way)


@lru_cache
def _template(layer: str, work_root: str, lengths: Sequence[int]) -> Template:
    """The steps of all runs whose way from the work root has directories with paths of these lengths."""
    steps = Steps(layer)
    way = steps.reserve(lengths)
    root, directory = steps.data(os.fsencode(work_root)), way[-1]
    steps.call("unshare", CLONE_NEWNS)
    own = steps.call("open_tree", mounts.AT_FDCWD, directory, mounts.COPY)
    steps.call("mount", b"sandbox", root, b"tmpfs", mounts.NO_SETUID_NO_DEVICES, mounts.SMALL)
    for path in way:
        steps.call("mkdirat", mounts.AT_FDCWD, path, _MODE)
    steps.call("move_mount", own, b"", mounts.AT_FDCWD, directory, mounts.FROM_EMPTY_PATH)
    steps.call("close", own)
    attributes = mounts.attributes(mounts.READ_ONLY)
    steps.call("mount_setattr", mounts.AT_FDCWD, root, 0, attributes, len(attributes))
    steps.call("chdir", directory)
    return steps.template()


def _directories_to(root: str, directory: str) -> Iterator[str]:
    """The directories below `root`, down to `directory`."""
    path = root
    for name in directory.removeprefix(root).strip("/").split("/"):
        path = f"{path}/{name}"
        yield path
