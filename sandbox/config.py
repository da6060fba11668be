"""The configuration of a pool."""

import math
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec


class Mode(StrEnum):
    """What to do if a required layer is missing."""

    STRICT = "strict"
    """Refuse to open."""
    BEST_EFFORT = "best-effort"
    """Open with the layers that are available, and report the rest."""


class LauncherName(StrEnum):
    """The ways to start a program, fastest first."""

    FORK_SERVER = "fork server"
    PYTHON_SERVER = "Python server"
    RARE_PYTHON_SERVER = "Python server for rare modules"
    EXEC = "plain exec"


class Ogr2ogr(msgspec.Struct, frozen=True, kw_only=True):
    """The program that the fork server keeps ready.

    `environment` is the part that all its commands share. `fork_server` is the compiled library, or None if it was not
    built.
    """

    program: Path
    environment: Mapping[str, str] = {}
    fork_server: Path | None = None


class PythonServer(msgspec.Struct, frozen=True, kw_only=True):
    """Python processes that keep modules loaded, for commands of the form `(PYTHON, "-m", module, …)`.

    A process imports `modules` when one is needed, and ends once none has been for `idle_seconds`; another does so for
    `rare_modules`, whose imports take much memory or time.

    `packages` are files and directories that Python programs read in addition to the standard library. Their neighbours
    are not readable, so the directory on PYTHONPATH that contains them must be listed as well.
    """

    modules: tuple[str, ...] = ()
    rare_modules: tuple[str, ...] = ()
    idle_seconds: float = 120.0
    packages: tuple[Path, ...] = ()
    environment: Mapping[str, str] = {}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool isolates its runs, and how many it runs at once.

    Every `Command.directory` lies below `work_root`, or below `memory_root`, which may be another file system.
    `programs` may be executed in addition to Python and ogr2ogr; `readable` are files and directories that every
    program can read in addition to the system's libraries. At most `suspended` runs are suspended while another tenant
    has their converter; each keeps its slot and its memory. A tenant may have `per_tenant` tickets in the queue; a run
    is ended when its lease has run for `lease_seconds`. A fork server is replaced after `commands_per_server` commands,
    since all its children share its memory layout. `without` names layers to disable, for tests and for hosts where one
    misbehaves.
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
        """How many runs may exist at the same time, including suspended ones."""
        return self.converters + self.suspended

    @property
    def memory_inside(self) -> Path:
        """Where `memory_root` is inside our namespaces: below the work root, so that one mount hides both."""
        return self.work_root / ".memory"
