"""systemd accepts the unit in deploy/, which exposes little of the host to the service."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "geomill.service"
PROGRAM = "/opt/geomill/bin/geomill"
EXPOSURE = "30"
"""Out of 100, by systemd's own measure; a unit without any of its options has more than 90."""


@pytest.mark.parametrize("command", [("verify",), ("security", "--offline=yes", f"--threshold={EXPOSURE}")])
def test_systemd_accepts_the_unit(command: tuple[str, ...], tmp_path: Path) -> None:
    """It knows every option, and the remaining exposure is low."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    text = UNIT.read_text(encoding="utf-8")
    assert PROGRAM in text
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace(PROGRAM, sys.executable))
    done = subprocess.run([analyze, *command, str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
