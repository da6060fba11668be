"""Builds the library that makes a fork server of ogr2ogr, where a C compiler is. All else works without it."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

BESIDE_SOURCE = Path(__file__).parent
SOURCES = tuple(BESIDE_SOURCE / name for name in ("forkserver.c", "session.c", "session.h"))
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Wextra", "-fstack-protector-strong")
_LIBRARIES = ("-ldl", "-lm")


class BuildError(RuntimeError):
    """The library could not be built; the message says why."""


def library(cache: Path) -> Path:
    """Where the library of this source is, or would be, in `cache`."""
    source = b"".join(path.read_bytes() for path in SOURCES)
    digest = hashlib.sha256(source + " ".join(_FLAGS + _LIBRARIES).encode() + os.uname().machine.encode()).hexdigest()
    return cache / f"forkserver-{digest[:16]}.so"


def built(cache: Path = BESIDE_SOURCE) -> Path | None:
    """The library, if it has been built in `cache` from this very source."""
    path = library(cache)
    return path if path.exists() else None


def _compiled() -> list[str]:
    return [str(path) for path in SOURCES if path.suffix == ".c"]


def build(cache: Path) -> Path:
    """Build the library in `cache`, unless it is there already.

    Raises:
        BuildError: there is no compiler, or it does not succeed.
    """
    path = library(cache)
    if path.exists():
        return path
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", *_COMPILERS))), None)
    if compiler is None:
        raise BuildError("no C compiler was found (cc, gcc or clang)")
    cache.mkdir(parents=True, exist_ok=True)
    # Under its own name until it is whole: another process may be looking for it.
    unfinished = path.with_suffix(f".{os.getpid()}")
    command = [compiler, *_FLAGS, "-o", str(unfinished), *_compiled(), *_LIBRARIES]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"the C compiler failed: {result.stderr.strip()[-1000:]}")
    unfinished.replace(path)
    for other in cache.glob("forkserver-*.so"):
        if other != path:
            other.unlink(missing_ok=True)
    return path
