"""`./just` on machines without tools; each test creates its own project and needs no network."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WRAPPER = Path(__file__).parents[2] / "just"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without dependencies."""
    (tmp_path / "just").symlink_to(WRAPPER)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "bootstrap.lock").touch()
    return tmp_path


@pytest.fixture
def prepared(project: Path) -> Path:
    """A project whose environment matches its lock; its `just` prints its arguments."""
    tools = project / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").symlink_to(sys.executable)
    _program(tools / "just", 'printf "<%s>" "$@"')
    _program(tools / "geomill", 'echo "$$" "$@"; exec sleep 60')
    checksum = subprocess.run(["cksum"], input=b"", capture_output=True, check=True).stdout
    (project / ".venv" / "tools.stamp").write_bytes(checksum)
    return project


@pytest.fixture
def few_programs(tmp_path: Path) -> Path:
    """A directory for PATH with standard programs and no Python."""
    directory = tmp_path / "few"
    directory.mkdir()
    for name in ("cat", "cksum", "dirname", "env", "id", "sh"):
        program = next(path for folder in SYSTEM_PATH.split(":") if (path := Path(folder, name)).exists())
        (directory / name).symlink_to(program)
    return directory


def test_a_prepared_environment_is_used_as_it_is(prepared: Path) -> None:
    """A warm call passes its arguments to just, verbatim."""
    result = _call(prepared, "bench", "a file", "*")
    assert (result.returncode, result.stdout, result.stderr) == (0, "<bench><a file><*>", "")


def test_it_may_be_called_from_anywhere(prepared: Path) -> None:
    """The wrapper finds the project by its own path."""
    result = subprocess.run([prepared / "just", "x"], cwd="/", capture_output=True, text=True, check=True)
    assert result.stdout == "<x>"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_becomes_the_gateway(prepared: Path, number: signal.Signals) -> None:
    """`./just serve` becomes the gateway process, which gets the signals and arguments."""
    heeding = ["env", f"--default-signal={number.name.removeprefix('SIG')}"]  # whatever these tests were started from
    command = [*heeding, str(prepared / "just"), "serve", "--flag"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == f"<ready>{process.pid} serve --flag\n"
        process.send_signal(number)
        assert process.wait() == -number


def test_a_name_without_an_interpreter_behind_it_is_passed_over(project: Path, few_programs: Path) -> None:
    """A pyenv shim that does not run does not hide a working Python."""
    _program(few_programs / "python3", "echo 'pyenv: python3: command not found' >&2; exit 127")
    _program(few_programs / "python3.12", f'exec "{sys.executable}" "$@"')
    environment = _environment(str(few_programs))
    call = subprocess.Popen([project / "just"], env=environment, stderr=subprocess.PIPE, start_new_session=True)
    with call:
        assert call.stderr
        assert call.stderr.readline() == b"Preparing .venv.\n"
        while not (project / ".venv" / "pyvenv.cfg").exists():
            assert call.poll() is None
            time.sleep(0.01)
        os.killpg(call.pid, signal.SIGKILL)  # the rest takes ten seconds and is another test's


def test_the_environment_may_be_another(prepared: Path) -> None:
    """VENV names it, so that tests can run on several Pythons side by side."""
    (prepared / ".venv").rename(prepared / ".venv-other")
    environment = _environment(SYSTEM_PATH) | {"VENV": ".venv-other"}
    result = subprocess.run([prepared / "just", "x"], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "<x>"


def test_without_python_it_says_what_is_needed(project: Path, few_programs: Path) -> None:
    """Without Python and the right to install one, it names the supported versions and creates nothing."""
    result = _call(project, path=str(few_programs))
    assert result.returncode == 1
    assert result.stderr.startswith("Geomill needs Python 3.11 to 3.14")
    assert not (project / ".venv").exists()


@pytest.mark.timeout(400)  # it makes a whole environment
def test_first_calls_at_once_prepare_once(project: Path) -> None:
    """One of three first calls creates the environment; the others wait for it."""
    environment = _environment(SYSTEM_PATH) | {"PYTHON": sys.executable}
    calls = [subprocess.Popen([project / "just"], env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    said = b"".join(call.communicate()[1] for call in calls)
    assert said.count(b"Preparing .venv.") == 1


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _environment(path: str) -> dict[str, str]:
    return {"PATH": path, "HOME": os.environ["HOME"]}


def _call(project: Path, *arguments: str, path: str = SYSTEM_PATH) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / "just", *arguments], env=_environment(path), capture_output=True, text=True, check=False
    )
