"""What the README promises new users, in a clean clone with real programs."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
CURL_LINE = re.compile(r"^\s+(curl .*/api/geo/convert/file)$", re.MULTILINE)
START_SECONDS = 240

pytestmark = pytest.mark.xdist_group("quickstart")  # one clone for all


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the committed tree."""
    directory = tmp_path_factory.mktemp("stranger") / "geomill"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(directory)], check=True)
    return directory


@contextmanager
def served(clone: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run `./just serve`; yields the process and the line that it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GEOMILL_", "VIRTUAL"))}
    output = clone / "serve.out"
    with output.open("wb") as file:
        process = subprocess.Popen(
            ["./just", "serve"],
            cwd=clone,
            env={**environment, "GEOMILL_PORT": "0"},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process, _printed_line(process, output)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _printed_line(process: subprocess.Popen[bytes], output: Path) -> str:
    give_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        if found := CURL_LINE.search(output.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.05)
    message = f"no curl line was printed:\n{output.read_text(encoding='utf-8', errors='replace')}"
    raise AssertionError(message)


def shell(line: str, directory: Path) -> str:
    """Run a line as a person would who pastes it into a shell."""
    return subprocess.run(["sh", "-c", line], cwd=directory, check=True, capture_output=True, text=True).stdout


@pytest.mark.timeout(400)
def test_one_command_serves_and_one_line_converts(clone: Path, tmp_path: Path) -> None:
    """The printed line converts the sample; unzip and ogrinfo find every lake and column; Ctrl-C stops everything."""
    with served(clone) as (process, line):
        answer = json.loads(shell(line, tmp_path))
        assert answer["success"] is True
        shell(f"curl -sS -o result.zip '{answer['downloadUrl']}' && python3 -m zipfile -e result.zip .", tmp_path)
        described = shell("ogrinfo -ro -al *.shp", tmp_path)
        assert "Feature Count: 3" in described
        assert "name: String" in described
        assert "Vänern" in described
        assert urlsplit(answer["downloadUrl"]).hostname == "127.0.0.1"
        below = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
    _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECONDS)
    assert alive == []


@pytest.mark.timeout(400)
def test_a_second_start_has_the_same_account_and_jobs(clone: Path, tmp_path: Path) -> None:
    """SIGTERM to the process that was started stops it; the next start finds the data."""
    keys, jobs = set(), []
    for _ in range(2):
        with served(clone) as (process, line):
            answer = json.loads(shell(line, tmp_path))
            jobs.append(answer["jobId"])
            key = re.search(r"X-API-Key: (\w+)", line)
            assert key is not None
            keys.add(key[1])
            url = line.rpartition(" ")[2].removesuffix("/file")
            listed = json.loads(shell(f"curl -sS -H 'X-API-Key: {key[1]}' {url}/jobs", tmp_path))["jobs"]
            assert [job["jobId"] for job in listed][: len(jobs)] == jobs[::-1]
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
    assert len(keys) == 1
