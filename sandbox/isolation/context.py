"""The layers in use on this host, made ready for one run after another."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.command import Limits
from sandbox.isolation import Layer
from sandbox.isolation.jail import Jail
from sandbox.isolation.landlock import Landlock
from sandbox.isolation.memory_group import Group, MemoryGroup
from sandbox.isolation.user import FIRST_USER, UnprivilegedUser, give


class IsolationContext:
    """What stands around every run of one spawner."""

    def __init__(self, layers: Sequence[Layer], roots: Sequence[str], groups: Sequence[Group] = ()) -> None:
        self.layers = layers
        self._roots = tuple(roots)
        self._groups = groups if any(isinstance(layer, MemoryGroup) for layer in layers) else ()
        self._landlock = next((layer for layer in layers if isinstance(layer, Landlock)), None)
        self._changes_user = any(isinstance(layer, UnprivilegedUser) for layer in layers)

    @contextmanager
    def prepared(self, slot: int, program: str, path: Path, limits: Limits) -> Iterator[Jail]:
        """What the layers need for a run of `program` in the directory at `path`, as long as it takes to start.

        Raises:
            OSError: the directory is not below the work root, is not there, or is not ours to give.
        """
        directory = str(path)
        if os.path.normpath(directory) != directory or self._root_of(directory) is None:
            raise PermissionError(errno.EPERM, "a run's directory must lie below a work root")
        user = self.give_files(slot, directory)
        ruleset = self._landlock.rules(program, directory) if self._landlock else None
        try:
            yield Jail(
                directory=directory,
                limits=limits,
                spawner=os.getpid(),
                user=user,
                ruleset=ruleset,
                group=self._groups[slot].join if self._groups else None,
            )
        finally:
            if ruleset is not None:
                os.close(ruleset)

    def give_files(self, slot: int, directory: str) -> int | None:
        """Let the slot's user own `directory` with all in it; return that user, None where runs keep the service's."""
        user = FIRST_USER + slot if self._changes_user else None
        if user is not None:
            give(directory, user, self._root_of(directory) or directory)
        return user

    def _root_of(self, directory: str) -> str | None:
        return next((root for root in self._roots if directory.startswith(root + "/")), None)

    def memory_watch(self, slot: int, memory_bytes: int) -> Callable[[], bool]:
        """Limit the memory group of a slot; the answer tells later whether it has had to kill since."""
        if not self._groups:
            return lambda: False
        group = self._groups[slot]
        group.allow(memory_bytes)
        before = group.kills()
        return lambda: group.kills() > before
