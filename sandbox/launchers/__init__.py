"""The launchers: ways to start a command, behind one interface.

A launcher says which commands it takes, and for one of those either hands over a child or says that it could not; then
the next launcher is asked, and the last, plain exec, takes everything. No launcher starts a program twice: a child that
comes too late waits for a word that is never given, and ends.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.process.run import Child

OnSpawned = Callable[[Child], None]
Failed = Callable[[str], None]


class Launcher(Protocol):
    """A way to start commands."""

    @property
    def name(self) -> LauncherName:
        """Its name in reports."""

    def takes(self, command: Command) -> bool:
        """Whether it can start this command now."""

    def start(self, command: Command, slot: int, spawned: OnSpawned, failed: Failed) -> None:
        """Start the command; calls exactly one of the two functions, at once or soon."""

    def withdraw(self, slot: int) -> None:
        """Give up the command of a slot at once if it only waits for something to be ready."""

    def ended(self, pid: int) -> None:
        """Note that a child of the spawner has ended and was reaped; it may be one of this launcher's processes."""

    def pids(self) -> Collection[int]:
        """The processes that it keeps ready."""
