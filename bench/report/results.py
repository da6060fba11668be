"""The results of a run, as they are kept."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bench.measure.figures import Figures

DIRECTORY = Path("bench/results")
Parts: TypeAlias = dict[str, Any]
"""What the programs that measure one part each have written, by their names."""
LATEST = DIRECTORY / "load.json"


class Results(msgspec.Struct, kw_only=True, rename="camel"):
    """All of a run: where and when, and the figures of each scenario and baseline."""

    at: str
    host: str
    cores: int
    commit: str
    server: str
    rounds: int
    seconds: float
    load_average: tuple[float, float]
    scenarios: dict[str, Figures]


def new_results(server: str, rounds: int, seconds: float) -> Results:
    """Begin the results of a run on this host."""
    return Results(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        cores=os.cpu_count() or 1,
        commit=commit(),
        server=server,
        rounds=rounds,
        seconds=seconds,
        load_average=(0.0, 0.0),
        scenarios={},
    )


def write_results(results: Results, path: Path) -> None:
    """Write results."""
    write_json(results, path)


def write_json(record: msgspec.Struct, path: Path) -> None:
    """Write a record for people and programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_results(path: Path) -> Results:
    """Read results that were written."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def read_parts(names: Iterable[str]) -> Parts:
    """Read what those programs have written; what has not run is missing."""
    paths = {name: DIRECTORY / f"{name}.json" for name in names}
    return {name: msgspec.json.decode(path.read_bytes()) for name, path in paths.items() if path.exists()}


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()
