"""The sandbox's command line."""

import subprocess
import sys
from pathlib import Path

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
