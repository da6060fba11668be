"""Run by `test_hosts.py` as an ordinary user with a process limit: whether the spawner survives it.

`crowded.py WORK_ROOT` prints the endings of runs with room for no more processes, for a few, and for all, and whether
the spawner is the one that it was.
"""

import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

import anyio

from sandbox import probe
from sandbox.command import Command
from sandbox.config import Config, LauncherName, PythonServer
from sandbox.process.connection import Connection
from sandbox.verdict import Verdict
from tests.sandbox.processes import command_line, processes_below
from tests.support.patience import PATIENCE_SECONDS

PYTHON = {"PYTHONSAFEPATH": "1", "LC_ALL": "C.UTF-8"}
TARGETS = {"paths": {}, "tcp": 1, "udp": 1, "unix": "none", "abstract": "none"}
MOST_IN_THE_NAMESPACE = 6


def named(what: bytes) -> list[int]:
    """The processes of a module, in order of their ids."""
    return sorted(pid for pid in processes_below() if what in command_line(pid))


def leave_room_for(processes: int | None) -> None:
    """Limit the number of processes of the spawner and its server, or lift the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    for pid in (*named(b"sandbox.process.keeper")[1:2], *named(b"launchers.zygote")):
        resource.prlimit(pid, resource.RLIMIT_NPROC, (hard if processes is None else processes, hard))


async def run(connection: Connection, work_root: Path, launcher: LauncherName | None = None) -> Verdict:
    """Run one command with the Python server, or with plain exec while there is none, unless one is named."""
    directory = Path(tempfile.mkdtemp(dir=work_root))
    (directory / probe.TARGETS).write_text(json.dumps(TARGETS))
    argv = (sys.executable, "-m", probe.MODULE)
    return await connection.run(0, Command(argv=argv, directory=directory, environment=PYTHON), launcher)


async def until_served(connection: Connection, work_root: Path) -> Verdict:
    """Run a command with the Python server once it is back."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not (verdict := await run(connection, work_root, LauncherName.PYTHON_SERVER)).launcher:  # noqa: ASYNC110 - polls
            await anyio.sleep(0.05)
    return verdict


async def main(work_root: Path) -> None:
    """Run, kill the server, run again, and report."""
    connection = Connection(Config(work_root=work_root, converters=1, python=PythonServer(environment=PYTHON)))
    found = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use(list(LauncherName))
        spawner = named(b"sandbox.process.keeper")[1]
        # None at all, so that no server can be started anew, and then enough for the one or the other of two forks.
        for processes in range(MOST_IN_THE_NAMESPACE):
            leave_room_for(processes)
            if processes == 0:
                for pid in named(b"launchers.zygote"):
                    os.kill(pid, signal.SIGKILL)
                await anyio.sleep(1)
            found.append(await run(connection, work_root))
            leave_room_for(None)
            await until_served(connection, work_root)
        found.append(await until_served(connection, work_root))
        same = named(b"sandbox.process.keeper")[1:2] == [spawner]
        connection.close()
    print(json.dumps({"endings": [[each.ending, each.detail] for each in found], "same": same}))  # noqa: T201 - read by the test


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
