"""The packages that our programs in the sandbox import, in a directory that contains links to them and nothing else.

To find a package, Python lists the directory that contains it. The real directories contain other things: a checkout
has its history and often the data directory, a home directory private files. Runs therefore list a directory of links.
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
"""Our package and those that it imports, with their dependencies; those for GeoParquet only if installed."""


class Modules(msgspec.Struct, frozen=True):
    """What Python is told, and what it must therefore be able to read. All paths are absolute."""

    path: str
    """The directory for PYTHONPATH."""
    packages: tuple[str, ...]
    """That directory, and the targets of its links."""


def linked_modules(home: Path) -> Modules:
    """Make a directory of links to all packages below `home`, unless it exists.

    Raises:
        OSError: it cannot be created.
    """
    links = {name: target for package in PACKAGES for name, target in _places_of(package)}
    directory = home / hashlib.sha256(repr(sorted(links.items())).encode()).hexdigest()[:16]
    if not directory.is_dir():
        _make(directory, links)
    return Modules(str(directory), (str(directory), *map(str, links.values())))


def _places_of(package: str) -> Iterator[tuple[str, Path]]:
    """The package, and the libraries that its wheel installs beside it."""
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
    """Build the directory under another name and then rename it, so that no process ever sees an incomplete one."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".", dir=directory.parent))
    for name, target in links.items():
        (draft / name).symlink_to(target)
    for path in (directory.parent, draft):
        path.chmod(0o755)
    try:
        os.rename(draft, directory)  # noqa: PTH104 -- fails if another process was faster, and replaces nothing
    except OSError:
        shutil.rmtree(draft)
        if not directory.is_dir():
            raise
