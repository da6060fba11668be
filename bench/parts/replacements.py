"""Check that replacing a fork server never fails a run: `python -m bench.parts.replacements [--runs 100000]`.

Many clients convert one valid file repeatedly while the fork server is replaced after every `--commands` conversions.
Each run must succeed; every other ending is printed, and the exit code is then 1.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import anyio

from bench.parts.launchers import ENVIRONMENT, READABLE, make_root, ogr2ogr
from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.pool import Pool, open_pool
from sandbox.verdict import Ending

DOCUMENT = '{"type":"Feature","properties":{"n":1},"geometry":{"type":"Point","coordinates":[14.45,50.08]}}'
CONVERSION = ("-f", "CSV", "/vsistdout/", "in.geojson")
REPORT_EVERY = 5000


class _Count:
    """The endings and launchers of runs."""

    def __init__(self, wanted: int) -> None:
        self.left = wanted
        self.endings: Counter[str] = Counter()
        self.launchers: Counter[str] = Counter()

    def next(self) -> bool:
        """Count a run; return False if there is none left."""
        self.left -= 1
        if self.left > 0 and self.left % REPORT_EVERY == 0:
            print(f"{self.left} left: {dict(self.endings)} {dict(self.launchers)}", flush=True)
        return self.left >= 0


async def client(pool: Pool, tenant: str, command: Command, count: _Count) -> None:
    """Run `command` while runs are left, each with a new lease."""
    while count.next():
        async with pool.lease(tenant) as converter:
            verdict = await converter.run(command)
        count.endings[verdict.ending] += 1
        count.launchers[verdict.launcher] += 1
        if verdict.ending is not Ending.OK:
            print(verdict, flush=True)


async def main(options: argparse.Namespace) -> int:
    """Run all conversions; return the exit code."""
    count = _Count(options.runs)
    with tempfile.TemporaryDirectory() as place:
        root = make_root(place, "work")
        async with open_pool(_config(options, root)) as pool, anyio.create_task_group() as tasks:
            for number in range(options.clients):
                directory = root / str(number)
                directory.mkdir()
                (directory / "in.geojson").write_text(DOCUMENT, encoding="utf-8")
                command = Command(argv=(options.ogr2ogr, *CONVERSION), directory=directory, environment=ENVIRONMENT)
                tasks.start_soon(client, pool, str(number), command, count)
    replacements = count.launchers[LauncherName.FORK_SERVER] // options.commands
    print(
        f"{options.runs} runs by {options.clients} clients: {dict(count.endings)}, started by {dict(count.launchers)}"
    )
    print(f"about {replacements} replacements")
    return 0 if set(count.endings) == {Ending.OK} else 1


def _config(options: argparse.Namespace, root: Path) -> Config:
    return Config(
        work_root=root,
        converters=options.converters,
        waiting_room=options.clients,
        readable=READABLE,
        ogr2ogr=ogr2ogr(options.ogr2ogr),
        launchers=(LauncherName.FORK_SERVER, LauncherName.EXEC),
        commands_per_server=options.commands,
    )


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--commands", type=int, default=80, help="conversions after which a server is replaced")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--converters", type=int, default=8)
    parser.add_argument("--ogr2ogr", default=shutil.which("ogr2ogr"))
    options = parser.parse_args()
    return options if options.ogr2ogr else sys.exit("There is no ogr2ogr here.")


if __name__ == "__main__":
    sys.exit(anyio.run(main, parse()))
