"""The results of a run, as they are kept."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.figures import Figures

DIRECTORY = Path("bench/results")
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
        commit=_commit(),
        server=server,
        rounds=rounds,
        seconds=seconds,
        load_average=(0.0, 0.0),
        scenarios={},
    )


def write_results(results: Results, path: Path) -> None:
    """Write results, and keep those of the latest run under their usual name too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def read_results(path: Path) -> Results:
    """Read results that were written."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()
