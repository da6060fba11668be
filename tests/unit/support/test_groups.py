"""Tests of a group share expensive fixtures, so one worker runs all of them."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os
import pathlib
import pytest

@pytest.mark.xdist_group("group")
@pytest.mark.parametrize("number", range(6))
def test_of_a_group(number):
    pathlib.Path(__file__).with_name(f"{os.environ['PYTEST_XDIST_WORKER']}-{number}").touch()
"""


def test_one_worker_runs_a_group(tmp_path: Path) -> None:
    """With some versions of pytest and pytest-xdist, every worker would start the servers of a group."""
    file = tmp_path / "test_it.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "--numprocesses=2", "--dist=loadgroup"]
    command += ["-c", os.devnull, "--rootdir", str(tmp_path), str(file)]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to import
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert len({path.name.partition("-")[0] for path in tmp_path.glob("gw*")}) == 1
