"""A memory control group per slot: counts memory that the address-space limit misses, and reports kills.

Only the keeper can create the groups, before the spawner gives up its rights. The spawner keeps descriptors of their
files, and a run joins with one write. Works with both versions of control groups, if this process may create any.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import plain_steps
from sandbox.locked_directory import lock_directory
from sandbox.report import Guard

NAME: Final = "memory group"
_PREFIX: Final = "sandbox-"
_REMOVAL_ATTEMPTS: Final = 100
_REMOVAL_PAUSE_SECONDS: Final = 0.01
_LOCK_ATTEMPTS: Final = 200
_LOCK_PAUSE_SECONDS: Final = 0.01
_MOUNT: Final = Path("/sys/fs/cgroup")
# By version: the file to join, the limit, the file with the line "oom_kill N". A run has one thread when it joins.
# Moving only that thread takes 50 microseconds; before the kernel moves a process it waits until no processor is
# creating or ending one, often 10 ms. Version 2 cannot move a thread without its process.
_FILES: Final = (
    ("cgroup.procs", "memory.max", "memory.events"),
    ("tasks", "memory.limit_in_bytes", "memory.oom_control"),
)


class Group:
    """The group of one slot, held as descriptors that stay valid when its files are out of view."""

    def __init__(self, path: Path) -> None:
        join, limit, events = next(names for names in _FILES if (path / names[1]).exists())
        self.join = os.open(path / join, os.O_WRONLY | os.O_CLOEXEC)
        self._limit = os.open(path / limit, os.O_WRONLY | os.O_CLOEXEC)
        self._events = os.open(path / events, os.O_RDONLY | os.O_CLOEXEC)

    def allow(self, memory_bytes: int) -> None:
        """Set the memory limit for all its processes together."""
        # The kernel refuses while more is in use: cached pages of the last run, which it reclaims when it needs to.
        with suppress(OSError):
            os.pwrite(self._limit, str(memory_bytes).encode(), 0)

    def kills(self) -> int:
        """How many of its processes have been killed for memory so far."""
        fields = os.pread(self._events, 4096, 0).split()
        return int(fields[fields.index(b"oom_kill") + 1]) if b"oom_kill" in fields else 0


class Groups:
    """The groups of one keeper."""

    def __init__(self) -> None:
        self._made: list[Path] = []
        self._locked: list[int] = []

    def make(self, slots: int) -> tuple[Group, ...]:
        """Create a group per slot.

        Raises:
            OSError: this process may not create groups, or they do not count memory.
        """
        trouble = OSError("no control group for memory is mounted")
        for parent in _parents():
            try:
                return self._make_below(parent, slots)
            except OSError as error:
                self.remove()
                trouble = error
        raise trouble

    def _make_below(self, parent: Path, slots: int) -> tuple[Group, ...]:
        with _locked(parent):
            _remove_abandoned(parent)
            _pass_on(parent)
            # A process id alone is not unique: keepers of several PID namespaces may share this parent.
            top = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
            for path in (top, *(top / str(slot) for slot in range(slots))):
                path.mkdir()
                self._made.append(path)
                if path == top:
                    self._locked.append(lock_directory(top))
                    _pass_on(top)
        if not any((self._made[-1] / limit).exists() for _, limit, _ in _FILES):
            raise OSError("the memory controller is not delegated to this service")
        return tuple(Group(path) for path in self._made[1:])

    def remove(self) -> None:
        """Remove the groups; nothing may run in them any more."""
        while self._made:
            _remove(self._made.pop())
        while self._locked:
            os.close(self._locked.pop())


def _remove(group: Path) -> None:
    """Remove a group; it stays busy for a moment after its last process was killed."""
    for _ in range(_REMOVAL_ATTEMPTS):
        try:
            group.rmdir()
        except OSError:
            time.sleep(_REMOVAL_PAUSE_SECONDS)
        else:
            return


def _parents() -> Iterator[Path]:
    """Where groups may be created: below our own group, or beside it if the service manager delegates that way."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in {"memory", ""}:
            own = _MOUNT / controllers / path.lstrip("/")
            yield from (own, own.parent) if path != "/" else (own,)


def _pass_on(group: Path) -> None:
    """Enable memory accounting for the children of a group, which version 2 does only on request."""
    with suppress(OSError):
        (group / "cgroup.subtree_control").write_text("+memory", encoding="utf-8")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other keepers from making or removing groups here meanwhile.

    Raises:
        OSError: someone else holds the lock for longer than a keeper does.
    """
    for _ in range(_LOCK_ATTEMPTS):
        with suppress(BlockingIOError):
            descriptor = lock_directory(directory)
            break
        time.sleep(_LOCK_PAUSE_SECONDS)
    else:
        raise OSError(f"another process keeps {directory} locked")
    try:
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of killed keepers: those that no process has locked.

    Process ids cannot identify a keeper: one in another PID namespace, such as a second container, has a different id
    here or none, and would lose groups that its next runs need.
    """
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = lock_directory(path)
            try:
                for group in (*path.glob("*/"), path):
                    group.rmdir()
            finally:
                os.close(lock)


class MemoryGroup:
    """Joins the group of its slot."""

    name = NAME
    stops = "using more memory than allowed by several processes or files in memory"
    guards: frozenset[Guard] = frozenset()

    def __init__(self, groups: Sequence[Group], reason: str) -> None:
        self._groups = groups
        self._reason = reason

    def probe(self) -> None:
        """Join a group."""
        if not self._groups:
            raise OSError(self._reason)
        os.write(self._groups[0].join, b"0")

    def steps(self, jail: Jail) -> bytes:
        """Join the slot's group."""
        return plain_steps(self.name, ("write", jail.as_argument(jail.group), b"0", 1))
