"""Every test is in exactly one share, with those that use the same conversion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.share import Share

MODULE = "tests/integration/formats/test_matrix.py"
TESTS = [f"{MODULE}::test_{number}[{sample}-Kml]" for number in range(3) for sample in range(100)]
SHARES = [Share(f"{number}/3") for number in (1, 2, 3)]


def test_each_test_is_in_one_share() -> None:
    """None is left out, none runs twice, and no share is empty."""
    assert all(sum(test in share for share in SHARES) == 1 for test in TESTS)
    assert all(any(test in share for test in TESTS) for share in SHARES)


def test_what_has_the_same_parameters_is_in_the_same_share() -> None:
    """Tests of a module convert the same sample once."""
    for share in SHARES:
        samples = [[test for test in TESTS if f"_{number}[" in test and test in share] for number in range(3)]
        assert len({len(each) for each in samples}) == 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/3"])
def test_no_other_share_exists(text: str) -> None:
    """It would run nothing, and pass."""
    with pytest.raises(pytest.UsageError, match="1/3"):
        Share(text)


def test_workers_heed_the_options_of_the_environment() -> None:
    """As CI names a share."""
    few = Path(__file__).with_name("test_groups.py")
    command = [sys.executable, "-m", "pytest", "--numprocesses=1", str(few)]
    environment = {**os.environ, "PYTEST_ADDOPTS": f"--deselect={few.relative_to(Path.cwd())}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
