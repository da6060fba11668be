"""Check that nothing private lies in what runs may read, under any path.

Paths are resolved to places in file systems, so that links and bind mounts cannot hide an overlap.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Place(msgspec.Struct, frozen=True):
    """A file or directory: its file system, and its path from the root of that file system."""

    device: str
    path: str

    def holds(self, other: "Place") -> bool:
        """Whether `other` is this place or lies below it."""
        return self.device == other.device and _lies_in(other.path, self.path)


class _Mount(msgspec.Struct, frozen=True):
    point: str
    root: Place


def exposed(readable: Iterable[Path], private: Mapping[str, Path], work_root: Path) -> list[str]:
    """One sentence for each path of `private` that runs can read; the keys of `private` name them.

    A readable path may lie below a private directory only if the work root does too, as in a data directory, and not in
    the work root, of which each run sees nothing but its own directory.
    """
    mounts = _mounts()
    shown = {path: list(_places_below(path, mounts)) for path in readable}
    return [
        f"{what} ({path}) {relation} {place}, which every conversion can read. Move one of them elsewhere."
        for what, path in private.items()
        for place, relation in _conflicts(list(_places_below(path, mounts)), shown, _locate(work_root, mounts))
    ]


def _conflicts(private: list[Place], shown: Mapping[Path, list[Place]], work_root: Place) -> Iterator[tuple[Path, str]]:
    # The work root may be a file system of its own.
    holds_work = private[0] != work_root and any(place.holds(work_root) for place in private)
    for path, places in shown.items():
        if any(place.holds(private[0]) for place in places):
            yield path, "lies in"
        elif not holds_work and private[0].holds(places[0]):
            yield path, "holds"


def _places_below(path: Path, mounts: list[_Mount]) -> Iterator[Place]:
    """The place at `path`, and those of all file systems mounted below it."""
    yield _locate(path, mounts)
    real = os.path.realpath(path)
    yield from (mount.root for mount in mounts if mount.point != real and _lies_in(mount.point, real))


def _locate(path: Path, mounts: list[_Mount]) -> Place:
    real = os.path.realpath(path)
    # Of several mounts at one point, the last one covers the others.
    covering = max(
        (mount for mount in mounts if _lies_in(real, mount.point)),
        key=lambda mount: len(mount.point),
        default=_Mount("/", Place("", "/")),
    )
    inside = real[len(covering.point) :].lstrip("/")
    return Place(covering.root.device, os.path.join(covering.root.path, inside) if inside else covering.root.path)  # noqa: PTH118 - texts


def _lies_in(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies below it. Both are normalized; pathlib takes ten times as long."""
    return path == directory or path.startswith(directory if directory.endswith("/") else f"{directory}/")


def _mounts() -> list[_Mount]:
    """The mounts of this process, latest first; empty if the kernel does not list them."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    return [_mount(line) for line in reversed(lines)]


def _mount(line: str) -> _Mount:
    _, _, device, root, point, *_ = line.split(" ")
    return _Mount(_unescaped(point), Place(device, _unescaped(root)))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
