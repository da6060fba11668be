"""Builds the library that turns ogr2ogr into a fork server, if there is a C compiler. It is optional."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

BESIDE_SOURCE = Path(__file__).parent
SOURCES = tuple(sorted(BESIDE_SOURCE.glob("*.[ch]")))
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = (
    *("-O2", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-fstack-protector-strong"),
    *("-Wall", "-Wextra"),
)
_LIBRARIES = ("-ldl", "-lm")

STALE = "The fork server's library was built from other sources than these and is not used: run `./just setup`."


class BuildError(RuntimeError):
    """The library could not be built; the message gives the reason."""


def library(cache: Path) -> Path:
    """The path in `cache` of the library built from this source, whether or not it exists."""
    source = b"".join(path.read_bytes() for path in SOURCES)
    digest = hashlib.sha256(source + " ".join(_FLAGS + _LIBRARIES).encode() + os.uname().machine.encode()).hexdigest()
    return cache / f"forkserver-{digest[:16]}.so"


def built(cache: Path = BESIDE_SOURCE) -> Path | None:
    """The library in `cache` that was built from exactly this source, or None."""
    path = library(cache)
    return path if path.exists() else None


def is_stale(cache: Path = BESIDE_SOURCE) -> bool:
    """Whether `cache` holds only libraries that were built from other sources than these, which are never used."""
    return built(cache) is None and any(cache.glob("forkserver-*.so"))


def compilation(compiler: str, output: Path) -> list[str]:
    """The command that compiles the library."""
    compiled = [str(path) for path in SOURCES if path.suffix == ".c"]
    return [compiler, *_FLAGS, "-o", str(output), *compiled, *_LIBRARIES]


def build(cache: Path) -> Path:
    """Build the library in `cache` unless it is already there.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    path = library(cache)
    if path.exists():
        return path
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", *_COMPILERS))), None)
    if compiler is None:
        raise BuildError("no C compiler was found (cc, gcc or clang)")
    cache.mkdir(parents=True, exist_ok=True)
    # Write under a temporary name, then rename: another process may look for the library at any time.
    unfinished = path.with_suffix(f".{os.getpid()}")
    result = subprocess.run(compilation(compiler, unfinished), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"the C compiler failed: {result.stderr.strip()[-1000:]}")
    unfinished.replace(path)
    for other in cache.glob("forkserver-*.so"):
        if other != path:
            other.unlink(missing_ok=True)
    return path
