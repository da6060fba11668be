"""The cost of a small conversion with each launcher and all isolation layers, compared with bare ogr2ogr.

    python -m bench.parts.launchers [--rounds 5] [--runs 20]

Bare ogr2ogr and the launchers convert the same small GeoJSON to Shapefile in turn, round after round: one at a time
with a pause between them (`p50`), then four at a time (`rate`). Goals: the fork server has at least 4 times the rate of
bare ogr2ogr and at most 0.35 times its p50, plain exec at most 1.25 times. Ratios are
the medians of the rounds' ratios, and bare ogr2ogr at the low priority of all runs (nice 10) shows what that alone
costs on a busy host. They go to bench/results/launchers.json with the memory of what is held ready.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import anyio
import anyio.to_thread
import psutil

from bench.load.documents import points
from bench.measure.figures import medians
from bench.measure.meter import MEGABYTE, sizes_of
from bench.report.results import DIRECTORY, write_json
from sandbox import forkserver
from sandbox.command import Command
from sandbox.config import Config, LauncherName, Ogr2ogr
from sandbox.pool import Pool, open_pool
from sandbox.verdict import Ending

RESULTS = DIRECTORY / "launchers.json"
GOALS: Mapping[str, tuple[float, float]] = {  # least rate, longest p50, both as ratios to bare ogr2ogr
    LauncherName.FORK_SERVER: (4.0, 0.35),
    LauncherName.EXEC: (0.0, 1.25),
}
AT_ONCE = 4
NICE = 10
PAUSE_SECONDS = 0.08
FEATURES = 50
ENVIRONMENT = {"PATH": "/usr/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "GDAL_DRIVER_PATH": "disable"}
"""The environment of every conversion."""
READABLE = tuple(path for path in map(Path, ("/usr/share/gdal", "/usr/share/proj")) if path.exists())
BARE = "bare ogr2ogr"
BARE_NICE = "bare, nice 10"
ARGUMENTS = ("-f", "ESRI Shapefile", "out", "in.geojson")

Convert = Callable[[Path], Awaitable[float]]
"""Converts the sample in a directory; answers with its CPU seconds."""


async def convert_bare(program: str, priority: int, directory: Path) -> float:
    """Without isolation, as a shell would, or as `nice` would."""

    def run() -> float:
        process = subprocess.Popen([program, *ARGUMENTS], cwd=directory, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        os.setpriority(os.PRIO_PROCESS, process.pid, priority)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    return await anyio.to_thread.run_sync(run)


async def convert_in(pool: Pool, program: str, used: dict[str, int], directory: Path) -> float:
    """In the jail; counts which launchers were used."""
    async with pool.lease(str(len(used))) as converter:
        command = Command(argv=(program, *ARGUMENTS), directory=directory, environment=ENVIRONMENT)
        verdict = await converter.run(command)
    assert verdict.ending is Ending.OK, verdict
    used[verdict.launcher] = used.get(verdict.launcher, 0) + 1
    return verdict.cpu_seconds


async def measure(convert: Convert, root: Path, runs: int) -> dict[str, float]:
    """One round: p50 in ms of conversions with a pause between, and their rate four at a time."""
    directories = [_prepared(root) for _ in range(runs * 2)]
    waits, cpu = [], []
    for directory in directories[:runs]:
        await anyio.sleep(PAUSE_SECONDS)
        began = time.perf_counter()
        cpu.append(await convert(directory))
        waits.append(time.perf_counter() - began)
    rest = iter(directories[runs:])

    async def client() -> None:
        for directory in rest:
            await convert(directory)

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(client)
    rate = runs / (time.perf_counter() - began)
    for directory in directories:
        assert (directory / "out" / "in.shp").exists()
        shutil.rmtree(directory)
    return {"p50_ms": median(waits) * 1e3, "rate": rate, "cpu_ms": mean(cpu) * 1e3}


def _prepared(root: Path) -> Path:
    directory = Path(tempfile.mkdtemp(dir=root))
    (directory / "in.geojson").write_bytes(points(FEATURES))
    return directory


def converters() -> set[psutil.Process]:
    """The processes of ogr2ogr on this host."""
    return {process for process in psutil.process_iter(["cmdline"]) if "ogr2ogr" in str(process.info["cmdline"])}


def memory_of(processes: set[psutil.Process]) -> dict[str, float]:
    """Megabytes of one of these processes: with its share of what is shared, and all its own."""
    found = [sizes for sizes in map(sizes_of, processes) if sizes]
    if not found:
        return {}
    shared, own = (round(mean(sizes[name] for sizes in found) / MEGABYTE, 1) for name in ("Pss", "Private_Dirty"))
    return {"processes": len(found), "pss_mb": shared, "private_mb": own}


def ogr2ogr(program: str) -> Ogr2ogr:
    """Return the configuration of ogr2ogr, with a fork server."""
    library = forkserver.build(Path(tempfile.gettempdir()) / "forkserver-bench")
    return Ogr2ogr(program=Path(program), environment=ENVIRONMENT, fork_server=library)


@asynccontextmanager
async def opened(options: argparse.Namespace, launcher: LauncherName, root: Path) -> AsyncIterator[Pool]:
    """A pool that has this launcher and plain exec."""
    config = Config(
        work_root=root, readable=READABLE, ogr2ogr=ogr2ogr(options.ogr2ogr), launchers=(launcher, LauncherName.EXEC)
    )
    async with open_pool(config) as pool:
        await anyio.sleep(0.5)
        yield pool


def make_root(place: str, name: str) -> Path:
    """A work root that other users can pass through."""
    Path(place).chmod(0o755)
    root = Path(place) / name.replace(" ", "-")
    root.mkdir()
    return root


async def main(options: argparse.Namespace) -> None:
    """Measure, print, keep."""
    used: dict[str, dict[str, int]] = {name: {} for name in GOALS}
    rounds: dict[str, list[dict[str, float]]] = {BARE: [], BARE_NICE: [], **{name: [] for name in GOALS}}
    memory: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        async with AsyncExitStack() as stack:
            roots = {name: make_root(place, name) for name in (BARE, BARE_NICE, *GOALS)}
            ways: dict[str, Convert] = {
                BARE: partial(convert_bare, options.ogr2ogr, 0),
                BARE_NICE: partial(convert_bare, options.ogr2ogr, NICE),
            }
            for name in GOALS:
                before = converters()
                pool = await stack.enter_async_context(opened(options, LauncherName(name), roots[name]))
                memory[name] = memory_of(converters() - before)
                ways[name] = partial(convert_in, pool, options.ogr2ogr, used[name])
            for _ in range(options.rounds):
                for name, way in ways.items():
                    rounds[name].append(await measure(way, roots[name], options.runs))
    report(rounds, used, memory)


def report(
    rounds: Mapping[str, list[dict[str, float]]],
    used: Mapping[str, Mapping[str, int]],
    memory: Mapping[str, Mapping[str, float]],
) -> None:
    """Print the medians and the ratios, and write them down."""
    results: dict[str, dict[str, Any]] = {}
    for name, figures in rounds.items():
        own, pairs = medians(figures), zip(figures, rounds[BARE], strict=True)
        ratios = medians([{key: ours[key] / bare[key] for key in ours} for ours, bare in pairs], 3)
        results[name] = {"medians": own, "ratios": ratios, "used": used.get(name), "memory": memory.get(name)}
        print(f"{name:14} {own}  beside bare: {ratios}  {dict(used.get(name, {}))} {dict(memory.get(name, {}))}")
    for name, (least_rate, longest) in GOALS.items():
        ratios = results[name]["ratios"]
        met = ratios["rate"] >= least_rate and ratios["p50_ms"] <= longest
        print(f"{name:14} goal {'met' if met else 'MISSED'}: rate ≥ {least_rate}, p50 ≤ {longest}")
    write_json(results, RESULTS)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--ogr2ogr", default=shutil.which("ogr2ogr"))
    options = parser.parse_args()
    return options if options.ogr2ogr else sys.exit("There is no ogr2ogr here.")


if __name__ == "__main__":
    anyio.run(main, parse())
