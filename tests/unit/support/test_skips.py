"""Which tests may be skipped in CI."""

import os
import subprocess
import sys
from pathlib import Path

SKIPPED = """
import pytest

def test_that_finds_a_program_missing():
    pytest.skip("PgBouncer is missing")

@pytest.mark.skipif(True, reason="no ogr2ogr")
def test_marked_as_in_need_of_a_program(): ...

@pytest.mark.skipif(True, reason="only root becomes somebody else")
def test_marked_as_in_need_of_rights(): ...

def test_that_finds_the_kernel_lacking():
    pytest.skip("this host lets nobody mount")
"""


def results(directory: Path, *, ci: str) -> str:
    """Run the tests; return pytest's last line."""
    file = directory / "test_it.py"
    file.write_text(SKIPPED)
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.support.skips"]
    python_path = str(Path(__file__).parents[3])
    environment = {"CI": ci, "PYTHONPATH": python_path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [*pytest, "-c", os.devnull, "--rootdir", str(directory), str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[-1]


def test_what_is_missing_fails_in_ci(tmp_path: Path) -> None:
    """But restrictions of the host are accepted: no installation turns an ordinary user into root."""
    assert "1 failed, 2 skipped, 1 error" in results(tmp_path, ci="true")


def test_what_is_missing_is_skipped_elsewhere(tmp_path: Path) -> None:
    """So that hosts without GDAL can run the other tests."""
    assert "4 skipped" in results(tmp_path, ci="")
