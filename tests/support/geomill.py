"""The command `geomill` in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 100.0
"""A command that takes longer hangs."""


class Geomill:
    """The command, on one data directory."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
        self._environment = {
            **inherited,
            "GEOMILL_DATA_DIR": str(data_dir),
            "PYTHONPATH": str(ROOT),
            **(settings or {}),
        }

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = [sys.executable, "-m", "service", *arguments]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
        )

    def json(self, *arguments: str) -> dict[str, Any]:
        """Run a command that succeeds, and read the one JSON object that it prints."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed
