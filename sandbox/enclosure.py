"""The layers in use on this host, made ready for one run after another."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.command import Limits
from sandbox.jail import Jail
from sandbox.layers import Layer
from sandbox.layers.landlock import Landlock
from sandbox.layers.user import FIRST_USER, UnprivilegedUser, give


class Enclosure:
    """What stands around every run of one spawner."""

    def __init__(self, layers: Sequence[Layer], work_root: str) -> None:
        self.layers = layers
        self._work_root = work_root
        self._landlock = next((layer for layer in layers if isinstance(layer, Landlock)), None)
        self._changes_user = any(isinstance(layer, UnprivilegedUser) for layer in layers)

    @contextmanager
    def prepared(self, slot: int, path: Path, limits: Limits | None) -> Iterator[Jail]:
        """What the layers need for a run in the directory at `path`, as long as it takes to start.

        Raises:
            OSError: the directory is not below the work root, is not there, or is not ours to give.
        """
        directory = str(path)
        if os.path.normpath(directory) != directory or not directory.startswith(self._work_root + "/"):
            raise PermissionError(errno.EPERM, "a run's directory must lie below the work root")
        user = FIRST_USER + slot if self._changes_user else None
        if user is not None:
            give(directory, user, self._work_root)
        ruleset = self._landlock.rules(directory) if self._landlock else None
        try:
            yield Jail(directory=directory, limits=limits, spawner=os.getpid(), user=user, ruleset=ruleset)
        finally:
            if ruleset is not None:
                os.close(ruleset)
