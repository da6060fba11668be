"""Fork and exec: for every program, on every host."""

from collections.abc import Collection

from sandbox import launch
from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.enclosure import Enclosure
from sandbox.launchers import Born, Failed


class PlainExec:
    """Starts a process when a command comes."""

    name = LauncherName.EXEC

    def __init__(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure

    def takes(self, command: Command, slot: int) -> bool:  # noqa: ARG002 - the protocol's
        """Everything."""
        return True

    def start(self, command: Command, slot: int, born: Born, failed: Failed) -> None:
        """Fork."""
        try:
            with self._enclosure.prepared(slot, command.argv[0], command.directory, command.limits) as jail:
                child = launch.spawn(self._enclosure.layers, command.argv, command.environment, jail)
        except OSError as error:
            failed(str(error))
        else:
            born(child)

    def ended(self, pid: int) -> None:
        """Nothing is held ready that could end."""

    def pids(self) -> Collection[int]:
        """None."""
        return ()

    def rest(self, slot: int) -> None:
        """Nothing is held ready."""

    def close(self) -> None:
        """Nothing is on the disk."""
