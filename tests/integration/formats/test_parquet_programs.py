"""Our GeoParquet programs, as children of the process that has imported their packages."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from anyio import run_process
from msgspec.structs import replace

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.verdict import Verdict
from service.engine.jailed import RARE_PROGRAMS
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.sandbox.processes import command_line, processes_below
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")


class Recorded:
    """Runs commands; notes who starts our programs, and keeps what they are given and what they write."""

    def __init__(self, converters: Converters, kept: Path) -> None:
        self._converters = converters
        self._kept = kept
        self.launchers: dict[str, str] = {}
        self.commands: dict[str, Command] = {}

    async def run(self, command: Command) -> Verdict:
        """Run a command in the jail."""
        module = command.argv[3] if command.argv[1] == "-m" else ""
        if module not in RARE_PROGRAMS:
            return await self._converters.run(command)
        shutil.copytree(command.directory, self._kept / module)
        verdict = await self._converters.run(command)
        self.launchers[module], self.commands[module] = verdict.launcher, command
        return verdict

    def given(self, module: str) -> Path:
        """A copy of the directory that the program `module` was given."""
        return self._kept / module


def threads_of_servers() -> list[int]:
    """How many threads each process has that holds the programs."""
    wanted = "\0".join(RARE_PROGRAMS).encode()
    servers = [pid for pid in processes_below(os.getpid()) if wanted in command_line(pid)]
    return [len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in servers]


async def test_a_forked_program_writes_what_a_started_one_writes(converters: Converters, tmp_path: Path) -> None:
    """Byte for byte, also when the server has forked before; and the server has one thread."""
    content = [point(14.5, 50.1, name="ž", n=1, at="2020-01-02T03:04:05Z"), point(-3, 4, name=None, n=None, at=None)]
    source = write_geojson(tmp_path / "points.geojson", content)
    recorded = Recorded(converters, tmp_path)
    pipeline = Pipeline(converters, recorded.run)
    parquet = (await pipeline.to("GeoParquet", source)).path
    back = await pipeline.to("GeoJson", parquet)
    assert recorded.launchers == dict.fromkeys(RARE_PROGRAMS, LauncherName.RARE_PYTHON_SERVER)
    assert back.output.path.read_text().count('"Feature"') == len(content)

    for module, command in recorded.commands.items():
        environment = dict(command.environment)
        await run_process([sys.executable, *command.argv[1:]], cwd=recorded.given(module), env=environment)
    (alone,) = recorded.given(RARE_PROGRAMS[1]).glob("out/*.parquet")
    assert alone.read_bytes() == parquet.read_bytes()
    threads = threads_of_servers()
    assert threads == [1] * len(threads) != []


async def test_a_forked_program_has_the_memory_of_a_run_for_itself(converters: Converters, tmp_path: Path) -> None:
    """The address space that its server has reserved leaves room for a file, although it counts for the run."""

    async def run(command: Command) -> Verdict:
        return await converters.run(replace(command, limits=replace(command.limits, memory_bytes=512 << 20)))

    source = write_geojson(tmp_path / "points.geojson", [point(n / 100, 4, name=f"point {n}") for n in range(3_000)])
    pipeline = Pipeline(converters, run)
    back = await pipeline.to("Csv", (await pipeline.to("GeoParquet", source)).path)
    assert back.output.path.read_text().count("point") == 3_000
