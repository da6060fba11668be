"""The root that all runs share: the system's libraries, the programs and their data, all read-only, and the work root.

Built once by the spawner in its own mount namespace; every path but that of the second work root is where it is on the
host, so that a command reads the same with and without this layer.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox import mounts
from sandbox.config import Config

_DEVICES = (Path("/dev/null"), Path("/dev/urandom"))
_LONGEST_CHAIN = 40


def build(readable: Iterable[Path], config: Config) -> None:
    """Make a root of `readable` and the work roots of `config`, and change to it.

    Raises:
        OSError: the kernel refuses a mount; the calling process is of no further use.
    """
    work_root = config.work_root
    mounts.make_private()
    links, places = _resolve(readable)
    read_only = mounts.READ_ONLY | mounts.NO_SETUID
    trees = [(mounts.copy(str(place), read_only | mounts.NO_DEVICES), place, place.is_dir()) for place in places]
    trees += [(mounts.copy(str(device), read_only | mounts.NO_EXEC), device, False) for device in _DEVICES]
    writable = mounts.NO_SETUID | mounts.NO_DEVICES | mounts.NO_EXEC
    trees.append((mounts.copy(str(work_root), writable), work_root, True))
    if config.memory_root is not None:
        trees.append((mounts.copy(str(config.memory_root), writable), config.memory_inside, True))
    # The new root needs a place while it is built: the one directory that is certainly there.
    mounts.cover(str(work_root))
    for tree, place, is_directory in trees:
        target = Path(f"{work_root}{place}")
        _make_place(target, is_directory=is_directory)
        mounts.attach(tree, str(target))
    for link, leads_to in links.items():
        _make_link(Path(f"{work_root}{link}"), leads_to)
    mounts.change_root(str(work_root))
    mounts.seal("/")


def _resolve(readable: Iterable[Path]) -> tuple[dict[Path, str], list[Path]]:
    """The links on the way to what is readable, and the real places, none below another."""
    links: dict[Path, str] = {}
    real: set[Path] = set()
    for path in readable:
        found = dict(_links_towards(path))
        links |= found
        real.add(Path(os.path.realpath(path)))
    places = [place for place in sorted(real) if place.exists() and not real.intersection(place.parents)]
    outside = {link: target for link, target in links.items() if not set(places).intersection(link.parents)}
    return outside, places


def _links_towards(path: Path) -> Iterator[tuple[Path, str]]:
    """Every symbolic link that is met when `path` is walked to its end."""
    pending = path
    for _ in range(_LONGEST_CHAIN):
        for part in (*reversed(pending.parents), pending):
            if part.is_symlink():
                target = str(part.readlink())
                yield part, target
                pending = Path(os.path.normpath(part.parent / target)) / pending.relative_to(part)
                break
        else:
            return


def _make_place(target: Path, *, is_directory: bool) -> None:
    (target if is_directory else target.parent).mkdir(parents=True, exist_ok=True)
    if not is_directory:
        os.mknod(target, stat.S_IFREG | 0o600)


def _make_link(link: Path, target: str) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(link):
        link.symlink_to(target)
