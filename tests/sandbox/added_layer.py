"""Run by `test_added_layer.py` with a copy of the package: one run per launcher, and its outcome.

`added_layer.py WORK_ROOT OGR2OGR LIBRARY` prints the mode of the file that each run has made, how it ended, and why.
"""

import json
import sys
from pathlib import Path

import anyio

from sandbox import probe
from sandbox.command import Command
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.process.connection import Connection
from sandbox.verdict import Verdict
from tests.sandbox.runs import run_with

DATA = tuple(path for path in (Path("/usr/share/gdal"), Path("/usr/share/proj")) if path.exists())
SAMPLE = '{"type":"Feature","properties":{"n":1},"geometry":{"type":"Point","coordinates":[14,50]}}'
TARGETS = {"paths": {}, "tcp": 1, "udp": 1, "unix": "none", "abstract": "none"}
PYTHON = {"PYTHONSAFEPATH": "1", "LC_ALL": "C.UTF-8"}


def prepared(work_root: Path, launcher: LauncherName) -> Path:
    """A directory with the input of either command."""
    directory = work_root / launcher.name
    directory.mkdir()
    (directory / "in.geojson").write_text(SAMPLE)
    (directory / probe.TARGETS).write_text(json.dumps(TARGETS))
    return directory


async def ended(connection: Connection, command: Command, launcher: LauncherName) -> Verdict:
    """The verdict on a command, once its launcher is up."""
    return await run_with(connection, launcher, command)


async def main(work_root: Path, program: Path, library: Path) -> None:
    """Run the commands and print the outcomes."""
    config = Config(
        work_root=work_root,
        mode=Mode.BEST_EFFORT,
        converters=1,
        readable=DATA,
        ogr2ogr=Ogr2ogr(program=program, fork_server=library),
        python=PythonServer(rare_modules=("json.tool",), environment=PYTHON),
    )
    convert = (str(program), "-f", "CSV", "out.csv", "in.geojson")
    module = (sys.executable, "-m", probe.MODULE)
    found = {}
    connection = Connection(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use(list(LauncherName))
        for launcher in LauncherName:
            is_python = launcher in {LauncherName.PYTHON_SERVER, LauncherName.RARE_PYTHON_SERVER}
            directory = prepared(work_root, launcher)
            command = Command(
                argv=module if is_python else convert, directory=directory, environment=PYTHON if is_python else {}
            )
            verdict = await ended(connection, command, launcher)
            made = directory / (probe.RESULT if is_python else "out.csv")
            mode = f"{made.stat().st_mode & 0o777:o}" if made.exists() else ""
            found[launcher] = {"mode": mode, "ending": verdict.ending, "detail": verdict.detail}
        connection.close()
    print(json.dumps(found))  # noqa: T201 - read by the test


if __name__ == "__main__":
    work_root, program, library = map(Path, sys.argv[1:])
    anyio.run(main, work_root, program, library)
