"""Warm processes: an ogr2ogr per slot that has started, behind all layers, and waits for its arguments on its input.

`ogr2ogr --optfile /vsistdin/` reads them to the end of its input. Its layers were entered before the command was known,
so its directory was chosen then too: when the command comes, what is in the command's directory is moved into the
waiting one, which then takes its place and its name. That costs a few renames and needs no right. A process is used
once.

After a command one is made ready with that command's environment, since the next is likely to want the same. Limits are
set when the command comes. Root of some containers may not do that to another user's process; then they are those of
the command before, set at the start, and a process takes a command that has the same.
"""

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from sandbox.command import Command, Limits
from sandbox.config import LauncherName, Ogr2ogr
from sandbox.isolation import rlimits
from sandbox.isolation.context import IsolationContext
from sandbox.launchers import Failed, OnSpawned
from sandbox.locked_directory import LockedDirectory
from sandbox.process import run
from sandbox.process.loop import Loop
from sandbox.process.run import Child, kill_group

_WAITING: Final = ".waiting"
_PER_SLOT: Final = 2
# Right after a command its service still works on the result; a process that starts then would slow it down.
_REST_SECONDS: Final = 0.015
_MOST_OPTION_BYTES: Final = 60_000


class _Wish(NamedTuple):
    """What a command wants of a process that has started already; without limits, any can be set."""

    environment: Mapping[str, str]
    limits: Limits | None


