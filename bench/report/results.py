"""The results of a run, as stored."""

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
"""The results of the programs in `bench.parts`, by their names."""
LATEST = DIRECTORY / "load.json"
OWN = "its own"
"""The server of a run that started one."""


class Results(msgspec.Struct, kw_only=True, rename="camel"):
    """A run: where and when it took place, and the figures of each scenario and baseline."""

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
    """Return empty results for a run on this host."""
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


def write_json(record: object, path: Path) -> None:
    """Write a record or mapping as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_parts(names: Iterable[str]) -> Parts:
    """Read the results of these programs; those that have not run are missing."""
    paths = {name: DIRECTORY / f"{name}.json" for name in names}
    return {name: msgspec.json.decode(path.read_bytes()) for name, path in paths.items() if path.exists()}


def commit() -> str:
    """Return the commit that is checked out."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()
