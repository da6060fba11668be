"""A mount namespace per run, in which of all work directories only its own exists."""

import os
from pathlib import Path

from sandbox import syscalls
from sandbox.isolation import mounts
from sandbox.isolation.jail import Jail
from sandbox.report import Guard

CLONE_NEWNS = 0x00020000


class PrivateView:
    """Covers the work root and puts the run's own directory back, at its own path."""

    name = "private view"
    stops = "seeing that another run's directory exists"
    guards = frozenset({Guard.FILES})

    def __init__(self, work_root: str, *, in_namespaces: bool) -> None:
        self._work_root = work_root
        self._in_namespaces = in_namespaces

    def probe(self) -> None:
        """See that the work root is hidden when it is covered."""
        if not self._in_namespaces:
            # On the host a mount could reach other namespaces.
            raise OSError("needs namespaces")
        syscalls.named("unshare", CLONE_NEWNS)
        mounts.cover(self._work_root)
        if any(Path(self._work_root).iterdir()):
            raise OSError("the work root is still there")

    def enter(self, jail: Jail) -> None:
        """Leave only the own directory, and go there."""
        syscalls.named("unshare", CLONE_NEWNS)
        own = mounts.copy(jail.directory)
        mounts.cover(self._work_root)
        os.makedirs(jail.directory)  # noqa: PTH103 - once per run
        mounts.attach(own, jail.directory)
        mounts.seal(self._work_root)
        os.chdir(jail.directory)
