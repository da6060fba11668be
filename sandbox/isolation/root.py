"""The root that all runs share: system libraries, programs and their data, all read-only, and the work root.

The spawner builds it once in its own mount namespace. Every path except that of the second work root is the same as on
the host, so commands work unchanged with and without this layer.
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from sandbox.config import Config
from sandbox.isolation import mounts, readable_paths

_DEVICES = (Path("/dev/null"), Path("/dev/urandom"))
_LONGEST_CHAIN = 40
_READ = 0o444
_ENTERED = 0o555


def build(config: Config, *, for_other_users: bool) -> None:
    """Build a root from what runs may read and from the work roots, and change to it.

    With `for_other_users` runs have another user than this process: what other users cannot read, such as an
    installation under `umask 077`, is copied into memory.

    Raises:
        OSError: the kernel refuses a mount; the calling process must end.
    """
    work_root = config.work_root
    mounts.make_private()
    concealed = {Path(os.path.realpath(path)) for path in readable_paths.hidden()}
    links, real = _resolve(readable_paths.everything(config), concealed)
    copied = {place for place in real if for_other_users and not _is_read_by_all(place)}
    trees = _trees(config, [place for place in real if place not in copied])
    # The new root needs a mount point while it is built; the work root is the one directory that certainly exists.
    mounts.cover(str(work_root), mounts.ROOMY if copied else mounts.SMALL)
    for place in sorted({*trees, *copied, *concealed}):
        target = Path(f"{work_root}{place}")
        if place in copied:
            _copy(place, target)
        elif place in trees:
            tree, is_directory = trees[place]
            _make_place(target, is_directory=is_directory)
            mounts.attach(tree, str(target))
        elif target.is_dir():
            mounts.cover(str(target))
    for link, leads_to in links.items():
        _make_link(Path(f"{work_root}{link}"), leads_to)
    mounts.change_root(str(work_root))
    for place in filter(Path.is_dir, (Path("/"), *concealed)):
        mounts.seal(str(place))


def _trees(config: Config, shared: Iterable[Path]) -> dict[Path, tuple[int, bool]]:
    """Detached mounts by their future path, and whether each is a directory."""
    read_only = mounts.READ_ONLY | mounts.NO_SETUID
    writable = mounts.NO_SETUID | mounts.NO_DEVICES | mounts.NO_EXEC
    trees = {place: (mounts.copy(str(place), read_only | mounts.NO_DEVICES), place.is_dir()) for place in shared}
    trees |= {device: (mounts.copy(str(device), read_only | mounts.NO_EXEC), False) for device in _DEVICES}
    trees[config.work_root] = (mounts.copy(str(config.work_root), writable), True)
    if config.memory_root is not None:
        trees[config.memory_inside] = (mounts.copy(str(config.memory_root), writable), True)
    return trees


def _resolve(readable: Iterable[Path], concealed: Collection[Path]) -> tuple[dict[Path, str], list[Path]]:
    """The links on the way to readable paths, and the real paths, none below another that already contains it."""
    links: dict[Path, str] = {}
    real: set[Path] = set()
    for path in readable:
        links |= dict(_links_towards(path))
        real.add(Path(os.path.realpath(path)))

    def is_shown(path: Path) -> bool:
        nearest = next((above for above in path.parents if above in real or above in concealed), None)
        return nearest is not None and nearest not in concealed

    outside = {link: target for link, target in links.items() if not is_shown(link)}
    return outside, [place for place in sorted(real) if place.exists() and not is_shown(place)]


def _is_read_by_all(place: Path) -> bool:
    """Whether other users can read it, judged by the path itself and its direct entries."""
    return all(map(_is_open, (place, *(place.iterdir() if place.is_dir() else ()))))


def _is_open(path: Path) -> bool:
    mode = path.lstat().st_mode
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return stat.S_ISLNK(mode) or mode & wanted == wanted


def _copy(place: Path, target: Path) -> None:
    """Copy it so that all users can read it."""
    if place.is_dir():
        shutil.copytree(place, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(place, target)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (_ENTERED if path.is_dir() or path.stat().st_mode & 0o100 else _READ))


def _links_towards(path: Path) -> Iterator[tuple[Path, str]]:
    """Every symbolic link on the way to `path`."""
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
