"""A soak of a few seconds: it runs, does everything it should, and fails when something grows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.load.mix import MIX
from bench.measure.watch import WATCHED
from bench.measure.watch_fleet import WATCHED_IN_FLEET
from bench.parts.soak import CLIENTS

ROOT = Path(__file__).parents[2]
MINUTES = "0.35"
LOAD = "0.2"
HIDDEN = {"descriptors", "connections"} if os.geteuid() != 0 else set()
"""What the kernel shows of servers to root only."""


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The run of `just soak`, for twenty seconds."""
    figures = tmp_path_factory.mktemp("soak") / "soak.json"
    command = [sys.executable, "-m", "bench.parts.soak", "--minutes", MINUTES, "--load", LOAD, "--output", str(figures)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False), figures


@pytest.mark.timeout(900)
def test_a_server_under_a_mixed_load_stays_as_it_is(soaked: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Every figure was seen and is flat, every answer was as expected, jobs were handed over, and the books agree."""
    done, figures = soaked
    assert done.returncode == 0, done.stdout + done.stderr
    assert "each ledger agrees" in done.stdout
    report = json.loads(figures.read_text())
    assert report["wrong"] == []
    every = (*WATCHED, *WATCHED_IN_FLEET)
    assert set(report["figures"]) == {name for name in every if name.rpartition(": ")[2] not in HIDDEN}
    assert set(report["done"]) <= set(MIX)
    assert sum(report["done"].values()) >= CLIENTS
    assert report["handedOver"] > 0
