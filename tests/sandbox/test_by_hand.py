"""The sandbox's command line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT_OF_PROJECT = Path(__file__).parents[2]


def by_hand(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m sandbox`."""
    command = [sys.executable, "-m", "sandbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT_OF_PROJECT)


def test_a_command_runs_in_the_jail_and_is_told(directory: Path) -> None:
    """It exits with the program's exit code, and prints the verdict and the report."""
    program = "import sys\nopen('made', 'w').close()\ntry: open('/etc/passwd')\nexcept OSError: sys.exit(5)"
    result = by_hand("--report", str(directory), "--", sys.executable, "-c", program)
    assert result.returncode == 5, result.stderr
    assert (directory / "made").exists()
    assert "resource limits" in result.stderr
    assert "nothing got out" in result.stderr
    assert "exit: " in result.stderr


def test_a_crash_is_told_as_a_failure(directory: Path) -> None:
    """A program that is ended by a signal has no exit code of its own."""
    result = by_hand(str(directory), "--", sys.executable, "-c", "import os; os.abort()")
    assert result.returncode == 1
    assert "signal: " in result.stderr


@pytest.mark.parametrize("place", [".", "job"])
def test_a_program_that_its_run_would_not_see_is_named(work_root: Path, directory: Path, place: str) -> None:
    """Beside the directory, or in it, where nothing may be executed."""
    program = work_root / place / "program"
    shutil.copy("/bin/true", program)
    result = by_hand(str(directory), "--", str(program))
    assert result.returncode == 1
    assert f"holds {program}, which every conversion can read. Move one of them elsewhere." in result.stderr


def test_a_program_that_does_not_exist_is_named(directory: Path) -> None:
    """The verdict says what is wrong."""
    result = by_hand(str(directory), "--", "/nowhere")
    assert result.returncode == 1
    assert "No such file or directory: '/nowhere'" in result.stderr
