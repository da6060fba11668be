"""An isolation layer is one module and one row: added to a copy of the package, it applies to every run."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import sandbox
from sandbox.config import LauncherName

SCRIPT = Path(__file__).with_name("added_layer.py")
PACKAGE = Path(sandbox.__file__).parent
OGR2OGR = shutil.which("ogr2ogr")
ROW, ADDED_ROW = "        OwnSession(),\n", "        OwnSession(),\n        Added(),\n"
IMPORT = "from sandbox.isolation.view import PrivateView\n"
ADDED_IMPORT = f"from sandbox.isolation.added import Added\n{IMPORT}"
MODULE = """
from sandbox.isolation.steps import Steps

class Added:
    name = "added layer"
    stops = "others reading what a run has made"
    guards = frozenset()

    def probe(self):
        pass

    def steps(self, jail):
        steps = Steps(self.name)
        {step}
        return steps.packed()
"""
PRIVATE, FAILING = 'steps.call("umask", 0o077)', 'steps.call("close", -1)'
AFTER_A_WHILE = (0).to_bytes(8, sys.byteorder) + (500_000_000).to_bytes(8, sys.byteorder)
LATE = f'steps.call("nanosleep", {AFTER_A_WHILE!r}, 0); {FAILING}'
"""Fails when the process has got the word to continue, and has not read it yet."""


def found_with(step: str, public: Path, library: Path) -> dict[str, dict[str, str]]:
    """The script's report on each launcher, with an added layer of one step."""
    base = Path(tempfile.mkdtemp(dir=public))
    base.chmod(0o755)
    copy = base / "packages" / "sandbox"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "isolation" / "added.py").write_text(MODULE.format(step=step))
    policy = copy / "isolation" / "policy.py"
    text = policy.read_text()
    assert text.count(ROW) == text.count(IMPORT) == 1
    policy.write_text(text.replace(ROW, ADDED_ROW).replace(IMPORT, ADDED_IMPORT))
    (base / "work").mkdir()
    environment = {"PYTHONPATH": ":".join([str(copy.parent), *filter(None, sys.path)])}
    command = [sys.executable, "-P", *map(str, (SCRIPT, base / "work", OGR2OGR, library))]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(OGR2OGR is None, reason="no ogr2ogr")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_every_launcher_applies_a_layer_that_was_added(public: Path, library: Path) -> None:
    """Without any change to the launchers or the compiled parts."""
    found = found_with(PRIVATE, public, library)
    assert set(found) == set(LauncherName)
    assert {launcher: told["mode"] for launcher, told in found.items()} == dict.fromkeys(found, "600")


@pytest.mark.skipif(OGR2OGR is None, reason="no ogr2ogr")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("step", [FAILING, LATE], ids=["at once", "late"])
def test_no_launcher_starts_what_did_not_get_behind_a_layer(step: str, public: Path, library: Path) -> None:
    """The run ends, and the log names the layer."""
    found = found_with(step, public, library)
    assert set(found) == set(LauncherName)
    for told in found.values():
        assert told["ending"] == "internal"
        assert "added layer: " in told["detail"]
        assert told["mode"] == ""
