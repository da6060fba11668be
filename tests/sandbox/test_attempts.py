"""Every system call and many paths, tried by a run of the fork server: `attempts.py` has the table."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.sandbox.attempts import LEVELS, compile_attempts, found
from tests.sandbox.test_hosts import NEEDS_ROOT, NOBODY, printed_by_nobody

NOTHING: dict[str, list[str]] = {level: [] for level in LEVELS}


@pytest.fixture(scope="module")
def program(public: Path) -> Path:
    """The program that makes the attempts."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    return compile_attempts(public, compiler)


@pytest.fixture
def base(public: Path) -> Path:
    """A directory for runs and for what is outside."""
    path = Path(tempfile.mkdtemp(dir=public))
    path.chmod(0o755)
    return path


async def test_no_attempt_of_a_run_gets_it_anything(base: Path, program: Path, library: Path) -> None:
    """No call that it is not meant to make, and nothing that is not its own, with namespaces and without."""
    assert await found(base, program, library) == NOTHING


@NEEDS_ROOT
def test_nor_does_one_if_the_service_is_an_ordinary_user(base: Path, program: Path, library: Path) -> None:
    """In which case runs without namespaces have the service's own user."""
    os.chown(base, NOBODY, NOBODY)
    printed = printed_by_nobody(Path(__file__).with_name("attempts.py"), base, program, library)
    assert (printed["user"], printed["found"]) == (NOBODY, NOTHING)
