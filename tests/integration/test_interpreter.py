"""However Python was started, jailed programs find it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.interpreter import direct
from tests.support.forked import ROOT, environment_for


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/../usr/bin/../bin/python3", "/usr/bin/python3"),
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("/venv/link/python", "/venv/link/python"),
    ],
)
def test_a_path_without_detours_leads_to_the_same_name(path: str, expected: str) -> None:
    """A path that has none stays as it is, with its links."""
    assert direct(path) == expected


def test_a_service_can_isolate_converters_if_python_was_started_by_a_relative_path(tmp_path: Path) -> None:
    """As in `../venv/bin/python -m uvicorn application:app`."""
    settings = environment_for({"GEOMILL_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)})
    elsewhere = tmp_path / "elsewhere"  # of which a jail knows nothing
    elsewhere.mkdir()
    python = os.path.relpath(sys.executable, elsewhere)
    assert ".." in Path(python).parts
    done = subprocess.run(
        [python, "-m", "service", "doctor", "--json"],
        cwd=elsewhere,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    findings = json.loads(done.stdout)["parts"]["Converter"]
    [self_test] = [finding for finding in findings if finding["name"] == "self-test"]
    assert (self_test["state"], done.returncode) == ("ok", 0), findings
