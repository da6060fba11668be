"""The server on the genuine ogr2ogr, as the spawner sees it; the process itself is `forkserver/forkserver.c`."""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sandbox.command import Command
from sandbox.config import LauncherName, Ogr2ogr
from sandbox.isolation import rlimits, seccomp
from sandbox.isolation.jail import Jail
from sandbox.launchers.environment import Started

# As `enum layer` in forkserver.c.
_BITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "own session": 1,
        "private view": 2,
        "resource limits": 4,
        "no capabilities": 8,
        "unprivileged user": 16,
        "no new privileges": 32,
        "Landlock": 64,
        "dies with its parent": 128,
        "system-call filter": 256,
        "memory group": 512,
    }
)
_HEADER: Final = struct.Struct("=8I")
_LIMIT: Final = struct.Struct("=3Q")
_MOST_STRINGS: Final = 4000
_FILTER_OFF: Final = b""


class Ogr2ogrServerKind:
    """Takes every ogr2ogr whose environment differs only in what is read after the start."""

    name = LauncherName.FORK_SERVER

    def __init__(self, ogr2ogr: Ogr2ogr, layers: Sequence[str], work_root: str) -> None:
        self._ogr2ogr = ogr2ogr
        self._started = Started(ogr2ogr.environment)
        self._layers = sum(_BITS[name] for name in layers)
        self._work_root = work_root
        filtered = "system-call filter" in layers
        self._filter = seccomp.for_this_machine(executes=False) if filtered else _FILTER_OFF

    def takes(self, command: Command) -> bool:
        """Its program, with an environment that it can take over, and not more text than fits."""
        return (
            command.argv[0] == str(self._ogr2ogr.program)
            and len(command.argv) + len(command.environment) < _MOST_STRINGS
            and self._started.can_become(command.environment)
        )

    def argv(self, link: int) -> tuple[Sequence[str], dict[str, str]]:
        """The program with the library before it.

        It has one thread, since a fork copies no other, and looks up the names of all functions at its start, or every
        child would look up those that it needs.
        """
        return (str(self._ogr2ogr.program),), {
            **self._ogr2ogr.environment,
            "LD_PRELOAD": str(self._ogr2ogr.fork_server),
            "SANDBOX_LINK": str(link),
            "OPENBLAS_NUM_THREADS": "1",
            "LD_BIND_NOW": "1",
        }

    def introduction(self) -> bytes:
        """All that it needs comes with each command."""
        return b""

    def request(self, command: Command, jail: Jail) -> bytes:
        """`struct request` and what follows it."""
        limits = rlimits.of(command.limits)
        variables = [f"{name}={value}" for name, value in command.environment.items()]
        header = _HEADER.pack(
            self._layers,
            jail.user or 0,
            jail.spawner,
            len(limits),
            len(self._filter),
            seccomp.pid_offset(self._filter) if self._filter else 0,
            len(command.argv),
            len(variables),
        )
        strings = (self._work_root, jail.directory, *command.argv, *variables)
        text = "\0".join((*strings, ""))
        if text.count("\0") != len(strings):
            raise PermissionError("a text holds a zero byte")
        packed = b"".join([_LIMIT.pack(*limit) for limit in limits])
        return header + packed + self._filter + text.encode(errors="surrogateescape")
