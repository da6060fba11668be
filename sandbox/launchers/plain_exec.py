"""Fork and exec: works for every program on every host."""

from collections.abc import Collection

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.isolation.context import IsolationContext
from sandbox.launchers import Failed, OnSpawned
from sandbox.process import run


class PlainExec:
    """Starts a new process for each command."""

    name = LauncherName.EXEC

    def __init__(self, isolation: IsolationContext) -> None:
        self._isolation = isolation

    def takes(self, command: Command) -> bool:  # noqa: ARG002 - the protocol's
        """Everything."""
        return True

    def start(self, command: Command, slot: int, spawned: OnSpawned, failed: Failed) -> None:
        """Fork."""
        try:
            with self._isolation.prepared(slot, command, executes=True) as confinement:
                child = run.spawn(command.argv, command.environment, confinement)
        except OSError as error:
            failed(str(error))
        else:
            spawned(child)

    def withdraw(self, slot: int) -> None:
        """Do nothing: commands start at once."""

    def ended(self, pid: int) -> None:
        """Do nothing: this launcher keeps no processes."""

    def pids(self) -> Collection[int]:
        """None."""
        return ()
