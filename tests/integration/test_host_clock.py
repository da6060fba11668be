"""Tests that fail while the clock of their host is set."""

from pathlib import Path
from subprocess import run
from sys import executable

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import time

true, runs = time.time, []


def test_that_fails_once():
    runs.append(1)
    time.time = lambda: true() + {jump} * len(runs)
    assert len(runs) > 1


def test_that_always_fails():
    time.time = lambda: true() + {jump} * time.monotonic()
    assert not {fails}
"""


@pytest.mark.parametrize(
    ("jump", "fails", "summary"),
    [
        pytest.param(3600, False, "2 passed", id="once"),
        pytest.param(-3600, True, "1 failed, 1 passed", id="always"),
        pytest.param(0, False, "1 failed, 1 passed", id="without a jump"),
    ],
)
def test_a_test_that_fails_while_the_clock_jumps_runs_once_more(
    tmp_path: Path, jump: int, fails: bool, summary: str
) -> None:
    """The run says so; without a jump, a failure is a failure."""
    (tmp_path / "test_clock.py").write_text(PROGRAM.format(jump=jump, fails=fails))
    command = [executable, "-m", "pytest", "-p", "tests.support.host_clock", f"--rootdir={tmp_path}", str(tmp_path)]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to import
    done = run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert summary in done.stdout
    assert ("test_that_fails_once ran again: the host's clock jumped by" in done.stdout) == bool(jump)
