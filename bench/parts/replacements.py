"""Whether replacing a fork server ever costs a run: `python -m bench.parts.replacements [--runs 100000]`.

Many clients convert one good file again and again while the fork server is replaced after every `--commands` of them.
Each run has to succeed; every other ending is printed, and the exit code is then 1. `--python` does the same with the
server of Python commands.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import anyio

from bench.parts.launchers import environment, make_root
from sandbox import forkserver, probe
from sandbox.command import Command
from sandbox.config import Config, LauncherName, Ogr2ogr, PythonServer
from sandbox.pool import Pool, open_pool
from sandbox.verdict import Ending

DOCUMENT = '{"type":"Feature","properties":{"n":1},"geometry":{"type":"Point","coordinates":[14.45,50.08]}}'
CONVERSION = ("-f", "CSV", "/vsistdout/", "in.geojson")
REPORT_EVERY = 5000


class _Count:
    """How runs ended, and who started them."""

    def __init__(self, wanted: int) -> None:
        self.left = wanted
        self.endings: Counter[str] = Counter()
        self.launchers: Counter[str] = Counter()

    def next(self) -> bool:
        """Whether there is one more to do; counts it."""
        self.left -= 1
        if self.left > 0 and self.left % REPORT_EVERY == 0:
            print(f"{self.left} left: {dict(self.endings)} {dict(self.launchers)}", flush=True)
        return self.left >= 0


async def client(pool: Pool, tenant: str, command: Command, count: _Count) -> None:
    """Run `command` as often as is left to do, each time in a turn of its own."""
    while count.next():
        async with pool.lease(tenant) as worker:
            verdict = await worker.run(command)
        count.endings[verdict.ending] += 1
        count.launchers[verdict.launcher] += 1
        if verdict.ending is not Ending.OK:
            print(verdict, flush=True)


async def main(options: argparse.Namespace) -> int:
    """Run them all; the exit code."""
    count = _Count(options.runs)
    with tempfile.TemporaryDirectory() as place:
        root = make_root(place, "work")
        async with open_pool(_config(options, root)) as pool, anyio.create_task_group() as tasks:
            for number in range(options.clients):
                directory = root / str(number)
                directory.mkdir()
                (directory / "in.geojson").write_text(DOCUMENT, encoding="utf-8")
                tasks.start_soon(client, pool, str(number), _command(options, directory), count)
    wanted = LauncherName.PYTHON_SERVER if options.python else LauncherName.FORK_SERVER
    replacements = count.launchers[wanted] // options.commands
    print(
        f"{options.runs} runs by {options.clients} clients: {dict(count.endings)}, started by {dict(count.launchers)}"
    )
    print(f"about {replacements} replacements of the {wanted}")
    return 0 if set(count.endings) == {Ending.OK} else 1


def _config(options: argparse.Namespace, root: Path) -> Config:
    data = (Path("/usr/share/gdal"), Path("/usr/share/proj"))
    library = forkserver.build(Path(tempfile.gettempdir()) / "forkserver-bench")
    ogr2ogr = Ogr2ogr(program=Path(options.ogr2ogr), environment=environment(None), fork_server=library)
    server = LauncherName.PYTHON_SERVER if options.python else LauncherName.FORK_SERVER
    return Config(
        work_root=root,
        converters=options.converters,
        waiting_room=options.clients,
        readable=tuple(path for path in data if path.exists()),
        ogr2ogr=ogr2ogr,
        python=PythonServer(environment=_python_environment()),
        launchers=(server, LauncherName.EXEC),
        commands_per_server=options.commands,
    )


def _command(options: argparse.Namespace, directory: Path) -> Command:
    if options.python:
        # The probe of the self-test, told of nothing that it could reach.
        argv = (sys.executable, "-m", probe.MODULE, "/nowhere", "1", "1", "/nowhere", "nowhere")
        return Command(argv=argv, directory=directory, environment=_python_environment())
    return Command(argv=(options.ogr2ogr, *CONVERSION), directory=directory, environment=environment(None))


def _python_environment() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).resolve().parent.parent), "PYTHONSAFEPATH": "1", "LC_ALL": "C.UTF-8"}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--commands", type=int, default=80, help="after how many a server is replaced")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--converters", type=int, default=8)
    parser.add_argument("--python", action="store_true", help="the server of Python commands")
    parser.add_argument("--ogr2ogr", default=shutil.which("ogr2ogr"))
    options = parser.parse_args()
    return options if options.ogr2ogr else sys.exit("There is no ogr2ogr here.")


if __name__ == "__main__":
    sys.exit(anyio.run(main, parse()))
