"""The active layers of this host, prepared for one run after another."""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from sandbox.command import Command
from sandbox.isolation import IsolationLayer
from sandbox.isolation.jail import Confinement, Jail
from sandbox.isolation.landlock import Landlock
from sandbox.isolation.memory_group import Group, MemoryGroup
from sandbox.isolation.steps import Steps, Template
from sandbox.isolation.user import FIRST_USER, UnprivilegedUser, give

# The kernel's `struct sigaction` for the default action, and the size of its signal set.
_DEFAULT_ACTION: Final = bytes(32)
_SIGNALS_BYTES: Final = 8


class IsolationContext:
    """The isolation that every run of one spawner shares."""

    def __init__(self, layers: Sequence[IsolationLayer], roots: Sequence[str], groups: Sequence[Group] = ()) -> None:
        self.layers = layers
        self._roots = tuple(roots)
        self._groups = groups if any(isinstance(layer, MemoryGroup) for layer in layers) else ()
        self._landlock = next((layer for layer in layers if isinstance(layer, Landlock)), None)
        self._changes_user = any(isinstance(layer, UnprivilegedUser) for layer in layers)

    @contextmanager
    def prepared(self, slot: int, command: Command, *, executes: bool) -> Iterator[Confinement]:
        """The confinement of this run, valid until its process has started.

        `executes` says whether the process still has to execute the program.

        Raises:
            OSError: the directory is not below the work root, does not exist, or cannot change its owner.
        """
        directory = str(command.directory)
        if os.path.normpath(directory) != directory or self._root_of(directory) is None:
            raise PermissionError(errno.EPERM, "a run's directory must lie below a work root")
        user = self._give_files(slot, directory)
        ruleset = self._landlock.rules(command.argv[0], directory) if self._landlock else None
        try:
            jail = Jail(
                directory=directory,
                limits=command.limits,
                spawner=os.getpid(),
                executes=executes,
                user=user,
                ruleset=ruleset,
                group=self._groups[slot].join if self._groups else None,
            )
            steps = (_start(directory), *(layer.steps(jail) for layer in self.layers))
            yield Confinement(b"".join(steps), jail.descriptors)
        finally:
            if ruleset is not None:
                os.close(ruleset)

    def _give_files(self, slot: int, directory: str) -> int | None:
        """Give the slot's user `directory` and its contents; returns the user, or None if runs keep the service's."""
        user = FIRST_USER + slot if self._changes_user else None
        if user is not None:
            give(directory, user, self._root_of(directory) or directory)
        return user

    def _root_of(self, directory: str) -> str | None:
        return next((root for root in self._roots if directory.startswith(root + "/")), None)

    def memory_watch(self, slot: int, memory_bytes: int) -> Callable[[], bool]:
        """Limit the memory group of a slot; the returned function says whether it has killed a process since."""
        if not self._groups:
            return lambda: False
        group = self._groups[slot]
        group.allow(memory_bytes)
        before = group.kills()
        return lambda: group.kills() > before


def _start(directory: str) -> bytes:
    """Enter the run's directory and restore default signals: a truncated file must not look complete."""
    path = os.fsencode(directory)
    return _start_in(len(path)).filled((path,))


@lru_cache
def _start_in(length: int) -> Template:
    steps = Steps("directory")
    (path,) = steps.reserve((length,))
    steps.call("chdir", path)
    for number in (signal.SIGXFSZ, signal.SIGPIPE):
        steps.call("rt_sigaction", number, _DEFAULT_ACTION, 0, _SIGNALS_BYTES)
    return steps.template()
