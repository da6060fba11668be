"""Building the fork server's library."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.forkserver import BuildError, build, built, compilation

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def quick_compiler(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that writes an empty library: what the source makes is what all other tests use."""
    compiler = tmp_path_factory.mktemp("compiler") / "cc"
    compiler.write_text('#!/bin/sh\nuntil [ "$1" = -o ]; do shift; done\n: >"$2"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))


@pytest.mark.usefixtures("quick_compiler")
def test_it_is_built_once_and_found(tmp_path: Path) -> None:
    """The library of this source is built once, in the given directory."""
    cache = tmp_path / "cache"
    assert built(cache) is None
    library = build(cache)
    made = library.stat().st_mtime_ns
    assert built(cache) == library
    assert build(cache).stat().st_mtime_ns == made
    assert [path.name for path in cache.iterdir()] == [library.name]


@pytest.mark.usefixtures("quick_compiler")
def test_the_library_of_another_source_is_replaced(tmp_path: Path) -> None:
    """The library of an older version is removed."""
    (tmp_path / "forkserver-0123.so").touch()
    library = build(tmp_path)
    assert list(tmp_path.glob("*.so")) == [library]


def test_the_source_compiles_without_a_warning(tmp_path: Path) -> None:
    """Only this build treats warnings as errors: users' compilers may have new ones."""
    command = compilation(shutil.which("cc") or "cc", tmp_path / "library.so")
    result = subprocess.run([*command, "-Werror"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_it_exports_only_what_takes_the_place_of_other_functions() -> None:
    """Any other name could take the place of one in the libraries of GDAL by accident."""
    listed = subprocess.run(["nm", "-D", "--defined-only", str(built())], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    ends = {"GDALDestroy", "GDALDestroyDriverManager", "OGRCleanupAll"}
    others = {"__libc_start_main", "GDALAllRegister", "OGRRegisterAll", "iconv", "iconv_open", "proj_as_wkt"}
    assert names == others | ends | {"register_printf_type", "CPLRecode"}


def test_no_library_extends_printf() -> None:
    """The C library parses each format twice from then on; without ours, it accepts what libquadmath registers."""
    program = "import ctypes; print(ctypes.CDLL(None).register_printf_type(0))"
    answers = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stdout
        for environment in ({}, {"LD_PRELOAD": str(built())})
    ]
    assert int(answers[0]) >= 0
    assert int(answers[1]) == -1


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is in plain words, and nothing is left behind."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no C compiler"):
        build(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains the compiler's message, and nothing is left behind."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho no such header >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(BuildError, match="no such header"):
        build(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.usefixtures("quick_compiler")
def test_the_command_prints_where_it_is(tmp_path: Path) -> None:
    """`python -m sandbox.forkserver build DIRECTORY` builds."""
    command = [sys.executable, "-m", "sandbox.forkserver", "build", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert Path(result.stdout.strip()) == built(tmp_path)
