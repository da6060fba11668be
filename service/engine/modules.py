"""The packages that programs of ours in the jail import, and a directory that leads to them and to nothing else.

Python finds a package by listing the directory that it lies in. Where packages really lie other things lie too: a
checkout holds its history and often the data directory, a home whatever its owner keeps. So runs list one of links.
"""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

PACKAGES = (
    __name__.partition(".")[0],
    "msgspec",
    "typing_extensions",
    "pyarrow",
    "pyogrio",
    "numpy",
    "packaging",
    "certifi",
)
"""Ours, and what these import, each with what it imports itself; of GeoParquet's only what is there."""


class Modules(msgspec.Struct, frozen=True):
    """The settings of Python, and what it must therefore be able to read. Everything is an absolute path."""

    path: str
    """The directory for PYTHONPATH."""
    packages: tuple[str, ...]
    """That directory, and where its links lead to."""


def linked_modules(home: Path) -> Modules:
    """Make a directory of links to all packages below `home`, unless it is there already.

    Raises:
        OSError: it cannot be made.
    """
    links = {name: target for package in PACKAGES for name, target in _places_of(package)}
    directory = home / hashlib.sha256(repr(sorted(links.items())).encode()).hexdigest()[:16]
    if not directory.is_dir():
        _make(directory, links)
    return Modules(str(directory), (str(directory), *map(str, links.values())))


def _places_of(package: str) -> Iterator[tuple[str, Path]]:
    """The package, and the libraries that its wheel brings beside it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return
    origin = Path(found.origin).resolve()
    place = origin.parent if found.submodule_search_locations else origin
    yield place.name, place
    libraries = place.with_name(f"{place.name}.libs")
    if libraries.is_dir():
        yield libraries.name, libraries


def _make(directory: Path, links: Mapping[str, Path]) -> None:
    """Build it beside its place and move it there, so that no process ever sees a half one."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".", dir=directory.parent))
    for name, target in links.items():
        (draft / name).symlink_to(target)
    for path in (directory.parent, draft):
        path.chmod(0o755)
    try:
        os.rename(draft, directory)  # noqa: PTH104 -- fails where another process was faster, and takes nothing's place
    except OSError:
        shutil.rmtree(draft)
        if not directory.is_dir():
            raise
