"""The server on the genuine ogr2ogr, as the spawner sees it; the process itself is `forkserver/forkserver.c`."""

import struct
from pathlib import Path
from typing import Final

from sandbox.command import Command
from sandbox.config import LauncherName, Ogr2ogr
from sandbox.launchers.environment import StartEnvironment
from sandbox.launchers.server_process import Program

# As `struct request` in forkserver.c.
_HEADER: Final = struct.Struct("=4I")
_MOST_STRINGS: Final = 4000


class Ogr2ogrServerKind:
    """Accepts ogr2ogr commands whose environments differ only in variables that are read after the start."""

    name = LauncherName.FORK_SERVER

    def __init__(self, ogr2ogr: Ogr2ogr, library: Path) -> None:
        self._ogr2ogr = ogr2ogr
        self._library = library
        self._started = StartEnvironment(ogr2ogr.environment)

    def takes(self, command: Command) -> bool:
        """Accepts its program, with an environment that it can adopt, if the command fits into a message."""
        return (
            command.argv[0] == str(self._ogr2ogr.program)
            and len(command.argv) + len(command.environment) < _MOST_STRINGS
            and self._started.can_become(command.environment)
        )

    def program(self, link: int) -> Program:
        """ogr2ogr, with the library preloaded: by its name in the directory, since a blank or colon ends a path there.

        It has one thread, since a fork copies no other, and looks up the names of all functions at its start, or every
        child would look up those that it needs.
        """
        environment = {
            **self._ogr2ogr.environment,
            "LD_PRELOAD": f"./{self._library.name}",
            "SANDBOX_LINK": str(link),
            "OPENBLAS_NUM_THREADS": "1",
            "LD_BIND_NOW": "1",
        }
        return Program((str(self._ogr2ogr.program),), environment, self._library.parent)

    def request(self, command: Command, steps: bytes) -> bytes:
        """The command as `struct request` and its data."""
        variables = [f"{name}={value}" for name, value in command.environment.items()]
        strings = (*command.argv, *variables)
        text = "\0".join((*strings, ""))
        if text.count("\0") != len(strings):
            raise PermissionError("a text holds a zero byte")
        header = _HEADER.pack(len(steps), len(command.argv), len(variables), 0)
        return header + steps + text.encode(errors="surrogateescape")
