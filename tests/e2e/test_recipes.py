"""Recipes that set up a machine, tried with programs that only record how they were called."""

import subprocess
import sys
from pathlib import Path

import pytest

JUSTFILE = Path(__file__).parents[2] / "justfile"
JUST = Path(sys.prefix) / "bin" / "just"
OTHER_PYTHON = "3.99"
"""A version that no environment has: recipes find the Python of their own before any on the PATH."""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory for PATH with standard programs and apt-get, without GDAL; its user is root."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("cat", "sh", "true"):
        program = next(path for folder in ("/bin", "/usr/bin") if (path := Path(folder, name)).exists())
        (directory / name).symlink_to(program)
    _program(directory, "apt-get", 'echo apt-get "$@"')
    _program(directory, "id", "echo 0")
    return directory


def test_gdal_is_installed_where_that_is_permitted(machine: Path) -> None:
    """Root fetches the package lists and installs GDAL without a prompt."""
    result = _gdal(machine)
    assert result.returncode == 0
    assert result.stderr.splitlines()[1:] == [
        "apt-get update -qq",
        "apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends gdal-bin",
    ]


def test_a_machine_that_updates_itself_is_waited_for(machine: Path) -> None:
    """While it does, `apt-get update` fails, and GDAL is installed only when the lists of packages are complete."""
    locked = machine / "locked"
    locked.touch()
    _program(machine, "apt-get", f'echo apt-get "$@"; test "$1" != update || test ! -e "{locked}"')
    _program(machine, "sleep", f'/bin/rm "{locked}"')
    result = _gdal(machine)
    assert result.returncode == 0
    commands = [line.split()[1] for line in result.stderr.splitlines() if line.startswith("apt-get")]
    assert commands == ["update", "update", "-o"]


def test_gdal_is_installed_through_sudo_that_asks_nothing(machine: Path) -> None:
    """An ordinary user with passwordless sudo gets GDAL as well."""
    _program(machine, "id", "echo 1000")
    _program(machine, "sudo", 'test "$1" = -n && shift && exec "$@"')
    result = _gdal(machine)
    assert result.returncode == 0
    assert "install -qq -y --no-install-recommends gdal-bin" in result.stderr


@pytest.mark.parametrize("sudo", [None, "exit 1"], ids=["no sudo", "sudo with a password"])
def test_without_permission_the_command_is_told(machine: Path, sudo: str | None) -> None:
    """It prints the command that an ordinary user has to run, and changes nothing."""
    _program(machine, "id", "echo 1000")
    if sudo:
        _program(machine, "sudo", sudo)
    result = _gdal(machine)
    assert result.returncode == 1
    assert "sudo sh -c 'requirements/apt-install gdal-bin'" in result.stderr
    assert "\napt-get" not in result.stderr


def test_a_system_without_a_known_package_manager_is_told_what_is_missing(machine: Path) -> None:
    """If nothing can be installed, the message names the program and the setting."""
    (machine / "apt-get").unlink()
    result = _gdal(machine)
    assert result.returncode == 1
    assert "ogr2ogr" in result.stderr
    assert "GEOMILL_OGR2OGR" in result.stderr


@pytest.mark.parametrize("present", ["named", "on the path"])
def test_gdal_that_is_here_is_left_alone(machine: Path, present: str) -> None:
    """A program that GEOMILL_OGR2OGR names, or one on the PATH, ends the search."""
    _program(machine, "ogr2ogr" if present == "on the path" else "elsewhere", "exit 1")
    environment = {"GEOMILL_OGR2OGR": str(machine / "elsewhere")} if present == "named" else {}
    result = _gdal(machine, environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_another_python_is_found_on_the_path_or_among_pyenv_s(machine: Path) -> None:
    """A shim on the PATH without an interpreter behind it is skipped."""
    kept = machine / "versions" / f"{OTHER_PYTHON}.7" / "bin"
    kept.mkdir(parents=True)
    _program(kept, "python", "echo of pyenv")
    _program(machine, f"python{OTHER_PYTHON}", "exit 127")
    assert _which_python(machine, OTHER_PYTHON).stdout == "of pyenv\n"
    _program(machine, f"python{OTHER_PYTHON}", "echo of the path")
    assert _which_python(machine, OTHER_PYTHON).stdout == "of the path\n"


def test_a_python_that_is_missing_is_told(machine: Path) -> None:
    """Through the exit code, so that CI can try the next version."""
    result = _which_python(machine, OTHER_PYTHON)
    assert (result.returncode, result.stdout) == (1, "")


def _program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _gdal(machine: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return _just({"PATH": str(machine)} | (environment or {}), "gdal")


def _which_python(machine: Path, version: str) -> subprocess.CompletedProcess[str]:
    return _just({"PATH": str(machine), "PYENV_ROOT": str(machine)}, "which-python", version)


def _just(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(JUST), "--justfile", str(JUSTFILE), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_checkout_may_be_in_a_directory_with_blanks_in_its_name(tmp_path: Path) -> None:
    """Its environment is prepared there, once."""
    project = tmp_path / "my maps"
    tools = project / ".venv" / "bin"
    tools.mkdir(parents=True)
    (project / "requirements").mkdir()
    (project / "requirements" / "tools.lock").touch()
    (project / "pyproject.toml").touch()
    (project / "justfile").symlink_to(JUSTFILE)
    (tools / "just").symlink_to(JUST)
    (tools / "python").symlink_to(sys.executable)
    _program(tools, "uv", "")
    command = [str(JUST), "--justfile", str(project / "justfile"), "environment", "serve"]
    prepared, repeated = (subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2))
    assert (prepared.returncode, prepared.stderr) == (0, "Installing the packages of requirements/serve.lock.\n")
    assert (repeated.returncode, repeated.stderr) == (0, "")
