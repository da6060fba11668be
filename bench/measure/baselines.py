"""The baselines of the goals: bare `ogr2ogr` on the same documents, without isolation, metering or a network."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.load.documents import document, small_document, write_document
from bench.load.load import OK, LoadTally
from bench.measure.meter import MEGABYTE, Usage

CONVERT = ("ogr2ogr", "-f", "ESRI Shapefile")
ONE_BY_ONE_RUNS = 10
PARALLEL_RUNS = 60


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """Conversions by a shell: `runs` of them, `at_once` by `xargs`, or one after the other each timed."""

    about: str
    content: Callable[[], bytes]
    runs: int
    at_once: int = 1


def _large(megabytes: int) -> Baseline:
    size_bytes = megabytes * MEGABYTE
    return Baseline(about=f"bare ogr2ogr, {megabytes} MB", content=lambda: document(size_bytes), runs=1)


BASELINES: dict[str, Baseline] = {
    "ogr2ogr-1": Baseline(about="bare ogr2ogr, one at a time", content=small_document, runs=ONE_BY_ONE_RUNS),
    "ogr2ogr-2": Baseline(about="xargs -P 2 over ogr2ogr", content=small_document, runs=PARALLEL_RUNS, at_once=2),
    "ogr2ogr-size-1": _large(1),
    "ogr2ogr-size-10": _large(10),
    "ogr2ogr-size-90": _large(90),
}


def run_baseline(baseline: Baseline) -> tuple[LoadTally, Usage]:
    """Run it and return the results; the CPU time is attributed to converters."""
    tally, usage = LoadTally(), Usage()
    with tempfile.TemporaryDirectory(prefix="geomill-bench-") as directory:
        source = write_document(Path(directory), baseline.content(), "places.geojson")
        before = os.times()
        since = time.perf_counter()
        (_run_in_parallel if baseline.at_once > 1 else _run_one_by_one)(baseline, source, tally)
        tally.elapsed_seconds = time.perf_counter() - since
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    usage.cpu_seconds = {"converters": spent}
    return tally, usage


def _run_one_by_one(baseline: Baseline, source: Path, tally: LoadTally) -> None:
    for number in range(baseline.runs):
        since = time.perf_counter()
        subprocess.run([*CONVERT, f"out{number}", source.name], cwd=source.parent, check=True, capture_output=True)
        tally.add(OK, time.perf_counter() - since)


def _run_in_parallel(baseline: Baseline, source: Path, tally: LoadTally) -> None:
    numbers = "\n".join(map(str, range(baseline.runs)))
    command = ["xargs", "-P", str(baseline.at_once), "-I{}", *CONVERT, "out{}", source.name]
    since = time.perf_counter()
    subprocess.run(command, cwd=source.parent, input=numbers.encode(), check=True, capture_output=True)
    each = (time.perf_counter() - since) * baseline.at_once / baseline.runs
    for _ in range(baseline.runs):
        tally.add(OK, each)
