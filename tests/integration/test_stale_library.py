"""A checkout whose C sources have changed since its library was built says so."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.forkserver import BESIDE_SOURCE, STALE, built, is_stale
from tests.support.forked import ROOT, environment_for
from tests.support.server import EXECUTED, running_server

NAMED_AS_BUILT = "forkserver-0123456789abcdef.so"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that holds the library of other sources."""
    place = tmp_path / "checkout"
    left_out = shutil.ignore_patterns("__pycache__", "*.so", ".*", "node_modules")
    shutil.copytree(ROOT / "sandbox", place / "sandbox", ignore=left_out)
    for name in ("service", "sql", "tests", "pyproject.toml"):
        (place / name).symlink_to(ROOT / name)
    (place / "sandbox" / "forkserver" / NAMED_AS_BUILT).touch()
    return place


def run(checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run Python in that checkout."""
    settings = environment_for({"GEOMILL_DATA_DIR": str(checkout / "data"), "PYTHONPATH": str(checkout)})
    return subprocess.run(
        [sys.executable, *options], cwd=checkout, env=settings, capture_output=True, text=True, check=False
    )


def test_it_is_stale_only_beside_other_sources(tmp_path: Path) -> None:
    """Not where no library was ever built, nor where there is the right one."""
    assert not is_stale(tmp_path)
    (tmp_path / NAMED_AS_BUILT).touch()
    assert is_stale(tmp_path)
    if (library := built(BESIDE_SOURCE)) is not None:
        shutil.copy(library, tmp_path)
        assert not is_stale(tmp_path)


def test_pytest_refuses_to_start(checkout: Path) -> None:
    """In one sentence, before anything is collected."""
    done = run(checkout, "-m", "pytest", "-p", "no:cacheprovider", "tests/unit/test_cores.py")
    assert (done.returncode, done.stdout) == (pytest.ExitCode.USAGE_ERROR, "")
    assert done.stderr.strip() == f"ERROR: {STALE}"


def test_doctor_warns(checkout: Path) -> None:
    """It is no failure: the service converts, more slowly."""
    report = json.loads(run(checkout, "-m", "service", "doctor", "--json").stdout)
    [launcher] = [finding for finding in report["parts"]["Converter"] if finding["name"] == "fork server"]
    assert (launcher["state"], launcher["advice"]) == ("warn", STALE)


def test_doctor_warns_where_there_is_no_library(checkout: Path) -> None:
    """Whatever the reason: it is never said to be in order."""
    (checkout / "sandbox" / "forkserver" / NAMED_AS_BUILT).unlink()
    report = json.loads(run(checkout, "-m", "service", "doctor", "--json").stdout)
    [launcher] = [finding for finding in report["parts"]["Converter"] if finding["name"] == "fork server"]
    assert launcher["state"] == "warn"
    assert "slower" in launcher["advice"]


def test_the_service_warns_when_it_starts(
    checkout: Path, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, in its log."""
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("PYTHONPATH", str(checkout))
    with running_server(tmp_path / "data", database_url, program=EXECUTED) as server:
        assert [event["advice"] for event in server.events("fork_server.stale")] == [STALE]
