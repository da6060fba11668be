"""What a pool is told when it opens."""

import math
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec


class Mode(StrEnum):
    """What to do where a required layer is missing."""

    STRICT = "strict"
    """Refuse to open."""
    BEST_EFFORT = "best-effort"
    """Open with what there is, and report it."""


class LauncherName(StrEnum):
    """The ways to start a program, fastest first."""

    FORK_SERVER = "fork server"
    PYTHON_SERVER = "Python server"
    EXEC = "plain exec"


class Ogr2ogr(msgspec.Struct, frozen=True, kw_only=True):
    """The program that the fork server holds ready.

    `environment` is the part that all its commands share. `fork_server` is the compiled library, None without one.
    """

    program: Path
    environment: Mapping[str, str] = {}
    fork_server: Path | None = None


class PythonServer(msgspec.Struct, frozen=True, kw_only=True):
    """A Python process that holds modules ready, for commands of the form `(sys.executable, "-m", module, …)`.

    `packages` are files and directories that Python programs read besides the standard library; nothing is readable for
    lying beside one of them, so the directory on PYTHONPATH that leads to them is named here too.
    """

    modules: tuple[str, ...] = ()
    packages: tuple[Path, ...] = ()
    environment: Mapping[str, str] = {}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool isolates and how much it runs at once.

    Every `Command.directory` lies below `work_root`, or below `memory_root`, which may be another file system.
    `programs` may be executed besides Python and ogr2ogr; `readable` are files and directories that every program can
    read besides the system's libraries.
    At most `suspended` runs stand still while another tenant has their worker; each keeps its slot and its memory.
    A tenant may have `per_tenant` places in the queue; a lease ends what runs in it after `lease_seconds` of running.
    A server that forks is replaced after `commands_per_server`, since all its children share the layout of its memory.
    `without` names layers to leave out, for tests and for hosts where one misbehaves.
    """

    work_root: Path
    memory_root: Path | None = None
    mode: Mode = Mode.STRICT
    converters: int = os.cpu_count() or 1
    waiting_room: int = 128
    suspended: int = 2 * (os.cpu_count() or 1)
    per_tenant: int | None = None
    lease_seconds: float = math.inf
    programs: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    ogr2ogr: Ogr2ogr | None = None
    python: PythonServer = PythonServer()
    launchers: tuple[LauncherName, ...] = tuple(LauncherName)
    commands_per_server: int = 2000
    without: frozenset[str] = frozenset()

    @property
    def slots(self) -> int:
        """How many runs may be there at the same time, suspended ones included."""
        return self.converters + self.suspended

    @property
    def memory_inside(self) -> Path:
        """Where `memory_root` is in namespaces of our own: what hides the work root from a run then hides both."""
        return self.work_root / ".memory"
