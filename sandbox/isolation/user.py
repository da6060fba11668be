"""A separate user for every slot, if the service is root.

A run then owns neither files nor processes of the service or of other slots, and the kernel's limit on a user's
processes counts only this run. A service that is an ordinary user cannot change users, and needs no protection of
root's rights.
"""

import os
import resource
import stat
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps, take
from sandbox.report import NOT_NEEDED, Guard

# A range that no distribution, container manager or directory service assigns.
FIRST_USER: Final = 1_879_048_192
# Threads count as well, and some libraries start one per core.
_THREADS: Final = 512
_PASSABLE: Final = 0o011
_REMEDY: Final = (
    "Install it where every user can read it (`chmod -R go+rX`, directories above it included), or run the service as "
    "an ordinary user"
)


class UnprivilegedUser:
    """Becomes the user of its slot."""

    name = "unprivileged user"
    stops = "access to files and processes of root or of another slot"

    def __init__(self, reads: Sequence[Path], work_root: Path, *, is_root: bool) -> None:
        self._reads = reads
        self._work_root = work_root
        self._is_root = is_root
        # An ordinary user has no special rights to guard, and its runs have one user.
        self.guards = frozenset({Guard.ROOT, Guard.RUNS}) if is_root else frozenset[Guard]()

    def probe(self) -> None:
        """Check that the user exists, can read what runs need and can reach the work root."""
        if not self._is_root:
            raise OSError(f"{NOT_NEEDED}: the service is an ordinary user")
        directories = {path for path in self._reads if path.is_dir()}
        become(FIRST_USER)
        for path in self._reads:
            if not os.access(path, os.R_OK | (os.X_OK if path in directories else 0)):
                raise OSError(f"other users cannot read {path}. {_REMEDY}")
        # The work root itself is opened up when a run receives its directory.
        if not os.access(self._work_root.parent, os.X_OK):
            raise OSError(
                f"other users cannot reach {self._work_root}. "
                "Give them search permission on its parent directories (`chmod o+x`)"
            )

    def steps(self, jail: Jail) -> bytes:
        """Change the user, and limit its processes."""
        if jail.user is None:
            raise OSError("the run has no user")
        return _steps(self.name, jail.user)


@lru_cache
def _steps(layer: str, user: int) -> bytes:
    steps = Steps(layer)
    steps.call("prlimit64", 0, resource.RLIMIT_NPROC, struct.pack("=QQ", _THREADS, _THREADS), 0)
    steps.call("setgroups", 0, 0)
    steps.call("setresgid", user, user, user)
    steps.call("setresuid", user, user, user)
    return steps.packed()


def become(user: int) -> None:
    """Become `user`, in the group of the same number and no other."""
    take(_steps(UnprivilegedUser.name, user))


def give(directory: str, user: int, root: str) -> None:
    """Give `user` ownership of `directory` and its contents, and make the path from `root` passable."""
    parent = os.path.dirname(directory)  # noqa: PTH120 - once per run
    while parent.startswith(root):
        mode = stat.S_IMODE(os.stat(parent).st_mode)  # noqa: PTH116 - once per run
        if mode & _PASSABLE != _PASSABLE:
            os.chmod(parent, mode | _PASSABLE)  # noqa: PTH101 - the same
        parent = os.path.dirname(parent)  # noqa: PTH120 - the same
    _own(directory, user)


def _own(path: str, user: int) -> None:
    os.chown(path, user, user, follow_symlinks=False)
    with os.scandir(path) as listing:
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                _own(entry.path, user)
            else:
                os.chown(entry.path, user, user, follow_symlinks=False)