class _Waiting:
    """A process that waits for its arguments."""

    def __init__(self, child: Child, stdin: int, directory: Path, suits: "_Wish") -> None:
        self.child = child
        self.stdin = stdin
        self.directory = directory
        self.suits = suits
        self.started = False

    def discard(self) -> None:
        """Let go of it; without input it would end by itself."""
        os.close(self.stdin)
        os.close(self.child.stderr)
        self.child.control.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class WarmProcesses:
    """Holds processes ready, by slot."""

    name = LauncherName.WARM

    def __init__(self, ogr2ogr: Ogr2ogr, isolation: IsolationContext, loop: Loop, root: Path, slots: int) -> None:
        self._ogr2ogr = ogr2ogr
        self._isolation = isolation
        self._loop = loop
        self._home = LockedDirectory(root, _WAITING)
        self._waiting: dict[int, list[_Waiting]] = {slot: [] for slot in range(slots)}
        self._last = dict.fromkeys(self._waiting, _Wish(ogr2ogr.environment, None))
        self._limits_at_start = False
        self._serial = 0

    def takes(self, command: Command, slot: int) -> bool:
        """Commands that a process waits for, whose arguments can be told on its input."""
        if command.argv[0] != str(self._ogr2ogr.program):
            return False
        self._last[slot] = self._wish(command)
        # A process that waits sees its directory under another name; and no file is moved to another file system.
        absolute = any(str(command.directory) in argument for argument in command.argv)
        if absolute or not _on_one_file_system(command.directory, self._home.path):
            return False
        return self._find(slot, command) is not None and _can_be_told(command.argv[1:])

    def start(self, command: Command, slot: int, spawned: OnSpawned, failed: Failed) -> None:
        """Give a waiting process the command's directory, limits and arguments."""
        waiting = self._find(slot, command)
        if waiting is None:
            failed("no process waits")
            return
        self._waiting[slot].remove(waiting)
        try:
            self._isolation.give_files(slot, str(command.directory))
            _give_directory(str(command.directory), waiting.directory)
            if waiting.suits.limits is None:
                self._limit(waiting, command.limits)
            os.write(waiting.stdin, options(command.argv[1:]))
            os.close(waiting.stdin)
        except OSError as error:
            kill_group(waiting.child.pid)
            waiting.discard()
            failed(str(error))
        else:
            spawned(waiting.child)

    def _limit(self, waiting: _Waiting, limits: Limits) -> None:
        try:
            rlimits.impose(waiting.child.pid, limits)
        except PermissionError:
            self._limits_at_start = True
            raise

    def _wish(self, command: Command) -> _Wish:
        return _Wish(command.environment, command.limits if self._limits_at_start else None)

    def ended(self, pid: int) -> None:
        """Notice a waiting process that ended by itself."""
        for waiting in self._all():
            if waiting.child.pid == pid:
                self._drop(waiting)

    def pids(self) -> Collection[int]:
        """All that wait."""
        return [waiting.child.pid for waiting in self._all()]

    def prewarm(self, slot: int) -> None:
        """Make a process ready for the slot's next command."""
        self._loop.after(_REST_SECONDS, lambda: self._make(slot))

    def close(self) -> None:
        """End all that wait, and leave no directory."""
        for waiting in self._all():
            kill_group(waiting.child.pid)
            self._drop(waiting)
        self._home.remove()

    def _all(self) -> list[_Waiting]:
        return [waiting for found in self._waiting.values() for waiting in found]

    def _drop(self, waiting: _Waiting) -> None:
        if not waiting.started:
            self._loop.unwatch(waiting.child.control.fileno())
        for found in self._waiting.values():
            if waiting in found:
                found.remove(waiting)
        waiting.discard()

    def _hear(self, waiting: _Waiting) -> None:
        # Its end means that all layers are entered and the program runs; a word, that one of them could not be.
        if waiting.child.control.recv(1000):
            kill_group(waiting.child.pid)
            self._drop(waiting)
        else:
            waiting.started = True
            self._loop.unwatch(waiting.child.control.fileno())

    def _find(self, slot: int, command: Command) -> _Waiting | None:
        wish = self._wish(command)
        return next((held for held in self._waiting.get(slot, ()) if held.started and held.suits == wish), None)

    def _make(self, slot: int) -> None:
        wish = self._last[slot]
        if any(waiting.suits == wish for waiting in self._waiting[slot]):
            return
        if len(self._waiting[slot]) >= _PER_SLOT:
            kill_group(self._waiting[slot][0].child.pid)
            self._drop(self._waiting[slot][0])
        self._serial += 1
        with suppress(OSError):
            self._start(slot, wish, self._home.path / str(self._serial))

    def _start(self, slot: int, wish: _Wish, directory: Path) -> None:
        directory.mkdir(mode=0o700)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        argv = (str(self._ogr2ogr.program), "--optfile", "/vsistdin/")
        try:
            with self._isolation.prepared(slot, argv[0], directory, wish.limits) as jail:
                child = run.spawn(self._isolation.layers, argv, wish.environment, jail, reader)
        except OSError:
            directory.rmdir()
            os.close(writer)
            raise
        else:
            waiting = _Waiting(child, writer, directory, wish)
            self._waiting[slot].append(waiting)
            self._loop.watch(child.control.fileno(), lambda: self._hear(waiting))
        finally:
            os.close(reader)


def _on_one_file_system(directory: Path, home: Path) -> bool:
    try:
        return directory.stat().st_dev == home.stat().st_dev
    except OSError:  # it is not there: plain execution says so
        return False


def _give_directory(wanted: str, waiting: Path) -> None:
    for name in os.listdir(wanted):  # noqa: PTH208 - once per run
        os.rename(f"{wanted}/{name}", waiting / name)  # noqa: PTH104 - the same
    waiting.rename(wanted)


def _can_be_told(arguments: Sequence[str]) -> bool:
    # A line break would split an argument in two: the second could be an option.
    plain = all(argument and not any(sign in argument for sign in "\r\n\0") for argument in arguments)
    return plain and sum(len(argument.encode()) + 4 for argument in arguments) < _MOST_OPTION_BYTES


def options(arguments: Sequence[str]) -> bytes:
    """Arguments as an option file: each in double quotes, with quotes and backslashes escaped."""
    escaped = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    return "".join(f'"{argument}"\n' for argument in escaped).encode(errors="surrogateescape")
