"""What is left of runs that try to exceed their quotas, by launcher: as the caller, or as an ordinary user.

`python -m tests.sandbox.holding WORK_ROOT MEMORY_ROOT PROGRAM LIBRARY [refuse]` prints it as JSON; with `refuse` the
kernel gives it no user namespace.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from sandbox.command import MIB, Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr
from sandbox.process.connection import Connection
from sandbox.verdict import Verdict
from tests.sandbox.ordinary_user import refuse_namespaces
from tests.sandbox.runs import run_with

LAUNCHERS = (LauncherName.EXEC, LauncherName.FORK_SERVER)
LIMITS = Limits(
    wall_seconds=20, directory_bytes=8 * MIB, file_bytes=4 * MIB, directory_files=50, memory_bytes=1024 * MIB
)
WITHIN = {way: (f"hold {way}", "1") for way in ("open", "mapped", "replaced", "directories")}
BEYOND = {
    "bytes in open files": ("hold open", "12"),
    "bytes in mapped files": ("hold mapped", "12"),
    "bytes in replaced files": ("hold replaced", "12"),
    "entries": ("hold directories", "60"),
}
REFUSED = {name: (name, "x") for name in ("take room", "take room beyond the end", "extended attribute")}
THREADS = {name: (name,) for name in ("thread", "thread apart")}
ATTACKS = {**WITHIN, **BEYOND, **REFUSED, **THREADS}


async def endings(config: Config) -> dict[str, str]:
    """How each attack ended in a directory of its root, by `LAUNCHER: ATTACK`; the exit code if it exited."""
    found = {}
    connection = Connection(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        connection.use(LAUNCHERS)
        for launcher in LAUNCHERS:
            for attack, arguments in ATTACKS.items():
                verdict = await _run(connection, config, launcher, arguments)
                ended = verdict.ending if verdict.exit_code is None else f"exit {verdict.exit_code}"
                found[f"{launcher}: {attack}"] = str(ended)
        connection.close()
    return found


async def _run(connection: Connection, config: Config, launcher: LauncherName, arguments: tuple[str, ...]) -> Verdict:
    assert config.ogr2ogr is not None
    directory = Path(tempfile.mkdtemp(dir=config.memory_root or config.work_root))
    (directory / "in").touch()
    command = Command(argv=(str(config.ogr2ogr.program), *arguments), directory=directory, limits=LIMITS)
    return await run_with(connection, launcher, command)


def configurations(work_root: Path, memory_root: Path, hostile: Path, library: Path) -> tuple[Config, Config]:
    """A pool of one slot for the hostile program, with runs on disk and in memory."""
    ogr2ogr = Ogr2ogr(program=hostile, fork_server=library)
    on_disk = Config(work_root=work_root, mode=Mode.BEST_EFFORT, converters=1, ogr2ogr=ogr2ogr)
    return on_disk, msgspec.structs.replace(on_disk, memory_root=memory_root)


async def main(places: Sequence[Path]) -> None:
    """Attack on disk and in memory, and print the outcomes."""
    print(json.dumps([await endings(config) for config in configurations(*places)]))  # noqa: T201 - read by the test


if __name__ == "__main__":
    if sys.argv[5:] == ["refuse"]:
        refuse_namespaces()
    anyio.run(main, [Path(argument) for argument in sys.argv[1:5]])
